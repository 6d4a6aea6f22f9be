"""The client's messages on the VOX socket and their parsing: types, ranges, and an error that names what is wrong.

Owns the inbound messages of docs/protocol.md, sections 2 and 4. Does not own what a message causes: `step` does. Pure; nothing is lost in a
crash here.
"""

from __future__ import annotations

import binascii
import re
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.core import page_functions, reports
from voxbridge.services.gateway.core.page_functions import PageFunction
from voxbridge.shared import time_zones
from voxbridge.shared.audio import frames
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep_json

MESSAGE_LIMIT: Final = 1024 * 1024
"""Bytes of one message; larger ones are refused with `TOO_LARGE` and the socket stays open."""
TEXT_LIMIT: Final = 8_192
PROMPT_LIMIT: Final = 16_384
NAME_LIMIT: Final = 256
TEXT_ID_LIMIT: Final = 64
AGENT_LIMIT: Final = 64
"""Characters of the name of an agent or of a pipeline."""
TOKEN_LIMIT: Final = 4_096
RESULT_LIMIT: Final = 256 * 1024
"""Bytes of a page's answer to a call, so that it fits into one event of the log."""
ANSWER_LIMIT: Final = 2_000
"""Characters of an answer to the question of a run."""
COUNTER_LIMIT: Final = 0xFFFF_FFFF
POSITION_LIMIT: Final = 2**53 - 1
"""The largest integer that every JSON parser keeps exactly."""
MODES: Final = ("local", "echo", "gemini", "openai", "claude")
OUTPUTS: Final = ("audio", "text")
SESSION_ID: Final = re.compile(r"[0-9a-f]{32}")
PLAYBACK_STATES: Final = ("playing", "finished", "flushed")
ANSWERS: Final = ("approved", "denied")
SCOPES: Final = ("once", "arguments", "function")


class Start(msgspec.Struct, frozen=True, tag="start", rename="camel"):
    """Open the session."""

    mode: str
    model: str | None = None
    voice: str | None = None
    system_prompt: str | None = None
    agent: str | None = None
    output: str | None = None
    record: bool | None = None
    filler: bool | None = None
    token: str | None = None
    time_zone: str | None = None
    tools: list[PageFunction] = []
    browser_functions: list[str] | None = None
    session_token: str | None = msgspec.field(name="session_token", default=None)


class Audio(msgspec.Struct, frozen=True, tag="audio"):
    """Microphone audio in base64."""

    data: str


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Typed text."""

    text: str
    text_id: str = msgspec.field(name="id", default="")


class BrowserFunctionResult(msgspec.Struct, frozen=True, tag="browser_function_result"):
    """The page's answer to a call."""

    name: str
    result: dict[str, Any]
    fn_call_id: str | None = None


class End(msgspec.Struct, frozen=True, tag="end"):
    """End the session."""


class Playback(msgspec.Struct, frozen=True, tag="playback"):
    """Progress of a reply's playback."""

    generation: int
    played_ms: int
    state: str


class Interrupt(msgspec.Struct, frozen=True, tag="interrupt"):
    """Stop speaking."""


class ApprovalAnswer(msgspec.Struct, frozen=True, tag="approval_answer"):
    """The user's answer, by a click, to a request for approval; `scope` makes a yes stand for later calls too."""

    approval_id: str
    answer: str
    scope: str = "once"


class RunAnswer(msgspec.Struct, frozen=True, tag="run_answer"):
    """The user's answer to the question of a run; `step` names the step that asked."""

    run_id: str
    text: str
    step: str = ""


class CancelTask(msgspec.Struct, frozen=True, tag="cancel_task"):
    """Cancel a task."""

    task_id: str


class Awareness(msgspec.Struct, frozen=True, tag="awareness"):
    """A page that the user came to, an error that the page met, or something that it states about the user's work."""

    event_type: str
    page: str = ""
    title: str = ""
    error_type: str = ""
    message: str = ""
    key: str = ""
    value: str = ""


