"""End of a session, and of one that is idle. Pure."""

from __future__ import annotations

import msgspec

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import transcripts
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import ledger, reopening, turns
from voxbridge.shared.events import voice as ev


def idle(t: Transition) -> None:
    """End an idle session; restart the timer of one that is busy. The timer runs for the whole session, so no code path can lose it."""
    request, realtime = t.state.request, t.state.realtime
    busy = realtime is not None and (
        realtime.owed.asking or realtime.hearing.active or realtime.owed.go_on or realtime.tool_calls.open or realtime.owed.announces
    )
    thread = request is not None and request.child is not None and request.child.kind == "expert"  # it ends with its parent
    if thread or (request is not None and request.mode == "echo") or t.reply is not None or t.utterance is not None or busy:
        t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    else:
        end(t, "idle")


def end(t: Transition, reason: str, error: ev.Failure | None = None) -> None:
    """End the session: stop what runs, record what was heard, and complete every turn."""
    utterance = t.utterance
    if utterance is not None:
        t.cancel(utterance.final_effect, utterance.turn_effect, utterance.partial_effect, *utterance.pieces_under_way)
        t.state.utterance = None
    if t.state.realtime is not None:
        transcripts.final(t)
    reopening.give_up(t)
    turns.cancel_reply(t, "end")
    turns.resolve_cut(t, None)
    turns.cut_trailing(t)
    realtime_connection.leave(t)
    t.speech.redo = 0
    ledger.settle(t)
    told = tuple(notice.task for notice in t.pending.told)
    duration_ms = (t.now - (t.state.requested_at or t.now)) // 1_000
    usage = t.conversation.uncounted if t.conversation.uncounted != ev.Usage() else msgspec.UNSET
    t.append(ev.SessionEnded(reason=reason, turns=t.counters.turns, duration_ms=duration_ms, error=error, usage=usage, told=told))
    t.state.phase = "ended"
    t.outputs.append(out.Route("nobody"))
    t.outputs.append(out.Close())
