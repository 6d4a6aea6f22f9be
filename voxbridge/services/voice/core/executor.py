"""Events of the tool executor: ends of calls and tasks, requests for approval, and runs. Pure."""

from __future__ import annotations

from typing import Any

from voxbridge.services.voice.core import task_ends
from voxbridge.services.voice.core.realtime import tool_calls
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent, rounds, spoken_modes, spoken_tours, turns
from voxbridge.shared import events
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev


def took(t: Transition, event: events.Event) -> None:
    """Take an event of the executor."""
    match event:
        case tools.ToolCompleted(call_id=call_id, name=name, result=result):
            spoken_modes.switched(t, name, result)
            _ended(t, call_id, name, result)
        case tools.ToolFailed(call_id=call_id, name=name, error=error):
            _ended(t, call_id, name, error)
        case tools.ToolInterrupted(call_id=call_id, name=name):
            _ended(t, call_id, name, None)
        case tools.TaskProgressed(message=message, tell=True):
            turns.notice(t, message)
        case tools.TaskCompleted() | tools.TaskFailed() | tools.TaskInterrupted() | tools.TaskCancelled():
            task_ends.ended(t, event)
        case tools.RunWaiting(reason="ask" | "error" | "step", question=question):
            consent.run_asks(t, event)
            if not t.settings.rules:
                turns.notice(t, question)
        case tools.RunWaiting(reason="approval", question=question) if not t.settings.rules:
            turns.notice(t, question)  # no reply waits for this call, and would say it
        case (
            tools.RunStepStarted()
            | tools.RunStepCompleted()
            | tools.RunStepFailed()
            | tools.RunStepSkipped()
            | tools.RunCompleted()
            | tools.RunFailed()
            | tools.RunCancelled()
        ):
            consent.run_goes_on(t, event.run_id)
        case tools.TourStarted():
            spoken_tours.began(t)
        case tools.ApprovalRequested():
            consent.requested(t, event)
        case tools.ApprovalEnded():
            task_ends.decided(t, event)
            consent.ended(t, event)


def _ended(t: Transition, call_id: str, name: str, outcome: dict[str, Any] | ev.Failure | None) -> None:
    """Take the end of a call: its result, its error, or None where it is not known how far it came."""
    if call_id in t.pending.dropped and task_ends.late(t, name, outcome):
        t.pending.dropped = tuple(dropped for dropped in t.pending.dropped if dropped != call_id)
        t.append(ev.ToolDelivered(call_id=call_id, how="content"))
    elif isinstance(outcome, dict):
        answered(t, call_id, outcome)
    elif outcome is not None:
        answered(t, call_id, failed_result(outcome.code, outcome.message))
    else:
        message = f"{name} was interrupted; whether it took effect is not known."
        answered(t, call_id, failed_result(Code.INTERRUPTED.value, message))


def answered(t: Transition, call_id: str, result: dict[str, Any]) -> None:
    """Give a result to the model that waits for it."""
    spoken_tours.steered(t, result)
    if tool_calls.waits_for(t, call_id):
        tool_calls.answered(t, call_id, result)
    else:
        rounds.answered(t, call_id, result)
