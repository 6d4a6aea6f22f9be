"""Speaking: turns the text of a language model into pieces, and the pieces into audio, one after the other. Pure.

Results of the models arrive as inputs that carry the id of their effect; an input of an effect that is no longer wanted changes nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import brevity, model_retry, segmenter
from voxbridge.services.voice.core.state import Piece, Reply, Stamps
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import filler, paused_reply, playout, rounds, turns, written
from voxbridge.services.voice.core.turns import usage as turns_usage
from voxbridge.services.voice.speakable import markup
from voxbridge.shared.agents.notes import without_notes
from voxbridge.shared.events import voice as ev

REPLY_LIMIT: Final = 8_000
"""Characters of one reply, about nine minutes of speech; a model that writes more is stopped there."""

HALVINGS: Final = 3
"""Number of times a conversation that a model rejects as too long is halved. A model that rejects an eighth of it has failed."""

APOLOGIES: Final = {
    "stt": "Sorry, I could not make out what you said. Please try again.",
    "llm": "Sorry, I can't answer right now. Please try again.",
    "silence": "Sorry, that is taking too long. Please try again.",
    "lost": "Sorry, I have lost my connection and have to end this call.",
}
UNSAID: Final = "The agent cannot answer, and has no voice to say so with. Try again in a moment."
UNSPOKEN: Final = "The agent has no voice at the moment: of its answer there is only the text."


def text_delta(t: Transition, input: inputs.TextDelta) -> None:
    """Add text of the model to the reply, and speak the pieces that are complete."""
    if _of(t, input.effect) is not None and input.text.strip():
        filler.give_way(t)
    reply = _of(t, input.effect)
    if reply is None:
        return
    stamps = reply.stamps
    if stamps.llm_first_token is None:
        stamps = replace(stamps, llm_first_token=t.now)
    reply, text = _beyond(reply, input.text)
    room = REPLY_LIMIT - sum(len(piece.text) + 1 for piece in reply.pieces) - len(reply.round.unsplit)
    closed = len(text) >= room
    if closed:
        t.cancel(reply.round.effect)
    t.speech.reply = replace(
        reply,
        round=replace(
            reply.round,
            unsplit=reply.round.unsplit + text[:room],
            written=reply.round.written + text[:room],
            away_since=0,
            effect=None if closed else reply.round.effect,
        ),
        stamps=stamps,
        closed=closed,
    )
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
    speak(t)


def _beyond(reply: Reply, text: str) -> tuple[Reply, str]:
    """Return the reply and the new text; of a model that was asked again, only the text beyond what it had written before."""
    if not reply.round.known:
        return reply, text
    again = (reply.round.again + text)[: 2 * REPLY_LIMIT]
    if again.startswith(reply.round.known):
        return replace(reply, round=replace(reply.round, known="", again="")), again[len(reply.round.known) :]
    return replace(reply, round=replace(reply.round, again=again)), ""


def _cut(t: Transition, text: str, *, first: bool = False) -> tuple[list[str], str]:
    return segmenter.cut(text, first=first, language=t.team.agent.language or t.settings.language, rules=t.settings.rules)


def _otherwise(t: Transition, reply: Reply) -> Reply:
    """Complete the reply of a model that was asked again and used other words: append the new sentences after those already begun."""
    if not reply.round.known:
        return reply
    written, begun = reply.round.again, replace(reply, round=replace(reply.round, known="", again=""))
    if reply.round.known.startswith(written):
        return begun
    sentences, rest = _cut(t, written)
    count = len(_cut(t, reply.round.known)[0])
    return replace(begun, round=replace(begun.round, unsplit=" ".join(filter(None, [*sentences[count:], rest.strip()]))))


def tool_requested(t: Transition, input: inputs.ToolRequested) -> None:
    """Open a call that the model requested."""
    reply = _of(t, input.effect)
    if reply is not None:
        if reply.stamps.llm_first_token is None:
            t.speech.reply = replace(reply, stamps=replace(reply.stamps, llm_first_token=t.now))
        rounds.call_function(t, input.name, input.arguments)


def completed(t: Transition, input: inputs.Completed) -> None:
    """Handle the end of a completion: after calls the model goes on with their results, otherwise the reply has all its text."""
    t.counters.tokens += input.input_tokens + input.output_tokens
    reply = _of(t, input.effect)
    if reply is None:
        return
    usage = turns_usage.added(reply.usage, turns_usage.counted(t.state, input.input_tokens, input.output_tokens))
    reply = _otherwise(t, reply)
    t.pending.more = input.more
    reply = replace(reply, round=replace(reply.round, effect=None, away_since=0), usage=usage, closed=not reply.round.uses)
    t.speech.reply = reply
    if reply.round.uses:
        speak(t)
        rounds.next_round(t)
    elif not (
        playout.has_words(reply.pieces) or reply.round.unsplit.strip() or reply.round.before or reply.synthesis.held or rounds.leaves(t)
    ):
        _failed(t, "llm", ev.Failure(code="PROVIDER_REFUSED", message="The language model ended its turn without a word.", retryable=True))
    else:
        speak(t)


def speak(t: Transition) -> None:
    """Cut pieces off the reply's text and synthesise them one at a time; end the reply when all is done."""
    reply = t.reply
    if reply is None:
        return
    text = reply.round.unsplit
    pieces, rest = _cut(t, text, first=not playout.has_words(reply.pieces))
    if reply.closed or reply.round.uses:
        pieces, rest = [*pieces, rest.strip()], ""
    if t.settings.rules >= inputs.BRIEF:
        reply, pieces, rest = _brief(t, reply, pieces, rest)
    # A program reads what a child says: marks that nobody could hear, such as those of sources, stay in it.
    child = t.state.request is not None and t.state.request.child is not None
    spoken = [piece for piece in (pieces if child else map(markup.written, pieces)) if piece.strip()]
    stamps = reply.stamps
    if spoken and stamps.first_sentence is None:
        stamps = replace(stamps, first_sentence=t.now)
    done = t.team.output == "text"
    added = tuple(Piece(text=piece, done=done) for piece in spoken)
    t.speech.reply = reply = replace(reply, round=replace(reply.round, unsplit=rest), pieces=(*reply.pieces, *added), stamps=stamps)
    begun = rest if done and not child else ""  # who reads need not wait for the end of a sentence
    if shown := written.so_far(playout.text(reply.pieces), begun) if spoken or begun else "":
        turns.announce(t, shown)
    _synthesize_next(t, reply)
    end_speech(t)


