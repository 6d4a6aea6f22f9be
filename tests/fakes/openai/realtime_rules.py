"""Client events of OpenAI Realtime in their GA shapes, checked strictly, and the errors for invalid ones.

Shapes are those of the vendor's SDK (openai/types/realtime). Codes and messages of errors are from documentation and from forum threads,
none of them from a live run.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, Literal

import msgspec

BYTES_PER_MS: Final = 48
ID_LIMIT: Final = 32
APPEND_LIMIT: Final = 15 * 1024 * 1024
"""Most bytes of base64 in one append."""

SHORTEST_MS: Final = 100
"""Least milliseconds of audio for a commit."""

VOICES: Final = frozenset({"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"})
_FIELD: Final = re.compile(r"unknown field `(?P<field>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_MISSING: Final = re.compile(r"missing required field `(?P<field>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_ELSEWHERE: Final = re.compile(r"at `\$\.?(?P<path>[^`]*)`")


class Refused(Exception):
    """An event that is answered with `error`."""

    def __init__(self, code: str, message: str, *, param: str | None = None, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.fields: dict[str, Any] = {"type": kind, "code": code, "message": message, "param": param}


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class _Pcm(_Strict, frozen=True):
    type: Literal["audio/pcm"]
    rate: Literal[24_000] = 24_000


class _Transcription(_Strict, frozen=True):
    model: str = "whisper-1"
    language: str = ""
    prompt: str = ""


class ServerVad(_Strict, frozen=True, tag_field="type", tag="server_vad"):
    """Speech detection by loudness."""

    create_response: bool = True
    interrupt_response: bool = True
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    threshold: float = 0.5
    idle_timeout_ms: int | None = None


class SemanticVad(_Strict, frozen=True, tag_field="type", tag="semantic_vad"):
    """Speech detection by meaning."""

    create_response: bool = True
    interrupt_response: bool = True
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"


class _Input(_Strict, frozen=True):
    format: _Pcm = _Pcm(type="audio/pcm")
    transcription: _Transcription | None = None
    turn_detection: ServerVad | SemanticVad | msgspec.UnsetType | None = msgspec.UNSET
    noise_reduction: dict[str, Any] | None = None


class _Output(_Strict, frozen=True):
    format: _Pcm = _Pcm(type="audio/pcm")
    voice: str | None = None
    speed: float = 1.0


class _AudioSettings(_Strict, frozen=True):
    input: _Input = _Input()
    output: _Output = _Output()


class _Tool(_Strict, frozen=True):
    type: Literal["function"]
    name: str
    parameters: dict[str, Any]
    description: str = ""


class _Session(_Strict, frozen=True):
    type: Literal["realtime"]
    audio: _AudioSettings = _AudioSettings()
    instructions: str = ""
    tools: list[_Tool] = []
    tool_choice: Any = "auto"
    output_modalities: tuple[Literal["text", "audio"], ...] = ("audio",)
    max_output_tokens: int | Literal["inf"] = "inf"
    model: str = ""
    include: list[str] = []
    parallel_tool_calls: bool = True
    prompt: Any = None
    reasoning: Any = None
    tracing: Any = None
    truncation: Any = "auto"


class SessionUpdate(_Strict, frozen=True, tag_field="type", tag="session.update"):
    """New settings of the session."""

    session: _Session
    event_id: str | None = None


class Content(_Strict, frozen=True):
    """A part of a message."""

    type: Literal["input_text", "input_audio", "output_text", "output_audio"]
    text: str = ""
    audio: str = ""
    transcript: str = ""


class MessageItem(_Strict, frozen=True, tag_field="type", tag="message"):
    """A message of either side."""

    role: Literal["user", "assistant", "system"]
    content: list[Content]
    id: str = ""
    status: str = "completed"


class CallItem(_Strict, frozen=True, tag_field="type", tag="function_call"):
    """A function call."""

    name: str
    arguments: str
    call_id: str = ""
    id: str = ""
    status: str = "completed"


class ResultItem(_Strict, frozen=True, tag_field="type", tag="function_call_output"):
    """The result of a function call."""

    call_id: str
    output: str
    id: str = ""
    status: str = "completed"


class ItemCreate(_Strict, frozen=True, tag_field="type", tag="conversation.item.create"):
    """A new item of the conversation."""

    item: MessageItem | CallItem | ResultItem
    previous_item_id: str | None = None
    event_id: str | None = None


class Truncate(_Strict, frozen=True, tag_field="type", tag="conversation.item.truncate"):
    """Truncation of an item to what the user heard."""

    item_id: str
    content_index: int
    audio_end_ms: int
    event_id: str | None = None


class Append(_Strict, frozen=True, tag_field="type", tag="input_audio_buffer.append"):
    """Microphone audio."""

    audio: str
    event_id: str | None = None


class Commit(_Strict, frozen=True, tag_field="type", tag="input_audio_buffer.commit"):
    """End of the user's turn."""

    event_id: str | None = None


