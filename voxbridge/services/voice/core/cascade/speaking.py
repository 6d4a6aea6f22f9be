"""Speaking: turns the text of a language model into pieces, and the pieces into audio, one after the other. Pure.

Results of the models arrive as inputs that carry the id of their effect; an input of an effect that is no longer wanted changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import model_retry, segmenter
from voxbridge.services.voice.core.state import Piece, Reply, Stamps
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, interruption, playout, rounds, turns
from voxbridge.services.voice.core.turns import usage as turns_usage
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


def text_delta(d: Draft, input: inputs.TextDelta) -> None:
    """Add text of the model to the reply, and speak the pieces that are complete."""
    if _of(d, input.effect) is not None and input.text.strip():
        filler.give_way(d)
    reply = _of(d, input.effect)
    if reply is None:
        return
    stamps = reply.stamps
    if stamps.llm_first_token is None:
        stamps = replace(stamps, llm_first_token=d.now)
    reply, text = _beyond(reply, input.text)
    room = REPLY_LIMIT - sum(len(piece.text) + 1 for piece in reply.pieces) - len(reply.round.unsplit)
    closed = len(text) >= room
    if closed:
        d.cancel(reply.round.effect)
    d.speech.reply = replace(
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
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
    speak(d)


def _beyond(reply: Reply, text: str) -> tuple[Reply, str]:
    """Return the reply and the new text; of a model that was asked again, only the text beyond what it had written before."""
    if not reply.round.known:
        return reply, text
    again = (reply.round.again + text)[: 2 * REPLY_LIMIT]
    if again.startswith(reply.round.known):
        return replace(reply, round=replace(reply.round, known="", again="")), again[len(reply.round.known) :]
    return replace(reply, round=replace(reply.round, again=again)), ""


def _otherwise(reply: Reply) -> Reply:
    """Complete the reply of a model that was asked again and used other words: append the new sentences after those already begun."""
    if not reply.round.known:
        return reply
    written, begun = reply.round.again, replace(reply, round=replace(reply.round, known="", again=""))
    if reply.round.known.startswith(written):
        return begun
    sentences, rest = segmenter.cut(written, first=False)
    count = len(segmenter.cut(reply.round.known, first=False)[0])
    return replace(begun, round=replace(begun.round, unsplit=" ".join(filter(None, [*sentences[count:], rest.strip()]))))


def tool_requested(d: Draft, input: inputs.ToolRequested) -> None:
    """Open a call that the model requested."""
    reply = _of(d, input.effect)
    if reply is not None:
        if reply.stamps.llm_first_token is None:
            d.speech.reply = replace(reply, stamps=replace(reply.stamps, llm_first_token=d.now))
        rounds.call_function(d, input.name, input.arguments)


def completed(d: Draft, input: inputs.Completed) -> None:
    """Handle the end of a completion: after calls the model goes on with their results, otherwise the reply has all its text."""
    reply = _of(d, input.effect)
    if reply is None:
        return
    usage = turns_usage.added(reply.usage, turns_usage.counted(d.state, input.input_tokens, input.output_tokens))
    reply = _otherwise(reply)
    reply = replace(reply, round=replace(reply.round, effect=None, away_since=0), usage=usage, closed=not reply.round.uses)
    d.speech.reply = reply
    if reply.round.uses:
        speak(d)
        rounds.next_round(d)
    elif not (
        playout.has_words(reply.pieces) or reply.round.unsplit.strip() or reply.round.before or reply.synthesis.held or rounds.leaves(d)
    ):
        _failed(d, "llm", ev.Failure(code="PROVIDER_REFUSED", message="The language model ended its turn without a word.", retryable=True))
    else:
        speak(d)


def speak(d: Draft) -> None:
    """Cut pieces off the reply's text and synthesise them one at a time; end the reply when all is done."""
    reply = d.reply
    if reply is None:
        return
    text = reply.round.unsplit
    pieces, rest = segmenter.cut(text, first=not playout.has_words(reply.pieces))
    if reply.closed or reply.round.uses:
        pieces, rest = [*pieces, rest.strip()], ""
    spoken = [piece for piece in map(segmenter.written, pieces) if piece]
    stamps = reply.stamps
    if spoken and stamps.first_sentence is None:
        stamps = replace(stamps, first_sentence=d.now)
    done = d.team.output == "text"
    added = tuple(Piece(text=piece, done=done) for piece in spoken)
    d.speech.reply = reply = replace(reply, round=replace(reply.round, unsplit=rest), pieces=(*reply.pieces, *added), stamps=stamps)
    if spoken:
        turns.announce(d, playout.text(reply.pieces))
    _synthesize_next(d, reply)
    end_speech(d)