def _brief(t: Transition, reply: Reply, pieces: list[str], rest: str) -> tuple[Reply, list[str], str]:
    """Stop a reply that says enough, or says it again. What a program reads, or a person, may be as long as it is."""
    if t.team.output == "text" or (t.state.request is not None and t.state.request.child is not None):
        return reply, pieces, rest
    own = t.settings.speak_results and t.team.agent.llm.provider in ("", "local")
    most = brevity.SENTENCES_LIMIT if own and not brevity.is_long(_asked(t)) else None
    kept, over = brevity.kept([piece.text for piece in reply.pieces[reply.round.first_piece :]], pieces, most=most)
    if not over:
        return reply, pieces, rest
    t.cancel(reply.round.effect)
    return replace(reply, round=replace(reply.round, effect=None), closed=reply.closed or not reply.round.uses), kept, ""


def _asked(t: Transition) -> str:
    """Return what the user said last."""
    said = (without_notes(message.text) for message in reversed(t.conversation.history) if message.role == "user")
    return next(filter(None, said), "")


def _synthesize_next(t: Transition, reply: Reply) -> None:
    if t.team.output == "audio" and (paused_reply.waits(t) or reply.synthesis.retrying):
        return
    for index, piece in enumerate(reply.pieces):
        if piece.done:
            continue
        if piece.effect is None:
            effect = t.start(_spoken(t, reply, piece))
            _put_piece(t, index, replace(piece, effect=effect))
        return


def _spoken(t: Transition, reply: Reply, piece: Piece) -> out.Synthesize:
    tts, voice = t.team.agent.tts, t.team.voice
    if t.team.agent.realtime is not None:
        voice = ""  # the voice belongs to the realtime provider, and the speech model does not know it
    return out.Synthesize(
        generation=reply.generation,
        text=piece.text,
        voice=voice,
        language=t.team.agent.language,
        speed=t.settings.options.speed,
        cleaned=t.settings.options.cleaner,
        provider=tts.provider,
        model=tts.model,
    )


