"""Fillers: a few words that cover a wait ("One moment."), so that the user does not take the call for lost. Pure.

The user waits for a model or a function. After `AFTER_MS` without sound, the installation's own voice says a filler, and another after
each `AGAIN_MS` of further silence, at most `LIMIT` in a turn. A filler is a piece of the answer's own generation (`Piece.filler`), so that
playback of both is tracked together. It is in `agent.said` and in no history: a model would copy it. It never speaks over the user or the
model, and an answer that comes before the filler has audio takes its place.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import Piece, Reply, SpokenBy
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import playout, turns
from voxbridge.shared.bus.moments import PartialTranscript

TIMER: Final = "filler"
QUIET: Final = "quiet"
"""Timer for the end of a filler."""

AFTER_MS: Final = 1_200
AGAIN_MS: Final = 10_000
UNSURE_MS: Final = 800
"""Milliseconds added to `AFTER_MS` if only arriving words tell that the user has stopped speaking."""

LIMIT: Final = 3
"""Number of fillers in a turn."""

FIRST: Final[dict[str, tuple[str, ...]]] = {
    "ar": ("لحظة من فضلك.",),
    "cs": ("Okamžik.", "Moment, prosím."),
    "da": ("Et øjeblik.",),
    "de": ("Einen Moment.", "Einen Augenblick.", "Moment, bitte."),
    "el": ("Μια στιγμή.",),
    "en": ("One moment.", "Just a moment.", "Let me see."),
    "es": ("Un momento.", "Un segundo."),
    "fi": ("Hetkinen.",),
    "fr": ("Un instant.", "Une seconde.", "Un petit instant."),
    "hi": ("एक पल रुकिए।",),
    "hu": ("Egy pillanat.",),
    "id": ("Sebentar.",),
    "it": ("Un momento.", "Un attimo."),
    "ja": ("少々お待ちください。",),
    "ko": ("잠시만요.",),
    "nb": ("Et øyeblikk.",),
    "nl": ("Een moment.", "Een ogenblik."),
    "no": ("Et øyeblikk.",),
    "pl": ("Chwileczkę.", "Moment."),
    "pt": ("Um momento.", "Só um instante."),
    "ro": ("Un moment.",),
    "ru": ("Одну минуту.", "Секунду."),
    "sv": ("Ett ögonblick.",),
    "tr": ("Bir saniye.", "Bir dakika."),
    "uk": ("Хвилинку.",),
    "vi": ("Xin chờ một chút.",),
    "zh": ("请稍等。", "稍等一下。"),
}
"""First fillers, by ISO 639-1 language code; English for other languages."""

FURTHER: Final[dict[str, tuple[str, ...]]] = {
    "de": ("Es dauert noch einen Moment.", "Ich bin noch dabei."),
    "en": ("This takes a little longer.", "Still working on it."),
    "es": ("Un momento más.",),
    "fr": ("Encore un instant.",),
    "it": ("Ancora un momento.",),
    "nl": ("Nog een moment.",),
    "pt": ("Mais um momento.",),
}
"""Fillers after further silence; for other languages, those of `FIRST`."""


def phrase(language: str, sid: str, turn: int, count: int) -> str:
    """Return the filler for the `count`-th time in a turn, from 0: the same for the same arguments, so that a replay says it again."""
    spoken = language.split("-")[0].lower()
    spoken = spoken if spoken in FIRST else "en"
    variants = (FURTHER.get(spoken) if count else None) or FIRST[spoken]
    return variants[crc32(f"{sid}:{turn}:{count}".encode()) % len(variants)]


def watch(t: Transition) -> None:
    """Check, after each input, whether a wait begins or is over."""
    realtime, reply = t.state.realtime, t.reply
    if (
        realtime is not None
        and realtime.awaited
        and not (realtime.owed.asking or realtime.owed.turn or realtime.tool_calls.open or realtime.owed.go_on or realtime.owed.announces)
    ):
        t.realtime = replace(t.realtime, awaited=False)  # the model owes nothing
    if reply is not None and reply.filler and not _for_the_model(t):
        _finish(t, reply)
    waits = _waits(t)
    if waits and not t.display.waits:
        t.set_timer(TIMER, AFTER_MS)
    elif t.display.waits and not waits:
        t.cancel_timers(TIMER)
        t.display.overdue = False
    t.display.waits = waits


def due(t: Transition) -> None:
    """Say a filler, if nothing was heard for long enough."""
    if not _waits(t):
        return
    left = max(_left_to_play(t), _since_words(t))
    if left > 0:
        t.set_timer(TIMER, left)
        return
    t.display.overdue = True
    turn = _turn(t)
    count = t.display.filled[1] if t.display.filled[0] == turn else 0
    if _on(t) and count < LIMIT:
        t.display.filled = (turn, count + 1)
        _say(t, phrase(t.team.agent.language or t.settings.language, t.state.sid, turn, count), turn)
    t.set_timer(TIMER, AGAIN_MS)


def over(t: Transition) -> None:
    """Mark the reply as quiet once the filler was heard, so that the state shows the wait again."""
    reply = t.reply
    if reply is not None and t.display.waits and _left_to_play(t) <= 0:
        t.speech.reply = replace(reply, playback=replace(reply.playback, quiet=True))


def made(t: Transition, index: int, ms: int) -> None:
    """Record that a filler was synthesised."""
    reply = t.reply
    if reply is not None:
        reply = playout.resumed(playout.after_a_wait(reply, t.now), t.now)
        pieces = list(reply.pieces)
        pieces[index] = replace(pieces[index], ms=ms, done=True)
        t.speech.reply = replace(reply, pieces=tuple(pieces))
        t.set_timer(QUIET, ms + 300)


def give_way(t: Transition) -> None:
    """Drop fillers without audio, because the answer is there or they cannot be synthesised."""
    reply = t.reply
    if reply is None or all(piece.done or not piece.filler for piece in reply.pieces):
        return
    t.cancel(*(piece.effect for piece in reply.pieces if piece.filler and not piece.done))
    pieces = tuple(piece for piece in reply.pieces if piece.done or not piece.filler)
    t.speech.reply = replace(reply, pieces=pieces)


def drop(t: Transition) -> bool:
    """Drop a reply that holds only a filler, because of a fault; the filler is not repeated. Return whether it was such a reply."""
    reply = t.reply
    if reply is None or not reply.filler:
        return False
    give_way(t)
    t.outputs.append(out.Flush(reply.generation))
    t.cancel_timers(QUIET)
    t.speech.reply = None
    return True


def _on(t: Transition) -> bool:
    request, agent = t.state.request, t.team.agent
    for wish in (request.filler if request is not None else None, agent.filler):
        if wish is not None:
            return wish
    return bool(t.settings.filler)


def _waits(t: Transition) -> bool:
    """Check whether the user waits for a model or a function."""
    state, reply = t.state, t.reply
    if state.phase != "open" or state.team.output != "audio" or not state.settings.owns_up or state.pending.ending is not None:
        return False
    if (
        t.utterance is not None
        or state.speech.cut is not None
        or state.client.away_since
        or state.team.handoff is not None
        or state.ownership.released
    ):
        return False
    if state.realtime is not None:
        return _for_the_model(t)
    if reply is None or not reply.turn or reply.synthesis.held or reply.failed or reply.closed or reply.round.unsplit.strip():
        return False
    waiting = reply.round.effect is not None or reply.round.calls or reply.round.away_since
    return bool(waiting) and all(piece.done or piece.filler for piece in reply.pieces)


def _for_the_model(t: Transition) -> bool:
    realtime = t.state.realtime
    return realtime is not None and realtime.awaited and not (realtime.hearing.active or realtime.hearing.speaking)


def _left_to_play(t: Transition) -> int:
    """Return the ms until the reply's audio is played, plus the silence allowed after it; 0 if all of it was played."""
    reply = t.reply
    total = playout.made_ms(reply) if reply is not None else 0
    if reply is None or not total:
        return 0
    played = (t.now - reply.playback.sent) // 1_000 if reply.playback.sent is not None else 0
    left = total - played
    return left + AFTER_MS if left > 0 else 0


