"""The call that an input is about which could not be taken, and the error with which it ends."""

from __future__ import annotations

from voxbridge.services.tools.core.calls import task_id
from voxbridge.services.tools.core.inputs import CallInput, Faulted, Input, TaskUnwanted
from voxbridge.services.tools.core.results import as_failure
from voxbridge.services.tools.core.state import State
from voxbridge.services.tools.core.step import Decision, concerned
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import TaskCancelRequested, ToolRequested
from voxbridge.shared.events.voice import Failure, ToolCalled, ToolCancelled
from voxbridge.shared.step.journal import LogInput


def faulted(state: State, input: Input | LogInput, error: Exception) -> Faulted | None:
    """Return the end of the call that an input is about; None where it is about none."""
    failure = failure_of(error)
    if isinstance(input, CallInput):
        return Faulted(call_id=input.call_id, error=failure)
    if isinstance(input, TaskUnwanted):
        return _of_task(state, input.task_id, failure)
    if not isinstance(input, LogInput):
        return None
    event = input.recorded.event
    if isinstance(event, ToolCalled | ToolRequested):
        return Faulted(call_id=event.call_id, error=failure, name=event.name, seq=input.recorded.seq, account=event.account)
    if isinstance(event, TaskCancelRequested):
        return _of_task(state, event.task_id, failure)
    if isinstance(event, ToolCancelled):
        return Faulted(call_id=event.call_id, error=failure) if event.call_id in state.open else None
    call = concerned(state, event) if isinstance(event, Decision) else None
    return None if call is None else Faulted(call_id=call.id, error=failure)


def failure_of(error: Exception) -> Failure:
    """Return an error as a call ends with it. Any other error than ours is `INTERNAL`, by its class alone: its text may hold anything."""
    if isinstance(error, VoxbridgeError):
        return as_failure(error)
    message = f"Voxbridge failed while it took this ({type(error).__name__}); the log of the tools service says where."
    return Failure(code=Code.INTERNAL, message=message)


def _of_task(state: State, task: str, failure: Failure) -> Faulted | None:
    call = next((one for one in state.open.values() if task_id(one.id) == task), None)
    return None if call is None else Faulted(call_id=call.id, error=failure)
