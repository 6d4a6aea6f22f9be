"""Messages of the client: which are allowed in which phase, and the events that they become.

Owns the order of the protocol (docs/protocol.md, section 2). Does not own the messages' shapes and limits (`messages`). Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.gateway.core import closing, inputs, messages, page_functions, reports, session_token
from voxbridge.services.gateway.core.browser_calls import Calls
from voxbridge.services.gateway.core.messages import ClientMessage
from voxbridge.services.gateway.core.outbound import Reader
from voxbridge.services.gateway.core.outputs import Append, Open, PublishMic, Resume
from voxbridge.services.gateway.core.session_token import SessionToken
from voxbridge.services.gateway.core.state import Connection, Ending, Fresh, Opening, Otherwise, Resuming, Step
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.errors import Code, VoxbridgeError

WAITING_LIMIT: Final = 64
"""Messages that may wait while the session is opened or resumed."""


def message(connection: Connection, input: inputs.ClientInput) -> Step:
    """Take a message, or answer with the reason why it is wrong, or may not be sent now."""
    try:
        match input:
            case inputs.TextMessage(payload=payload):
                return _take(connection, messages.read(payload), input.now_ms)
            case inputs.MessageRead(message=message):
                return _take(connection, message, input.now_ms)
            case inputs.Asked(opens=opens):
                return _asked(connection, opens, input.now_ms)
            case inputs.Wrong(error=error):
                return closing.refuse(connection, error, input.now_ms)
    except VoxbridgeError as error:
        return closing.refuse(connection, error, input.now_ms)


def _asked(connection: Connection, opens: Open, now_ms: int) -> Step:
    if not isinstance(connection.phase, Fresh):
        raise _has_its_session()
    event = replace(opens.event, resume_hash=connection.origin.resume_hash)
    return replace(connection, phase=Opening(now_ms)), (replace(opens, event=event),)


def binary(connection: Connection, input: inputs.BinaryMessage) -> Step:
    """Publish bare samples, or answer a binary message with the reason why the audio path refused it. What comes while no session is open
    is dropped."""
    try:
        if input.bare:
            frames.check_pcm(len(input.payload))
            return connection, (PublishMic(input.payload),) if connection.takes_audio else ()
        _check_binary(connection, input.payload)
    except VoxbridgeError as error:
        return closing.refuse(connection, error, input.now_ms)
    return connection, ()


def answer(connection: Connection, message: messages.BrowserFunctionResult, now_ms: int) -> Step:
    """Take the page's answer to a call. Raises `NOT_FOUND` when no such call is open."""
    call_id, calls = connection.calls.answered(message.name, message.fn_call_id)
    answered = events.gateway.BrowserCallAnswered(call_id=call_id, name=message.name, result=message.result)
    return _write(replace(connection, calls=calls), answered, now_ms)


def _check_binary(connection: Connection, payload: bytes) -> None:
    if not connection.reader.v1:
        raise VoxbridgeError(Code.INVALID_MESSAGE, "Binary messages need the sub-protocol `voxbridge.v1`; send `audio` as JSON.")
    if len(payload) > messages.MESSAGE_LIMIT:
        raise messages.too_large(len(payload))
    frames.check(payload)
    if isinstance(connection.phase, Fresh):
        raise _before_start(connection, "An audio frame")


def _take(connection: Connection, message: ClientMessage, now_ms: int) -> Step:
    if isinstance(message, messages.V1_ONLY) and not connection.reader.v1:
        name = message.__struct_config__.tag
        raise VoxbridgeError(Code.INVALID_MESSAGE, f"`{name}` needs the sub-protocol `voxbridge.v1`.", field="type")
    if isinstance(message, messages.Start | messages.Resume):
        if not isinstance(connection.phase, Fresh):
            raise _has_its_session()
        if isinstance(message, messages.Start):
            return _start(connection, message, now_ms)
        return _look_for(connection, SessionToken(message.session_id, message.resume_token, message.last_seq), Resuming(now_ms))
    if isinstance(connection.phase, Fresh):
        raise _before_start(connection, f"`{message.__struct_config__.tag}`")
    if isinstance(message, messages.Audio):
        pcm = messages.pcm_of(message)
        return connection, (PublishMic(pcm),) if connection.takes_audio else ()
    if isinstance(connection.phase, Ending):
        if isinstance(message, messages.Playback | messages.End | messages.AudioEnd):
            return connection, ()
        raise VoxbridgeError(Code.CONFLICT, "The session is ending; nothing more is taken.")
    if isinstance(message, messages.BrowserFunctionResult):
        if connection.calls.whole:
            return answer(connection, message, now_ms)
        _check_room(len(connection.answers))
        return replace(connection, answers=(*connection.answers, message)), ()
    return _write(connection, _event(message), now_ms)