def _synthesize_next(d: Draft, reply: Reply) -> None:
    if d.team.output == "audio" and (interruption.waits(d) or reply.synthesis.retrying):
        return
    for index, piece in enumerate(reply.pieces):
        if piece.done:
            continue
        if piece.effect is None:
            effect = d.start(_spoken(d, reply, piece))
            _put_piece(d, index, replace(piece, effect=effect))
        return


def _spoken(d: Draft, reply: Reply, piece: Piece) -> out.Synthesize:
    tts, voice = d.team.agent.tts, d.team.voice
    if d.team.agent.realtime is not None:
        voice = ""  # the voice belongs to the realtime provider, and the speech model does not know it
    return out.Synthesize(
        generation=reply.generation,
        text=piece.text,
        voice=voice,
        language=d.team.agent.language,
        provider=tts.provider,
        model=tts.model,
    )


def audio_made(d: Draft, input: inputs.AudioMade) -> None:
    """Record synthesised audio of a piece."""
    reply = d.reply
    index = _piece_of(reply, input.effect)
    if reply is None or index is None:
        return
    if reply.pieces[index].filler:
        if input.done:
            filler.made(d, index, input.ms)
        return
    if not reply.pieces[index].ms:
        reply = playout.after_a_wait(reply, d.now)
    stamps, synthesis = sounds(reply, d.now), replace(reply.synthesis, away_since=0)
    d.speech.reply = reply = replace(playout.resumed(reply, d.now), stamps=stamps, synthesis=synthesis)
    _put_piece(d, index, replace(reply.pieces[index], ms=input.ms, done=input.done))
    _watch_voice(d)
    if input.done:
        speak(d)


def sounds(reply: Reply, now: int) -> Stamps:
    """Return the stamps of a reply whose first words have audio. Behind a filler, these words are sent after the filler's audio."""
    stamps = replace(reply.stamps, tts_first_audio=reply.stamps.tts_first_audio or now)
    if reply.playback.sent is not None and stamps.first_audio_sent is None:
        stamps = replace(stamps, first_audio_sent=max(now, reply.playback.sent + playout.made_ms(reply) * 1_000))
    return stamps


def _watch_voice(d: Draft) -> None:
    """Restart the turn timeout: the voice may be silent while audio is left to play, and then for the time a turn may take."""
    reply = d.reply
    if reply is not None:
        played = (d.now - reply.playback.sent) // 1_000 if reply.playback.sent is not None else 0
        d.set_timer("turn", d.settings.turn_timeout_s * 1_000 + max(0, playout.made_ms(reply) - played))


def audio_sent(d: Draft, generation: int, sequence: int) -> None:
    """Record that the first frame of a generation was sent; a client without playback reports is assumed to play it now."""
    reply = d.reply
    turns.sent(d, generation)
    if reply is None or reply.generation != generation:
        return
    d.client.sequence = sequence
    if reply.stamps.first_audio_sent is not None and reply.playback.sent is None and reply.pieces:
        # A new generation continues with existing words, which nothing else shows.
        turns.announce(d, playout.text(reply.pieces))
    stamps = reply.stamps
    if playout.has_words(reply.pieces):
        stamps = replace(stamps, first_audio_sent=stamps.first_audio_sent or d.now)
    d.speech.reply = replace(reply, playback=replace(reply.playback, sent=d.now, playing=not d.client.reports_playback), stamps=stamps)
    end_speech(d)


def close(d: Draft, ms: int) -> None:
    """Close a realtime model's response, all of which has come: `ms` of audio."""
    filler.give_way(d)
    reply = d.reply
    if reply is None:
        return
    earlier, last = playout.newest(reply.pieces)
    last = replace(last, text=last.text.strip(), ms=max(last.ms, ms - playout.model_ms(earlier)))
    pieces = tuple(piece for piece in (*earlier, last) if piece.text or piece.ms)
    d.speech.reply = replace(reply, closed=True, pieces=pieces)
    if not d.realtime.response.over:
        d.response = replace(d.response, counted_ms=ms)
    if not d.realtime.owed.asking:
        d.cancel_timers(ANSWER)
    end_speech(d)


def end_speech(d: Draft) -> None:
    """Mark the end of a reply once all of it was made, and wait until it was heard."""
    reply = d.reply
    if reply is None or reply.synthesis.held or d.team.handoff is not None or not turns.spoken_out(reply):
        return
    if d.team.output == "text" or not reply.pieces:
        turns.finish_reply(d)
        return
    turns.end_of_sound(d)


