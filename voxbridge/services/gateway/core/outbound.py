"""The gateway's messages to a client: facts of the log, moments and audio, as in docs/protocol.md.

Owns the shapes of sections 3 and 4 and the table of section 6. Does not own when a message is sent: `step` does. Pure.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from voxbridge.services.gateway.core.resume_rules import Known
from voxbridge.shared import events
from voxbridge.shared.agents.functions import failed_result, told_result
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import VoxbridgeError

Message = dict[str, Any]


class Reader(msgspec.Struct, frozen=True):
    """The recipient of a message. `resumed`: a plain client that resumed a session before it was set up. `first`: what opens one."""

    sid: str
    v1: bool
    resume_token: str = ""
    resumed: bool = False
    first: str = "start"


_E = TypeVar("_E", bound=events.Event)
_MAKERS: Final[dict[type[events.Event], Callable[[Any, Reader], Message | None]]] = {}


def of_event(recorded: events.Recorded, reader: Reader) -> Message | None:
    """Return the message for an event, with its position as `seq`; None when the client is not told of it."""
    make = _MAKERS.get(type(recorded.event))
    message = None if make is None else make(recorded.event, reader)
    if message is not None:
        message["seq"] = recorded.seq
    return message


def of_moment(moment: moments.Moment, reader: Reader) -> Message | None:
    """Return the message for a moment; None for plain VOX."""
    if not reader.v1:
        return None
    match moment:
        case moments.StateChanged():
            return state(moment.state, moment.reason)
        case moments.GreetingBegun():
            return {"type": "greeting", "text": moment.text}
        case moments.ReplyWritten():
            told: Message = {"type": "chat", "text": moment.text, "steps": [f"Using {name}" for name in moment.calls]}
            return told | {"turn": moment.turn, "generation": moment.generation}
    message: Message = {"type": "transcript", "role": moment.role, "text": moment.text, "final": False, "turn": moment.turn}
    if moment.role == "assistant":
        message["generation"] = moment.generation
    return message


def of_error(error: VoxbridgeError) -> Message:
    """Return the `error` message."""
    return {"type": "error", **error.as_dict()}


def state(name: str, reason: str = "") -> Message:
    """Return the `state` message."""
    return {"type": "state", "state": name, "reason": reason} if reason else {"type": "state", "state": name}


def resumed(sid: str, known: Known, *, last_seq: int, snapshot: dict[str, Any] | None) -> Message:
    """Return the answer to `resume`. With a snapshot, the missed events are not sent."""
    message: Message = {"type": "resumed", "sessionId": sid, "mode": known.mode, "recovered": snapshot is None}
    if snapshot is None:
        message["from"] = last_seq
    message |= {"to": known.top, "state": known.state, **msgspec.structs.asdict(known.speaker), "agents": list(known.speaker.agents)}
    if known.recorded:
        message["recorded"] = True
    if snapshot is not None:
        message["snapshot"] = snapshot
    return message


def gone_on(sid: str, known: Known) -> Message:
    """Return the answer to a `start` that resumes a session. It is not an event of the log, so it has no position."""
    return {"type": "setup_complete", "sessionId": sid, "mode": known.mode, "resumed": True}


def go_away(session_token: str) -> Message:
    """Return the message that the gateway is shutting down."""
    return {"type": "go_away", "session_token": session_token, "message": "The gateway is restarting. Connect again."}


def model_leaves(session_token: str, seq: int) -> Message:
    """Return the plain VOX message that the realtime model's provider is about to close its connection."""
    message = "The model's connection is about to be renewed. The call goes on over this socket: there is nothing to do."
    return {"type": "go_away", "session_token": session_token, "message": message, "seq": seq}


def audio(frame: bytes) -> bytes | None:
    """Return a reply frame as a plain VOX message, already JSON; None for a flush or an empty last frame."""
    if frame[1] != frames.PCM16 or len(frame) <= frames.PREFIX_SIZE:
        return None
    data = binascii.b2a_base64(memoryview(frame)[frames.PREFIX_SIZE :], newline=False)
    return b"".join((b'{"type":"audio","data":"', data, b'"}'))


