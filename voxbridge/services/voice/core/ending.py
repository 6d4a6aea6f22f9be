"""End of a session, and of one that is idle. Pure."""

from __future__ import annotations

import msgspec

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import transcripts
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import ledger, reopening, turns
from voxbridge.shared.events import voice as ev


def idle(d: Draft) -> None:
    """End an idle session; restart the timer of one that is busy. The timer runs for the whole session, so no code path can lose it."""
    request, realtime = d.state.request, d.state.realtime
    busy = realtime is not None and (
        realtime.owed.asking or realtime.hearing.active or realtime.owed.go_on or realtime.tool_calls.open or realtime.owed.announces
    )
    if (request is not None and request.mode == "echo") or d.reply is not None or d.utterance is not None or busy:
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    else:
        end(d, "idle")


def end(d: Draft, reason: str, error: ev.Failure | None = None) -> None:
    """End the session: stop what runs, record what was heard, and complete every turn."""
    utterance = d.utterance
    if utterance is not None:
        d.cancel(utterance.final_effect, utterance.turn_effect, utterance.partial_effect)
        d.state.utterance = None
    if d.state.realtime is not None:
        transcripts.final(d)
    reopening.give_up(d)
    turns.cancel_reply(d, "end")
    turns.resolve_cut(d, None)
    turns.cut_trailing(d)
    realtime_connection.leave(d)
    d.speech.redo = 0
    ledger.settle(d)
    duration_ms = (d.now - (d.state.requested_at or d.now)) // 1_000
    usage = d.conversation.uncounted if d.conversation.uncounted != ev.Usage() else msgspec.UNSET
    d.append(ev.SessionEnded(reason=reason, turns=d.counters.turns, duration_ms=duration_ms, error=error, usage=usage))
    d.state.phase = "ended"
    d.outputs.append(out.Route("nobody"))
    d.outputs.append(out.Close())