def audio_made(t: Transition, input: inputs.AudioMade) -> None:
    """Record synthesised audio of a piece."""
    reply = t.reply
    index = _piece_of(reply, input.effect)
    if reply is None or index is None:
        return
    if reply.pieces[index].filler:
        if input.done:
            filler.made(t, index, input.ms)
        return
    if not reply.pieces[index].ms:
        reply = playout.after_a_wait(reply, t.now)
    stamps, synthesis = sounds(reply, t.now), replace(reply.synthesis, away_since=0)
    t.speech.reply = reply = replace(playout.resumed(reply, t.now), stamps=stamps, synthesis=synthesis)
    _put_piece(t, index, replace(reply.pieces[index], ms=input.ms, done=input.done))
    _watch_voice(t)
    if input.done:
        speak(t)


def sounds(reply: Reply, now: int) -> Stamps:
    """Return the stamps of a reply whose first words have audio. Behind a filler, these words are sent after the filler's audio."""
    stamps = replace(reply.stamps, tts_first_audio=reply.stamps.tts_first_audio or now)
    if reply.playback.sent is not None and stamps.first_audio_sent is None:
        stamps = replace(stamps, first_audio_sent=max(now, reply.playback.sent + playout.made_ms(reply) * 1_000))
    return stamps


def _watch_voice(t: Transition) -> None:
    """Restart the turn timeout: the voice may be silent while audio is left to play, and then for the time a turn may take."""
    reply = t.reply
    if reply is not None:
        played = (t.now - reply.playback.sent) // 1_000 if reply.playback.sent is not None else 0
        t.set_timer("turn", t.settings.turn_timeout_s * 1_000 + max(0, playout.made_ms(reply) - played))


def audio_sent(t: Transition, generation: int, sequence: int) -> None:
    """Record that the first frame of a generation was sent; a client without playback reports is assumed to play it now."""
    reply = t.reply
    turns.sent(t, generation)
    if reply is None or reply.generation != generation:
        return
    t.client.sequence = sequence
    if reply.stamps.first_audio_sent is not None and reply.playback.sent is None and reply.pieces:
        # A new generation continues with existing words, which nothing else shows.
        turns.announce(t, playout.text(reply.pieces))
    stamps = reply.stamps
    if playout.has_words(reply.pieces):
        stamps = replace(stamps, first_audio_sent=stamps.first_audio_sent or t.now)
    t.speech.reply = replace(reply, playback=replace(reply.playback, sent=t.now, playing=not t.client.reports_playback), stamps=stamps)
    end_speech(t)


def close(t: Transition, ms: int) -> None:
    """Close a realtime model's response, all of which has come: `ms` of audio."""
    filler.give_way(t)
    reply = t.reply
    if reply is None:
        return
    earlier, last = playout.newest(reply.pieces)
    last = replace(last, text=last.text.strip(), ms=max(last.ms, ms - playout.model_ms(earlier)))
    pieces = tuple(piece for piece in (*earlier, last) if piece.text or piece.ms)
    t.speech.reply = replace(reply, closed=True, pieces=pieces)
    if not t.realtime.response.over:
        t.response = replace(t.response, counted_ms=ms)
    if not t.realtime.owed.asking:
        t.cancel_timers(ANSWER)
    end_speech(t)


def end_speech(t: Transition) -> None:
    """Mark the end of a reply once all of it was made, and wait until it was heard."""
    reply = t.reply
    if reply is None or reply.synthesis.held or t.team.handoff is not None or not turns.spoken_out(reply):
        return
    if t.team.output == "text" or not reply.pieces:
        turns.finish_reply(t)
        return
    turns.end_of_sound(t)