class Reset(msgspec.Struct, frozen=True, tag="reset"):
    """Begin the conversation anew, in the same session."""


class Output(msgspec.Struct, frozen=True, tag="output"):
    """Go on by voice (`audio`) or in text."""

    output: str


class AudioEnd(msgspec.Struct, frozen=True, tag="audio_end"):
    """The microphone was paused or released."""


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """Resume a session."""

    session_id: str = msgspec.field(name="sessionId")
    resume_token: str = msgspec.field(name="resumeToken")
    last_seq: int


ClientMessage = (
    Start
    | Resume
    | Audio
    | Text
    | BrowserFunctionResult
    | End
    | Playback
    | Interrupt
    | Reset
    | Output
    | AudioEnd
    | ApprovalAnswer
    | RunAnswer
    | CancelTask
    | Awareness
)
V1_ONLY: Final = (Resume, Playback, Interrupt, Reset, Output, AudioEnd, ApprovalAnswer, RunAnswer, CancelTask, Awareness)

_decoder: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_encoder = msgspec.msgpack.Encoder()
_PATH: Final = re.compile(r"\$\.([A-Za-z_][\w.]*)")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")


def read(payload: bytes) -> ClientMessage:
    """Parse the message in a text frame. Raises `INVALID_MESSAGE`, `INVALID_ARGUMENT` or `TOO_LARGE` naming the field and the limit."""
    if len(payload) > MESSAGE_LIMIT:
        raise too_large(len(payload))
    try:
        message = _decoder.decode(payload)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise VoxbridgeError(Code.INVALID_MESSAGE, "This message is not JSON in UTF-8. Send one JSON object with a `type`.") from None
    except RecursionError:
        raise _too_deep() from None
    if is_deep_json(payload):
        raise _too_deep()
    _check(message)
    return message


def _too_deep() -> VoxbridgeError:
    message = f"A message has at most {DEPTH_LIMIT} objects and arrays within one another."
    return VoxbridgeError(Code.INVALID_MESSAGE, message, field="message", limit=DEPTH_LIMIT)


def too_large(size: int) -> VoxbridgeError:
    """Return the error for a message of `size` bytes."""
    return VoxbridgeError(
        Code.TOO_LARGE, f"A message has at most {MESSAGE_LIMIT} bytes, this one {size}.", field="message", limit=MESSAGE_LIMIT
    )


def pcm_of(message: Audio) -> bytes:
    """Return the samples of a base64 message. Raises `INVALID_ARGUMENT` or `TOO_LARGE`."""
    try:
        pcm = binascii.a2b_base64(message.data, strict_mode=True)
    except ValueError:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "`data` is not base64 with padding and without line breaks.", field="data") from None
    frames.check_pcm(len(pcm))
    return pcm


def _invalid(reason: str) -> VoxbridgeError:
    """Turn an error of msgspec into ours. Its sentence is kept, because it names the expected and the given type."""
    missing = _MISSING.search(reason)
    path = _PATH.search(reason)
    field = missing.group(1) if missing else path.group(1) if path else None
    if field == "type":
        known = ", ".join(f"`{name}`" for name in sorted(_TYPES))
        return VoxbridgeError(Code.INVALID_MESSAGE, f"The message has no known `type`. Known are {known}.", field="type")
    if field is None:
        return VoxbridgeError(Code.INVALID_MESSAGE, "A message is one JSON object with a `type`.")
    return VoxbridgeError(Code.INVALID_MESSAGE, f"The field `{field}` is wrong: {reason[:1].lower()}{reason[1:]}.", field=field)


def time_zone(field: str, name: str) -> None:
    """Raise `INVALID_ARGUMENT` for what is not a name of a time zone; empty is none."""
    if name and not time_zones.is_name(name):
        message = f"`{field}` is the name of a time zone such as Europe/Lisbon."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field, limit=time_zones.LENGTH_LIMIT)