def _start(connection: Connection, message: messages.Start, now_ms: int) -> Step:
    reader = connection.reader
    request = events.gateway.SessionRequested(
        mode=message.mode,  # type: ignore[arg-type]  # checked against MODES
        model=message.model or "",
        voice=message.voice or "",
        system_prompt=message.system_prompt or "",
        agent=message.agent or "",
        output=message.output or "",  # type: ignore[arg-type]  # checked against OUTPUTS
        record=message.record,
        filler=message.filler,
        functions=page_functions.check(message.tools),
        options=events.gateway.SessionOptions(time_zone=message.time_zone or ""),
        client=events.gateway.ClientCapabilities(
            protocol="voxbridge.v1" if reader.v1 else "vox",
            browser=page_functions.answered(message.tools, message.browser_functions, v1=reader.v1),
        ),
        resume_hash=connection.origin.resume_hash,
    )
    opens = Open(request, message.token or "")
    before = session_token.read(message.session_token or "") if not reader.v1 else None
    if before is None:
        return replace(connection, phase=Opening(now_ms)), (opens,)
    return _look_for(connection, before, Resuming(now_ms, Otherwise(reader, opens)), unrecorded=message.record is False)


def _look_for(connection: Connection, wanted: SessionToken, phase: Resuming, *, unrecorded: bool = False) -> Step:
    reader = Reader(wanted.sid, connection.reader.v1, wanted.token, first=connection.reader.first)
    connection = replace(connection, reader=reader, phase=phase, calls=Calls(closed={}), last_seq=wanted.last_seq)
    return connection, (Resume(wanted.sid, wanted.token, wanted.last_seq, unrecorded),)


def _write(connection: Connection, event: events.Event, now_ms: int) -> Step:
    """Write an event of the client to the log, or keep it until the session is open."""
    phase = connection.phase
    if isinstance(phase, Opening | Resuming):
        _check_room(len(phase.waiting))
        return replace(connection, phase=replace(phase, waiting=(*phase.waiting, event))), ()
    if isinstance(event, events.gateway.SessionEndRequested):
        connection = replace(connection, phase=Ending(now_ms))
    return connection, (Append(event),)


def _event(message: ClientMessage) -> events.Event:
    match message:
        case messages.Text():
            return events.gateway.TextReceived(text=message.text, text_id=message.text_id)
        case messages.Playback():
            return events.gateway.PlaybackReported(
                generation=message.generation,
                played_ms=message.played_ms,
                state=message.state,  # type: ignore[arg-type]  # checked against PLAYBACK_STATES
            )
        case messages.Interrupt():
            return events.gateway.InterruptRequested()
        case messages.Reset():
            return events.gateway.ResetRequested()
        case messages.Output():
            return events.gateway.OutputRequested(output=message.output)  # type: ignore[arg-type]  # checked against OUTPUTS
        case messages.AudioEnd():
            return events.gateway.AudioEnded()
        case messages.ApprovalAnswer():
            return events.gateway.ApprovalClicked(
                approval_id=message.approval_id,
                answer=message.answer,  # type: ignore[arg-type]  # checked against ANSWERS
                scope=message.scope,  # type: ignore[arg-type]  # checked against SCOPES
            )
        case messages.RunAnswer():
            return events.gateway.RunAnswerReceived(run_id=message.run_id, text=message.text, step=message.step)
        case messages.Awareness():
            return reports.event(message.event_type, msgspec.structs.asdict(message))
        case messages.CancelTask():
            return events.gateway.TaskCancelRequested(task_id=message.task_id)
        case _:
            return events.gateway.SessionEndRequested(by="client", reason="client_ended")


def _check_room(waiting: int) -> None:
    if waiting >= WAITING_LIMIT:
        message = f"{WAITING_LIMIT} messages wait for the session to open. Wait for `setup_complete` or `resumed`."
        raise VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT)


def _before_start(connection: Connection, what: str) -> VoxbridgeError:
    first = connection.reader.first
    return VoxbridgeError(Code.CONFLICT, f"{what} came before `{first}`. Send `{first}` or `resume` first.", field="type")


def _has_its_session() -> VoxbridgeError:
    return VoxbridgeError(Code.CONFLICT, "This socket has its session; open another socket for another one.", field="type")