def effect_failed(t: Transition, input: inputs.EffectFailed) -> None:
    """Handle the failure of a model that the reply needs. Do nothing if the effect is not the reply's."""
    reply = t.reply
    index = _piece_of(reply, input.effect)
    if reply is None:
        return
    if index is not None and reply.pieces[index].filler:
        filler.give_way(t)
    elif index is not None:
        _voice_failed(t, reply, index, input.error)
    elif input.effect == reply.round.effect:
        if input.error.code == "TOO_LARGE" and _ask_with_less(t, reply, input.error):
            return
        away = model_retry.wait(t, "llm", input.error, reply.round.away_since, reply.turn) if not reply.round.uses else 0
        if away:
            t.speech.reply = replace(reply, round=replace(reply.round, effect=None, away_since=away))
        else:
            _failed(t, "llm", input.error)


def _ask_with_less(t: Transition, reply: Reply, error: ev.Failure) -> bool:
    """Start the round once more with half of the conversation, which did not fit into the model. Return False after `HALVINGS` tries."""
    if reply.round.halved >= HALVINGS:
        return False
    t.append(ev.ProviderFailed(part="llm", error=error, turn=reply.turn, handled=True))
    t.speech.reply = replace(reply, round=replace(reply.round, halved=reply.round.halved + 1))
    rounds.ask_again(t)
    return True


def _voice_failed(t: Transition, reply: Reply, index: int, error: ev.Failure) -> None:
    """Handle a failed synthesis: say the piece again from its start, or give up."""
    away = model_retry.wait(t, "tts", error, reply.synthesis.away_since, reply.turn) if not reply.failed else 0
    if not away:
        _failed(t, "tts", error)
        return
    begun = reply.pieces[index].ms > 0
    t.speech.reply = replace(reply, synthesis=replace(reply.synthesis, away_since=away, retrying=True))
    _put_piece(t, index, replace(reply.pieces[index], effect=None))
    if begun:
        paused_reply.pause(t, "failure")


def try_again(t: Transition) -> None:
    """Retry the models that were unavailable."""
    reply = t.reply
    if reply is None:
        return
    t.speech.reply = replace(reply, synthesis=replace(reply.synthesis, retrying=False))
    if reply.round.away_since and reply.round.effect is None and not reply.closed:
        rounds.ask_again(t)
    speak(t)


def silent_model(t: Transition) -> None:
    """Handle the turn timeout: a model produced nothing for the time a turn may take."""
    reply = t.reply
    if reply is None:
        return
    if reply.round.calls or (reply.round.effect is None and paused_reply.waits(t)):
        t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
        return
    message = f"Nothing came for {t.settings.turn_timeout_s} s."
    _failed(t, "llm" if reply.round.effect is not None else "tts", ev.Failure(code="TIMED_OUT", message=message, retryable=True))


def _failed(t: Transition, part: Literal["stt", "llm", "tts"], error: ev.Failure) -> None:
    """Apologise in the same turn, once, for a reply that cannot go on."""
    reply = t.reply
    if reply is None:
        return
    begun = reply.failed or playout.has_words(reply.pieces) or reply.round.uses
    if error.code in ("PROVIDER_REFUSED", "TOO_LARGE") and part == "llm" and not (reply.round.plain or begun):
        # A small model that fails at a call often answers in words if it may not call.
        rounds.ask(t, plain=True)
        return
    t.append(ev.ProviderFailed(part=part, error=error, turn=reply.turn))
    if part == "tts" or reply.failed:
        turns.cancel_reply(t, "failure")
        t.display.trouble = UNSAID if reply.failed else UNSPOKEN
        return
    t.cancel(reply.round.effect)
    t.speech.reply = replace(reply, round=replace(reply.round, away_since=0))
    apology = APOLOGIES["silence" if error.code == "TIMED_OUT" else "llm"]
    turns.apologise(t, apology)
    speak(t)


def _of(t: Transition, effect: int) -> Reply | None:
    return t.reply if t.reply is not None and t.reply.round.effect == effect else None


def _piece_of(reply: Reply | None, effect: int) -> int | None:
    if reply is None:
        return None
    return next((index for index, piece in enumerate(reply.pieces) if piece.effect == effect), None)


def _put_piece(t: Transition, index: int, piece: Piece) -> None:
    reply = t.reply
    if reply is not None:
        pieces = list(reply.pieces)
        pieces[index] = piece
        t.speech.reply = replace(reply, pieces=tuple(pieces))
