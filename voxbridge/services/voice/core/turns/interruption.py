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
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import playout
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

REPORT_WAIT_MS: Final = 250
"""Milliseconds a connected client has to report what it had played."""


def pause(d: Draft, by: Literal["takeover", "disconnect", "failure"], *, left_ms: int | None = None) -> None:
    """Stop speaking the reply, to continue it later. `left_ms` is how much of its audio had left for the client; None if unknown."""
    reply = d.reply
    if reply is None or d.team.output == "text" or not (reply.pieces or left_ms):
        return
    d.cancel(*(piece.effect for piece in reply.pieces if not piece.done))
    d.cancel_timers("played")
    if reply.round.effect is None:
        d.cancel_timers("turn")
    unspoken = tuple(replace(piece, effect=None, ms=0, done=False) for piece in reply.pieces)
    if reply.synthesis.held or (by == "takeover" and reply.playback.sent is None and not left_ms):
        unspoken, first = (
            (unspoken, reply.round.first_piece) if reply.synthesis.held else playout.without_fillers(unspoken, reply.round.first_piece)
        )
        d.speech.reply = replace(reply, pieces=unspoken, round=replace(reply.round, first_piece=first))
        _watch(d)
        return
    d.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    blind = by == "disconnect" or d.client.away_since != 0
    stopped = replace(reply.playback, left_ms=left_ms, sent=reply.playback.sent or d.now, blind=blind)
    d.speech.paused = replace(reply, round=replace(reply.round, calls=(), effect=None), playback=stopped)
    d.counters.generation += 1
    unheard = replace(reply.playback, sent=None, playing=False, played_ms=0, played_at=None)
    synthesis = replace(reply.synthesis, held=True)
    d.speech.reply = replace(reply, generation=d.counters.generation, pieces=unspoken, synthesis=synthesis, playback=unheard, reopens=0)
    ask(d)


def ask(d: Draft) -> None:
    """Have the client drop the paused reply and report how much of it was heard; a client that is away reports when it is back."""
    paused = d.speech.paused
    if paused is None:
        return
    d.outputs.append(out.Flush(paused.generation))
    if not d.client.away_since:
        d.set_timer("paused", REPORT_WAIT_MS if d.client.reports_playback else 0)


def lose_sight(d: Draft) -> None:
    """Pause the reply because the client is lost: audio that it did not report may be unheard."""
    pause(d, "disconnect")
    if d.speech.paused is not None:
        d.speech.paused = replace(d.speech.paused, playback=replace(d.speech.paused.playback, blind=True))
        d.cancel_timers("paused")


def reported(d: Draft, generation: int, played_ms: int, *, done: bool) -> None:
    """Apply the client's report of how far it had played the paused generation; `done` if it plays no more of it."""
    paused = d.speech.paused
    if paused is None or generation != paused.generation:
        return
    if done:
        settle(d, max(played_ms, paused.playback.played_ms))  # a reloaded page reports 0
    else:
        d.speech.paused = replace(
            paused, playback=replace(paused.playback, played_ms=max(paused.playback.played_ms, played_ms), played_at=d.now)
        )


def settle(d: Draft, played_ms: int | None) -> None:
    """Record what was heard of the paused reply, by the clock if `played_ms` is None, and let the rest be spoken."""
    paused, reply = d.speech.paused, d.reply
    if paused is None or reply is None:
        return
    d.speech.paused = None
    d.cancel_timers("paused")
    if played_ms is None:
        played_ms = _by_the_clock(d, paused)
    most = paused.playback.left_ms if paused.playback.left_ms is not None else playout.made_ms(paused)
    said, unheard, again = playout.resume(paused.pieces, min(played_ms, most))
    unheard = " ".join(filter(None, [unheard, paused.round.unsplit.strip()]))
    dropped = reply.pieces[:again]
    kept, first = playout.without_fillers(reply.pieces[again:], max(0, reply.round.first_piece - again))
    before = " ".join(filter(None, [reply.round.before, *(piece.text for piece in dropped[reply.round.first_piece :])]))
    whole = playout.text(paused.pieces[: max(again, reply.round.first_piece)])
    d.speech.reply = reply = replace(
        reply,
        pieces=kept,
        round=replace(reply.round, first_piece=first, before=before, part=said[len(whole) :].strip() or reply.round.part),
        synthesis=replace(reply.synthesis, held=False),
    )
    covered = playout.fillers(paused.pieces, min(played_ms, most))
    if said or covered:
        d.append(
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
        d.tell(PartialTranscript("assistant", playout.text(kept), turn=reply.turn, generation=reply.generation))
    _watch(d)


def was_heard(reply: Reply) -> bool:
    """Check whether nothing of a paused reply is left to say."""
    return reply.closed and not reply.pieces and not reply.round.unsplit.strip() and not reply.synthesis.held


def waits(d: Draft) -> bool:
    """Check whether speaking must wait: the client is away, or the heard part is not settled."""
    return d.client.away_since != 0 or (d.reply is not None and d.reply.synthesis.held)


def _by_the_clock(d: Draft, paused: Reply) -> int:
    if not d.client.reports_playback:
        since = paused.playback.played_at or paused.playback.sent or d.now  # `played_at`: it had played everything before more came
        return paused.playback.played_ms + (d.now - since) // 1_000
    if paused.playback.played_at is None or paused.playback.blind:
        return paused.playback.played_ms
    return paused.playback.played_ms + min(playout.REPORT_EVERY_MS, (d.now - paused.playback.played_at) // 1_000)


def _watch(d: Draft) -> None:
    """Restart the turn timeout, unless the client is away."""
    if not d.client.away_since:
        d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