def _check(message: ClientMessage) -> None:
    match message:
        case Start():
            _among("mode", message.mode, MODES)
            _at_most("model", message.model, NAME_LIMIT)
            _at_most("voice", message.voice, NAME_LIMIT)
            _at_most("systemPrompt", message.system_prompt, PROMPT_LIMIT)
            _at_most("agent", message.agent, AGENT_LIMIT)
            if message.output is not None:
                _among("output", message.output, OUTPUTS)
            _at_most("token", message.token, TOKEN_LIMIT)
            time_zone("timeZone", message.time_zone or "")
            _at_most("session_token", message.session_token, TOKEN_LIMIT)
            _storable("tools", {"tools": message.tools})
            page_functions.check(message.tools)
            page_functions.check_names(message.browser_functions or ())
        case Resume():
            if SESSION_ID.fullmatch(message.session_id) is None:
                raise VoxbridgeError(
                    Code.INVALID_ARGUMENT, "`sessionId` is 32 characters of 0-9 and a-f.", field="sessionId", limit=SESSION_ID.pattern
                )
            _filled("resumeToken", message.resume_token, NAME_LIMIT)
            _counter("last_seq", message.last_seq, POSITION_LIMIT)
        case Text():
            _filled("text", message.text, TEXT_LIMIT)
            _at_most("id", message.text_id, TEXT_ID_LIMIT)
        case BrowserFunctionResult():
            _filled("name", message.name, NAME_LIMIT)
            _at_most("fn_call_id", message.fn_call_id, NAME_LIMIT)
            _storable("result", message.result)
        case Playback():
            _counter("generation", message.generation)
            _counter("played_ms", message.played_ms)
            _among("state", message.state, PLAYBACK_STATES)
        case Output():
            _among("output", message.output, OUTPUTS)
        case ApprovalAnswer():
            _filled("approval_id", message.approval_id, NAME_LIMIT)
            _among("answer", message.answer, ANSWERS)
            _among("scope", message.scope, SCOPES)
        case RunAnswer():
            _filled("run_id", message.run_id, NAME_LIMIT)
            _filled("text", message.text, ANSWER_LIMIT)
            _at_most("step", message.step, NAME_LIMIT)
        case CancelTask():
            _filled("task_id", message.task_id, NAME_LIMIT)
        case Awareness():
            reports.check(message.event_type, msgspec.structs.asdict(message))
        case _:
            pass


def _filled(field: str, value: str, limit: int) -> None:
    if not value:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` has 1 to {limit} characters; it is empty.", field=field, limit=limit)
    _at_most(field, value, limit)


def _at_most(field: str, value: str | None, limit: int) -> None:
    if value is not None and len(value) > limit:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"`{field}` has at most {limit} characters; this one has {len(value)}.", field=field, limit=limit
        )


def _among(field: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        names = ", ".join(allowed)
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` is one of {names}; it is {value[:64]!r}.", field=field, limit=names)


def _counter(field: str, value: int, most: int = COUNTER_LIMIT) -> None:
    if not 0 <= value <= most:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` is from 0 to {most}.", field=field, limit=f"0..{most}")


def _storable(field: str, value: dict[str, Any]) -> None:
    try:
        size = len(_encoder.encode(value))
    except (OverflowError, RecursionError, ValueError):
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"`{field}` holds what the log cannot keep: whole numbers have at most 64 bits.",
            field=field,
            limit="64 bits",
        ) from None
    if size > RESULT_LIMIT:
        raise VoxbridgeError(
            Code.TOO_LARGE, f"`{field}` has at most {RESULT_LIMIT} bytes; this one has {size}.", field=field, limit=RESULT_LIMIT
        )


_TYPES: Final = [str(kind.__struct_config__.tag) for kind in (Start, Audio, Text, BrowserFunctionResult, End, *V1_ONLY)]
