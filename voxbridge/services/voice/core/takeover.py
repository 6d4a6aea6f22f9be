"""Takeover of a session whose worker is gone. Pure.

Folding the log restores the state. This module restarts what ran in the dead process, each type of effect as `outputs` documents.
The shell sets the timers again, with the time they have left.
"""

from __future__ import annotations

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.realtime import connection, faults
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import paused_reply, playout, rounds, turns
from voxbridge.shared.events import voice as ev


def taken_over(t: Transition, input: inputs.TakenOver) -> None:
    """Take ownership of the session, restart what the dead worker ran, and record what was restored and what was lost."""
    state = t.state
    state.ownership.term, state.ownership.released, state.display.shown = input.term, False, ("", "")
    t.append(ev.SessionOwned(worker=input.worker, term=input.term))
    echo = state.request is not None and state.request.mode == "echo"
    lost = ["What was to be echoed meanwhile was not."] if echo and input.gap_ms else []
    if state.speech.cut is not None:
        turns.resolve_cut(t, playout.estimate(state.speech.cut, t.now - input.gap_ms * 1_000))
    if state.realtime is None:
        turns.cut_trailing(t)
    if state.realtime is not None:
        faults.taken_over(t, left_ms=input.left_ms if t.reply is not None and input.generation == t.reply.generation else 0)
    else:
        _reply(t, input)
    lost += _utterance(t, input)
    if input.lost_ms:
        lost.append(f"{_seconds(input.lost_ms)} of the microphone's audio were lost.")
    if state.realtime is None:
        restored = ev.SessionRestored(worker=input.worker, term=input.term, how="reseeded", gap_ms=input.gap_ms, lost=tuple(lost))
        t.append(restored)
    else:
        connection.restored_later(t, input.worker, input.gap_ms, tuple(lost))
    t.outputs.append(out.Route(listening.route_of(t)))


def _reply(t: Transition, input: inputs.TakenOver) -> None:
    reply = t.reply
    if reply is None:
        return
    effect = reply.round.effect
    t.cancel(effect)
    paused_reply.pause(t, "takeover", left_ms=input.left_ms if input.generation == reply.generation else 0)
    reply = t.reply
    if effect is None or reply is None:
        return
    if not reply.round.uses:
        rounds.ask_again(t)
        return
    # Calls come last in a completion: repeating it would make them twice.
    t.speech.reply = replace(reply, round=replace(reply.round, effect=None))
    rounds.next_round(t)


def _utterance(t: Transition, input: inputs.TakenOver) -> list[str]:
    """Process the current utterance again. Return descriptions of what was lost of it."""
    utterance = t.utterance
    if utterance is None:
        return []
    t.cancel(utterance.partial_effect, utterance.final_effect, utterance.turn_effect)
    piece = utterance.piece
    if piece is not None:  # its audio was the dead worker's
        t.cancel(piece.effect)
        t.state.utterance = utterance = replace(utterance, piece=None)
    gone = [] if piece is None else [f"{_seconds(piece.to_ms - piece.from_ms)} of what was being said were lost."]
    if utterance.text is not None and utterance.to_ms is not None:
        listening.hear_again(t)
        return gone
    end = utterance.to_ms if utterance.to_ms is not None else out.AUDIO_END
    first, last = input.audio_from_ms, input.audio_to_ms
    if first is None or last is None or first >= end or last <= utterance.from_ms:
        listening.lose(t)
        return ["What was being said was lost."]
    listening.hear_again(t)
    missed = first - utterance.from_ms
    return gone + ([f"{_seconds(missed)} of what was being said were lost."] if missed > 0 else [])


def _seconds(ms: int) -> str:
    return f"{ms / 1_000:.1f} s"