def effect_failed(d: Draft, input: inputs.EffectFailed) -> None:
    """Handle the failure of a model that the reply needs. Do nothing if the effect is not the reply's."""
    reply = d.reply
    index = _piece_of(reply, input.effect)
    if reply is None:
        return
    if index is not None and reply.pieces[index].filler:
        filler.give_way(d)
    elif index is not None:
        _voice_failed(d, reply, index, input.error)
    elif input.effect == reply.round.effect:
        if input.error.code == "TOO_LARGE" and _ask_with_less(d, reply, input.error):
            return
        away = model_retry.wait(d, "llm", input.error, reply.round.away_since, reply.turn) if not reply.round.uses else 0
        if away:
            d.speech.reply = replace(reply, round=replace(reply.round, effect=None, away_since=away))
        else:
            _failed(d, "llm", input.error)


def _ask_with_less(d: Draft, reply: Reply, error: ev.Failure) -> bool:
    """Start the round once more with half of the conversation, which did not fit into the model. Return False after `HALVINGS` tries."""
    if reply.round.halved >= HALVINGS:
        return False
    d.append(ev.ProviderFailed(part="llm", error=error, turn=reply.turn, handled=True))
    d.speech.reply = replace(reply, round=replace(reply.round, halved=reply.round.halved + 1))
    rounds.ask_again(d)
    return True


def _voice_failed(d: Draft, reply: Reply, index: int, error: ev.Failure) -> None:
    """Handle a failed synthesis: say the piece again from its start, or give up."""
    away = model_retry.wait(d, "tts", error, reply.synthesis.away_since, reply.turn) if not reply.failed else 0
    if not away:
        _failed(d, "tts", error)
        return
    begun = reply.pieces[index].ms > 0
    d.speech.reply = replace(reply, synthesis=replace(reply.synthesis, away_since=away, retrying=True))
    _put_piece(d, index, replace(reply.pieces[index], effect=None))
    if begun:
        interruption.pause(d, "failure")


def try_again(d: Draft) -> None:
    """Retry the models that were unavailable."""
    reply = d.reply
    if reply is None:
        return
    d.speech.reply = replace(reply, synthesis=replace(reply.synthesis, retrying=False))
    if reply.round.away_since and reply.round.effect is None and not reply.closed:
        rounds.ask_again(d)
    speak(d)


def silent_model(d: Draft) -> None:
    """Handle the turn timeout: a model produced nothing for the time a turn may take."""
    reply = d.reply
    if reply is None:
        return
    if reply.round.calls or (reply.round.effect is None and interruption.waits(d)):
        d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
        return
    message = f"Nothing came for {d.settings.turn_timeout_s} s."
    _failed(d, "llm" if reply.round.effect is not None else "tts", ev.Failure(code="TIMED_OUT", message=message, retryable=True))


def _failed(d: Draft, part: Any, error: ev.Failure) -> None:
    """Apologise in the same turn, once, for a reply that cannot go on."""
    reply = d.reply
    if reply is None:
        return
    begun = reply.failed or playout.has_words(reply.pieces) or reply.round.uses
    if error.code in ("PROVIDER_REFUSED", "TOO_LARGE") and part == "llm" and not (reply.round.plain or begun):
        # A small model that fails at a call often answers in words if it may not call.
        rounds.ask(d, plain=True)
        return
    d.append(ev.ProviderFailed(part=part, error=error, turn=reply.turn))
    if part == "tts" or reply.failed:
        turns.cancel_reply(d, "failure")
        d.display.trouble = UNSAID if reply.failed else UNSPOKEN
        return
    d.cancel(reply.round.effect)
    d.speech.reply = replace(reply, round=replace(reply.round, away_since=0))
    apology = APOLOGIES["silence" if error.code == "TIMED_OUT" else "llm"]
    turns.apologise(d, apology)
    speak(d)


def _of(d: Draft, effect: int) -> Reply | None:
    return d.reply if d.reply is not None and d.reply.round.effect == effect else None


def _piece_of(reply: Reply | None, effect: int) -> int | None:
    if reply is None:
        return None
    return next((index for index, piece in enumerate(reply.pieces) if piece.effect == effect), None)


def _put_piece(d: Draft, index: int, piece: Piece) -> None:
    reply = d.reply
    if reply is not None:
        pieces = list(reply.pieces)
        pieces[index] = piece
        d.speech.reply = replace(reply, pieces=tuple(pieces))
