"""The messages of Gemini Live that are used here, with the wire's own names, read by msgspec. Unknown fields are ignored."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec


class Blob(msgspec.Struct, frozen=True, rename="camel"):
    """Audio, in base64."""

    data: str = ""
    mime_type: str = ""


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """A piece of a model turn."""

    text: str = ""
    thought: bool = False
    inline_data: Blob | None = None


class Content(msgspec.Struct, frozen=True, rename="camel"):
    """A model turn, in parts."""

    parts: tuple[Part, ...] = ()


class Transcription(msgspec.Struct, frozen=True, rename="camel"):
    """Words that were heard or spoken."""

    text: str = ""


class ServerContent(msgspec.Struct, frozen=True, rename="camel"):
    """Output of the model."""

    model_turn: Content | None = None
    turn_complete: bool = False
    generation_complete: bool = False
    interrupted: bool = False
    input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    turn_complete_reason: str | None = None
    waiting_for_input: bool = False


class FunctionCall(msgspec.Struct, frozen=True, rename="camel"):
    """A call that the model asks for."""

    id: str = ""
    name: str = ""
    args: dict[str, Any] | None = None


class ToolCall(msgspec.Struct, frozen=True, rename="camel"):
    """Calls, to be answered by id."""

    function_calls: tuple[FunctionCall, ...] = ()


class ToolCallCancellation(msgspec.Struct, frozen=True, rename="camel"):
    """Calls that are no longer wanted."""

    ids: tuple[str, ...] = ()


class GoAway(msgspec.Struct, frozen=True, rename="camel"):
    """Notice that the connection is about to be closed. `time_left` is a duration such as `50s` or `9.5s`."""

    time_left: str = ""


class ResumptionUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """News of resumption: whether the session can be resumed now, and with which handle."""

    new_handle: str = ""
    resumable: bool = False


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens so far. By the price list, the result of a function counts as input, and the model's thoughts as output."""

    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    response_token_count: int | None = None
    thoughts_token_count: int | None = None

    @property
    def input_tokens(self) -> int:
        """All tokens that were read."""
        return (self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0)

    @property
    def output_tokens(self) -> int:
        """All tokens that were made."""
        return (self.response_token_count or 0) + (self.thoughts_token_count or 0)


class ServerMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message; any of its fields may be present together."""

    server_content: ServerContent | None = None
    tool_call: ToolCall | None = None
    tool_call_cancellation: ToolCallCancellation | None = None
    go_away: GoAway | None = None
    session_resumption_update: ResumptionUpdate | None = None
    usage_metadata: Usage | None = None


DEFAULT_LEFT_MS: Final = 10_000
"""Milliseconds left after a go-away that does not say how long."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)s")
decode: Final = msgspec.json.Decoder(ServerMessage).decode


def duration_ms(text: str) -> int:
    """Return the ms of a duration as protobuf writes it; `DEFAULT_LEFT_MS` for any other text."""
    found = _DURATION.fullmatch(text)
    return round(float(found.group(1)) * 1_000) if found else DEFAULT_LEFT_MS
