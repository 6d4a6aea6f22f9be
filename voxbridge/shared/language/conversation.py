"""The conversation that a language model is given, and what comes of it.

Voice sessions journal these, so their fields and tags are part of the log format: add a field with a default, never rename one.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.agents.functions import Function


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A function call as the history keeps it."""

    call_id: str
    name: str
    arguments: dict[str, Any]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of the conversation, with the roles of chat completions."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    call_id: str = ""


class Complete(msgspec.Struct, frozen=True, kw_only=True, tag="complete"):
    """Request for a completion by the language model. A successor repeats it: the text of the first completion is kept, and the second
    one adds what goes beyond it. It is not repeated after a call: calls come last, and no call may be made twice."""

    model: str
    messages: tuple[Message, ...]
    functions: tuple[Function, ...]
    provider: str = ""
    shared: bool = False
    """True if instructions and functions hold nothing of this session: the endpoint may keep its cache of them for other sessions."""

    background: bool = False
    """True if nobody listens to the answer: the installation's own models serve live calls first."""


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta"):
    """Further text of the language model."""

    effect: int
    text: str


class ToolRequested(msgspec.Struct, frozen=True, kw_only=True, tag="tool_requested"):
    """Function call requested by the language model; `arguments` are parsed from its output."""

    effect: int
    name: str
    arguments: dict[str, Any]


class Completed(msgspec.Struct, frozen=True, kw_only=True, tag="completed"):
    """End of a completion."""

    effect: int
    input_tokens: int = 0
    output_tokens: int = 0
    more: bool = False
    """True if the user's words hold another wish: the model is asked for it with the result of this call."""


Written = TextDelta | ToolRequested | Completed