class Clear(_Strict, frozen=True, tag_field="type", tag="input_audio_buffer.clear"):
    """Discard of the audio that was not committed."""

    event_id: str | None = None


class ResponseCreate(_Strict, frozen=True, tag_field="type", tag="response.create"):
    """Request for a response."""

    response: dict[str, Any] | None = None
    event_id: str | None = None


class ResponseCancel(_Strict, frozen=True, tag_field="type", tag="response.cancel"):
    """Cancellation of the response."""

    response_id: str | None = None
    event_id: str | None = None


ClientEvent = SessionUpdate | ItemCreate | Truncate | Append | Commit | Clear | ResponseCreate | ResponseCancel
_events: Final[msgspec.json.Decoder[ClientEvent]] = msgspec.json.Decoder(ClientEvent)


def read(message: bytes | str) -> ClientEvent:
    """Return a client event; raises `Refused` as the service would answer."""
    if isinstance(message, bytes):
        raise Refused("invalid_message", "Events are sent as text.")
    try:
        return _events.decode(message)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error
    except msgspec.DecodeError as error:
        raise Refused("invalid_json", "The event is not JSON.") from error


def pcm(audio: str) -> bytes:
    """Return the samples of an append. Raises `Refused`."""
    if len(audio) > APPEND_LIMIT:
        raise Refused("invalid_value", "An append has at most 15 MiB.", param="audio")
    try:
        found = base64.b64decode(audio, validate=True)
    except binascii.Error as error:
        raise Refused("invalid_value", "Invalid 'audio'. Expected base64-encoded audio bytes.", param="audio") from error
    if len(found) % 2 or not found:
        raise Refused("invalid_value", "Invalid 'audio'. Expected 16-bit samples.", param="audio")
    return found


def check_item(item: MessageItem | CallItem | ResultItem, calls: set[str]) -> None:
    """Raise `Refused` for an item that this conversation cannot take."""
    for name in ("id", "call_id"):
        value = getattr(item, name, "")
        if len(value) > ID_LIMIT:
            message = f"Invalid 'item.{name}': string too long. Expected a string with maximum length {ID_LIMIT}."
            raise Refused("string_above_max_length", message, param=f"item.{name}")
    if isinstance(item, ResultItem) and item.call_id not in calls:
        raise Refused("invalid_tool_call_id", f"Tool call ID '{item.call_id}' not found in conversation.", param="item.call_id")
    if isinstance(item, MessageItem):
        allowed = {"assistant": {"output_text"}, "system": {"input_text"}, "user": {"input_text", "input_audio"}}[item.role]
        for part in item.content:
            if part.type not in allowed:
                message = f"Invalid value: '{part.type}'. Supported values are: {sorted(allowed)}."
                raise Refused("invalid_value", message, param="item.content[0].type")


def _refusal(problem: str) -> Refused:
    for pattern, code, word in ((_FIELD, "unknown_parameter", "Unknown"), (_MISSING, "missing_required_parameter", "Missing required")):
        found = pattern.search(problem)
        if found is not None:
            param = ".".join(part for part in (found["path"] or "", found["field"]) if part)
            return Refused(code, f"{word} parameter: '{param}'.", param=param)
    elsewhere = _ELSEWHERE.search(problem)
    param = elsewhere["path"] if elsewhere else ""
    return Refused("invalid_value", f"Invalid value: '{param}'. {problem}", param=param or None)