def _makes(kind: type[_E]) -> Callable[[Callable[[_E, Reader], Message | None]], Callable[[_E, Reader], Message | None]]:
    def declare(make: Callable[[_E, Reader], Message | None]) -> Callable[[_E, Reader], Message | None]:
        _MAKERS[kind] = make
        return make

    return declare


@_makes(events.voice.SessionStarted)
def _started(event: events.voice.SessionStarted, reader: Reader) -> Message:
    message: Message = {"type": "setup_complete", "sessionId": reader.sid, "mode": event.mode, "resumed": event.resumed or reader.resumed}
    if reader.v1:
        message["resumeToken"] = reader.resume_token
        message |= {"agent": event.agent, "agents": list(event.agents), "pipeline": event.pipeline}
        message |= {"voice": event.voice, "model": event.model}
        if event.recorded:
            message["recorded"] = True
    return message


@_makes(events.voice.SessionRestored)
def _restored(event: events.voice.SessionRestored, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    cause = "worker" if event.worker else "provider"
    return {"type": "restored", "how": event.how, "cause": cause, "gap_ms": event.gap_ms, "lost": list(event.lost)}


@_makes(events.voice.ProviderConnected)
def _provider_connected(event: events.voice.ProviderConnected, reader: Reader) -> Message | None:
    connected = _provider("connected", event.provider, event.model)
    return {**connected, "agent": event.agent, "voice": event.voice, "resumed_by": event.resumed_by} if reader.v1 else None


@_makes(events.voice.ProviderLost)
def _provider_lost(event: events.voice.ProviderLost, reader: Reader) -> Message | None:
    return {**_provider("lost", event.provider, event.model), "reason": event.error.message} if reader.v1 else None


@_makes(events.voice.ProviderGoAway)
def _provider_leaving(event: events.voice.ProviderGoAway, reader: Reader) -> Message | None:
    return {**_provider("leaving", event.provider, event.model), "time_left_ms": event.time_left_ms} if reader.v1 else None


def _provider(status: str, provider: str, model: str) -> Message:
    return {"type": "provider", "status": status, "provider": provider, "model": model}


@_makes(events.voice.HandoffStarted)
def _handoff_started(event: events.voice.HandoffStarted, reader: Reader) -> Message | None:
    started = {"type": "agent", "phase": "started", "from": event.source, "to": event.target, "reason": event.reason}
    return started if reader.v1 else None


@_makes(events.voice.HandoffCompleted)
def _handoff_completed(event: events.voice.HandoffCompleted, reader: Reader) -> Message | None:
    completed = {"type": "agent", "phase": "completed", "from": event.source, "to": event.target}
    return {**completed, "voice": event.voice, "model": event.model, "ms": event.ms} if reader.v1 else None


@_makes(events.voice.SessionEnded)
def _ended(event: events.voice.SessionEnded, reader: Reader) -> Message | None:
    return {"type": "session_ended", "reason": event.reason} if reader.v1 else None


@_makes(events.voice.ProviderFailed)
def _provider_failed(event: events.voice.ProviderFailed, _: Reader) -> Message | None:
    return {"type": "error", **failure(event.error)} if not event.handled else None


@_makes(events.voice.UserSaid)
def _user_said(event: events.voice.UserSaid, reader: Reader) -> Message:
    message: Message = {"type": "transcript", "role": "user", "text": event.text}
    if reader.v1:
        message |= {"final": True, "turn": event.turn}
        if event.continues:
            message["continues"] = True
        if event.text_id:
            message["id"] = event.text_id
    return message


@_makes(events.voice.ConversationReset)
def _reset(_: events.voice.ConversationReset, reader: Reader) -> Message | None:
    return {"type": "reset"} if reader.v1 else None


@_makes(events.voice.OutputChanged)
def _output_changed(event: events.voice.OutputChanged, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    return {"type": "output", "output": event.output, **({"reason": event.reason} if event.reason else {})}


@_makes(events.voice.AgentSaid)
def _agent_said(event: events.voice.AgentSaid, reader: Reader) -> Message | None:
    written = event.output == "text"
    if not reader.v1 and not event.text:
        return None
    message: Message = {"type": "text", "text": event.text} if written else {"type": "transcript", "role": "assistant", "text": event.text}
    if reader.v1:
        message |= {"turn": event.turn, "generation": event.generation, "interrupted": event.interrupted, "unheard": event.unheard}
        if not written:
            message["final"] = True
        if event.apology:
            message["apology"] = True
        if event.filler:
            message["filler"] = event.filler
        if event.agent:
            message |= {"agent": event.agent, "voice": event.voice}
    return message


@_makes(events.voice.TurnCompleted)
def _turn_completed(event: events.voice.TurnCompleted, reader: Reader) -> Message:
    message: Message = {"type": "turn_complete", "turn": event.number}
    if reader.v1:
        usage = event.usage
        counted = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        if usage.microdollars:
            counted["microdollars"] = usage.microdollars
        message |= {"reason": event.reason, "latency": msgspec.to_builtins(event.latency), "usage": counted}
    return message


@_makes(events.voice.ToolCalled)
def _tool_called(event: events.voice.ToolCalled, _: Reader) -> Message:
    return {
        "type": "function_call",
        "name": event.name,
        "args": event.arguments,
        "server_handled": event.kind != "browser",
        "fn_call_id": event.call_id,
    }


@_makes(events.voice.ToolCancelled)
def _tool_cancelled(event: events.voice.ToolCancelled, reader: Reader) -> Message | None:
    return {"type": "function_cancelled", "fn_call_id": event.call_id, "name": event.name} if reader.v1 else None


@_makes(events.tools.ToolCompleted)
def _tool_completed(event: events.tools.ToolCompleted, reader: Reader) -> Message:
    message = {"type": "function_result", "name": event.name, "result": told_result(event.result), "fn_call_id": event.call_id}
    return message | ({"undo": True} if event.undo and reader.v1 else {})


@_makes(events.tools.ToolFailed)
def _tool_failed(event: events.tools.ToolFailed, _: Reader) -> Message:
    return {"type": "function_result", "name": event.name, "result": _failed(event.error), "fn_call_id": event.call_id}


@_makes(events.tools.ToolInterrupted)
def _tool_interrupted(event: events.tools.ToolInterrupted, _: Reader) -> Message:
    return {"type": "function_result", "name": event.name, "result": _failed(_CUT_SHORT), "fn_call_id": event.call_id}


@_makes(events.tools.TaskStarted)
def _task_started(event: events.tools.TaskStarted, _: Reader) -> Message:
    return {"type": "async_task_started", "task_id": event.task_id, "function": event.function}


@_makes(events.tools.TaskCompleted)
def _task_completed(event: events.tools.TaskCompleted, reader: Reader) -> Message:
    message = _task_over(event.task_id, event.function, told_result(event.result))
    return message | ({"undo": True} if event.undo and reader.v1 else {})


@_makes(events.tools.TaskProgressed)
def _task_progressed(event: events.tools.TaskProgressed, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    shown = {"task_id": event.task_id, "function": event.function, "done": event.done, "message": event.message}
    return {"type": "task_progress", **shown, **({"tell": True} if event.tell else {})}


@_makes(events.tools.ApprovalRequested)
def _approval_requested(event: events.tools.ApprovalRequested, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    return {
        "type": "approval_requested",
        "approval_id": event.approval_id,
        "fn_call_id": event.call_id,
        "name": event.name,
        "args": event.arguments,
        "effect": event.effect,
        "question": event.question,
        "expires_ts": event.expires_ts,
        "scopes": list(event.scopes),
    }


@_makes(events.tools.ApprovalEnded)
def _approval_ended(event: events.tools.ApprovalEnded, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    return {"type": "approval_ended", "approval_id": event.approval_id, "name": event.name, "outcome": event.outcome, "by": event.by}


@_makes(events.tools.RunStarted)
def _run_started(event: events.tools.RunStarted, reader: Reader) -> Message | None:
    started = {"type": "run_started", "run_id": event.run_id, "name": event.name, "kind": event.kind}
    return {**started, "steps": event.steps, "inputs": event.inputs} if reader.v1 else None


@_makes(events.tools.RunStepStarted)
def _run_step_started(event: events.tools.RunStepStarted, reader: Reader) -> Message | None:
    message = _run_step(event.run_id, event.step, event.attempt, "started")
    return {**message, "action": event.action, "target": event.target, "args": event.given} if reader.v1 else None


@_makes(events.tools.RunStepCompleted)
def _run_step_completed(event: events.tools.RunStepCompleted, reader: Reader) -> Message | None:
    return {**_run_step(event.run_id, event.step, event.attempt, "completed"), "result": event.result} if reader.v1 else None


@_makes(events.tools.RunStepFailed)
def _run_step_failed(event: events.tools.RunStepFailed, reader: Reader) -> Message | None:
    state = "failed" if event.known else "interrupted"
    return {**_run_step(event.run_id, event.step, event.attempt, state), "error": failure(event.error)} if reader.v1 else None


@_makes(events.tools.RunStepSkipped)
def _run_step_skipped(event: events.tools.RunStepSkipped, reader: Reader) -> Message | None:
    return _run_step(event.run_id, event.step, 0, "skipped") if reader.v1 else None


def _run_step(run_id: str, step: str, attempt: int, state: str) -> Message:
    return {"type": "run_step", "run_id": run_id, "step": step, "attempt": attempt, "state": state}


@_makes(events.tools.TourStarted)
def _tour_started(event: events.tools.TourStarted, reader: Reader) -> Message | None:
    message: Message = {"type": "start_tour", "page": event.page, "tour": event.tour}
    return {**message, "named": event.named} if reader.v1 else message


@_makes(events.tools.RunWaiting)
def _run_waiting(event: events.tools.RunWaiting, reader: Reader) -> Message | None:
    if not reader.v1:
        return None
    message: Message = {"type": "run_waiting", "run_id": event.run_id, "name": event.name, "reason": event.reason}
    message |= {"step": event.step, "question": event.question}
    return message if event.expires_ts is None else {**message, "expires_ts": event.expires_ts}


@_makes(events.tools.RunCompleted)
def _run_completed(event: events.tools.RunCompleted, reader: Reader) -> Message | None:
    return {**_run_ended(event, "completed"), "result": event.result} if reader.v1 else None


@_makes(events.tools.RunFailed)
def _run_failed(event: events.tools.RunFailed, reader: Reader) -> Message | None:
    return {**_run_ended(event, "failed"), "step": event.step, "error": failure(event.error)} if reader.v1 else None


@_makes(events.tools.RunCancelled)
def _run_cancelled(event: events.tools.RunCancelled, reader: Reader) -> Message | None:
    return {**_run_ended(event, "cancelled"), "reason": event.reason} if reader.v1 else None


def _run_ended(event: events.tools.RunCompleted | events.tools.RunFailed | events.tools.RunCancelled, outcome: str) -> Message:
    return {"type": "run_ended", "run_id": event.run_id, "name": event.name, "outcome": outcome, "ms": event.ms}


@_makes(events.tools.TaskFailed)
def _task_failed(event: events.tools.TaskFailed, _: Reader) -> Message:
    return _task_over(event.task_id, event.function, _failed(event.error))


@_makes(events.tools.TaskCancelled)
def _task_cancelled(event: events.tools.TaskCancelled, _: Reader) -> Message:
    return _task_over(event.task_id, event.function, _failed(events.voice.Failure(code="CANCELLED", message=f"Cancelled: {event.reason}.")))


@_makes(events.tools.TaskInterrupted)
def _task_interrupted(event: events.tools.TaskInterrupted, _: Reader) -> Message:
    return _task_over(event.task_id, event.function, _failed(_CUT_SHORT))


def _task_over(task_id: str, function: str, result: dict[str, Any]) -> Message:
    return {"type": "async_task_complete", "task_id": task_id, "function": function, "result": result}


def failure(error: events.voice.Failure) -> dict[str, Any]:
    """Return a failure from the log in the form that clients get."""
    return {"code": error.code, "message": error.message, "retryable": error.retryable}


def _failed(error: events.voice.Failure) -> dict[str, Any]:
    return {**failed_result(error.code, error.message), "retryable": error.retryable}


_CUT_SHORT: Final = events.voice.Failure(
    code="INTERRUPTED", message="The executor stopped while this ran. Whether it took effect is not known, and it is not run again."
)