def _since_words(t: Transition) -> int:
    """Return the ms until a realtime model counts as late."""
    realtime = t.state.realtime
    if realtime is None or realtime.tool_calls.open:
        return 0
    unsure = bool(realtime.hearing.words) and not t.team.agent.manual_activity and not realtime.can.detects_voice
    return AFTER_MS + (UNSURE_MS if unsure else 0) - (t.now - realtime.hearing.ended_at) // 1_000


def _turn(t: Transition) -> int:
    realtime, reply = t.state.realtime, t.reply
    if realtime is None:
        return reply.turn if reply is not None else 0
    return realtime.owed.turn or realtime.hearing.turn or t.counters.turns + 1


def _say(t: Transition, text: str, turn: int) -> None:
    reply = t.reply
    if reply is None:
        t.counters.generation += 1
        t.speech.unplayed = None
        reply = Reply(generation=t.counters.generation, turn=turn, kind="filler", speaker=SpokenBy(agent=t.team.agent.name), goes_on=True)
    elif reply.connection and reply.closed:
        return  # the model's reply is complete, and the client has not reported its end yet
    tts = t.team.agent.tts
    voice = t.team.voice if t.team.agent.realtime is None else ""
    effect = t.start(
        out.Synthesize(
            generation=reply.generation,
            text=text,
            voice=voice,
            language=t.team.agent.language,
            speed=t.settings.options.speed,
            provider=tts.provider,
            model=tts.model,
            whole=True,
        )
    )
    piece = Piece(text="", filler=text, effect=effect)
    t.speech.reply = replace(reply, pieces=(*reply.pieces, piece))
    if not any(piece.text for piece in reply.pieces):
        t.tell(PartialTranscript("assistant", text, turn=turn, generation=reply.generation))


def _finish(t: Transition, reply: Reply) -> None:
    """Finish a reply that holds only a filler: the wait is over and no answer came."""
    give_way(t)
    reply = t.reply or reply
    if reply.playback.sent is None:
        drop(t)
        return
    t.outputs.append(out.FinishSpeech(reply.generation))
    turns.finish_reply(t)
