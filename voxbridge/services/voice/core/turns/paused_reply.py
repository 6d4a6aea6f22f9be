"""Pause and continuation of a reply that a fault stopped: its worker died, its client was lost, or its voice failed. Pure.

The current generation ends at once. Its heard part is settled as after an interruption, by the client's report or by the clock. Then the
sentence that was heard in part is said again from its start, as a new generation of the same turn. Nothing but that sentence is heard
twice, and nothing is lost. The reply's completion and calls continue meanwhile.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import Reply
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import playout
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

REPORT_WAIT_MS: Final = 250
"""Milliseconds a connected client has to report what it had played."""


def pause(t: Transition, by: Literal["takeover", "disconnect", "failure"], *, left_ms: int | None = None) -> None:
    """Stop speaking the reply, to continue it later. `left_ms` is how much of its audio had left for the client; None if unknown."""
    reply = t.reply
    if reply is None or t.team.output == "text" or not (reply.pieces or left_ms):
        return
    t.cancel(*(piece.effect for piece in reply.pieces if not piece.done))
    t.cancel_timers("played")
    if reply.round.effect is None:
        t.cancel_timers("turn")
    unspoken = tuple(replace(piece, effect=None, ms=0, done=False) for piece in reply.pieces)
    if reply.synthesis.held or (by == "takeover" and reply.playback.sent is None and not left_ms):
        unspoken, first = (
            (unspoken, reply.round.first_piece) if reply.synthesis.held else playout.without_fillers(unspoken, reply.round.first_piece)
        )
        t.speech.reply = replace(reply, pieces=unspoken, round=replace(reply.round, first_piece=first))
        _watch(t)
        return
    t.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    blind = by == "disconnect" or t.client.away_since != 0
    stopped = replace(reply.playback, left_ms=left_ms, sent=reply.playback.sent or t.now, blind=blind)
    t.speech.paused = replace(reply, round=replace(reply.round, calls=(), effect=None), playback=stopped)
    t.counters.generation += 1
    unheard = replace(reply.playback, sent=None, playing=False, played_ms=0, played_at=None)
    synthesis = replace(reply.synthesis, held=True)
    t.speech.reply = replace(reply, generation=t.counters.generation, pieces=unspoken, synthesis=synthesis, playback=unheard, reopens=0)
    ask(t)


def ask(t: Transition) -> None:
    """Have the client drop the paused reply and report how much of it was heard; a client that is away reports when it is back."""
    paused = t.speech.paused
    if paused is None:
        return
    t.outputs.append(out.Flush(paused.generation))
    if not t.client.away_since:
        t.set_timer("paused", REPORT_WAIT_MS if t.client.reports_playback else 0)


def lose_sight(t: Transition) -> None:
    """Pause the reply because the client is lost: audio that it did not report may be unheard."""
    pause(t, "disconnect")
    if t.speech.paused is not None:
        t.speech.paused = replace(t.speech.paused, playback=replace(t.speech.paused.playback, blind=True))
        t.cancel_timers("paused")


def reported(t: Transition, generation: int, played_ms: int, *, done: bool) -> None:
    """Apply the client's report of how far it had played the paused generation; `done` if it plays no more of it."""
    paused = t.speech.paused
    if paused is None or generation != paused.generation:
        return
    if done:
        settle(t, max(played_ms, paused.playback.played_ms))  # a reloaded page reports 0
    else:
        t.speech.paused = replace(
            paused, playback=replace(paused.playback, played_ms=max(paused.playback.played_ms, played_ms), played_at=t.now)
        )


def settle(t: Transition, played_ms: int | None) -> None:
    """Record what was heard of the paused reply, by the clock if `played_ms` is None, and let the rest be spoken."""
    paused, reply = t.speech.paused, t.reply
    if paused is None or reply is None:
        return
    t.speech.paused = None
    t.cancel_timers("paused")
    if played_ms is None:
        played_ms = _by_the_clock(t, paused)
    most = paused.playback.left_ms if paused.playback.left_ms is not None else playout.made_ms(paused)
    said, unheard, again = playout.resume(paused.pieces, min(played_ms, most))
    unheard = " ".join(filter(None, [unheard, paused.round.unsplit.strip()]))
    dropped = reply.pieces[:again]
    kept, first = playout.without_fillers(reply.pieces[again:], max(0, reply.round.first_piece - again))
    before = " ".join(filter(None, [reply.round.before, *(piece.text for piece in dropped[reply.round.first_piece :])]))
    whole = playout.text(paused.pieces[: max(again, reply.round.first_piece)])
    t.speech.reply = reply = replace(
        reply,
        pieces=kept,
        round=replace(reply.round, first_piece=first, before=before, part=said[len(whole) :].strip() or reply.round.part),
        synthesis=replace(reply.synthesis, held=False),
    )
    covered = playout.fillers(paused.pieces, min(played_ms, most))
    if said or covered:
        t.append(
            ev.AgentSaid(
                text=said,
                unheard=unheard,
                turn=paused.turn,
                generation=paused.generation,
                interrupted=not was_heard(reply),
                played_ms=min(played_ms, most),
                filler=covered,
            )
        )
    if kept and reply.stamps.first_audio_sent is None:  # else its words are shown with its first audio
        t.tell(PartialTranscript("assistant", playout.text(kept), turn=reply.turn, generation=reply.generation))
    _watch(t)


def was_heard(reply: Reply) -> bool:
    """Check whether nothing of a paused reply is left to say."""
    return reply.closed and not reply.pieces and not reply.round.unsplit.strip() and not reply.synthesis.held


def waits(t: Transition) -> bool:
    """Check whether speaking must wait: the client is away, or the heard part is not settled."""
    return t.client.away_since != 0 or (t.reply is not None and t.reply.synthesis.held)


def _by_the_clock(t: Transition, paused: Reply) -> int:
    if not t.client.reports_playback:
        since = paused.playback.played_at or paused.playback.sent or t.now  # `played_at`: it had played everything before more came
        return paused.playback.played_ms + (t.now - since) // 1_000
    if paused.playback.played_at is None or paused.playback.blind:
        return paused.playback.played_ms
    return paused.playback.played_ms + min(playout.REPORT_EVERY_MS, (t.now - paused.playback.played_at) // 1_000)


def _watch(t: Transition) -> None:
    """Restart the turn timeout, unless the client is away."""
    if not t.client.away_since:
        t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
