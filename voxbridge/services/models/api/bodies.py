"""The requests of the API, field by field, with their limits: the fields that OpenAI's clients send and this service understands.

Owns the translation of a chat request into the conversation of `core`. Fields that do not change a local answer are accepted and ignored,
as other compatible servers do.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from voxbridge.services.models.core import chatml
from voxbridge.shared.errors import Code, VoxbridgeError

MAX_TEXT: Final = 65_536
Text = Annotated[str, Field(max_length=MAX_TEXT)]
MAX_UTTERANCES: Final = 24
MAX_ORDERS: Final = 12
"""Templates of orders of one function."""
Template = Annotated[str, Field(max_length=500)]
MAX_NAMED: Final = 8
"""Arguments of a function that name something."""
MAX_NAMES: Final = 64
"""Things that there are for one of them."""
"""Utterances of one function."""
Utterance = Annotated[str, Field(max_length=200)]
ThingName = Annotated[str, Field(min_length=1, max_length=200)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=False)


class TextPart(_Body):
    """A piece of text in a message."""

    type: Literal["text"]
    text: Text


class FunctionCall(_Body):
    """The name and the arguments (JSON text) of a call."""

    name: Annotated[str, Field(max_length=64)]
    arguments: Text = "{}"


class ToolCall(_Body):
    """A call that the assistant made."""

    id: Annotated[str, Field(max_length=128)]
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(_Body):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[TextPart] | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None
    tool_call_id: Annotated[str, Field(max_length=128)] | None = None

    @property
    def text(self) -> str:
        """Text of all parts."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""

    def messages(self) -> list[chatml.Message]:
        """Return the equivalent messages of `core`."""
        match self.role:
            case "system" | "developer":
                return [chatml.Message("system", self.text)]
            case "tool":
                return [chatml.Message("tool", self.text, answers=self.tool_call_id or "")]
        said = [chatml.Message(self.role, self.text)] if self.text or not self.tool_calls else []
        calls = [chatml.Call(call.id, call.function.name, call.function.arguments) for call in self.tool_calls or ()]
        return [*said, *(chatml.Message(self.role, call=call) for call in calls)]


class Function(_Body):
    """A function that may be called."""

    name: str
    description: Annotated[str, Field(max_length=4_096)] | None = None
    parameters: dict[str, Any] | None = None
    utterances: Annotated[list[Utterance], Field(max_length=MAX_UTTERANCES)] = []
    """An extension: things that people say when they want it, by which the service chooses among many functions."""
    orders: Annotated[list[Template], Field(max_length=MAX_ORDERS)] = []
    """An extension: templates of requests that are calls of it as they stand, for which the model is not asked."""
    listed: bool = True
    """An extension: false for a function that may be called and is not told of in the prompt."""
    names: Annotated[dict[str, Annotated[list[ThingName], Field(max_length=MAX_NAMES)]], Field(max_length=MAX_NAMED)] = {}
    """An extension: the things that there are now, by the argument that names one: pages, macros, graphs."""
    reads: bool = False
    """An extension: true for a function that changes nothing, so that a question about what was done may surely want it."""


class ToolOffer(_Body):
    """A tool that may be called."""

    type: Literal["function"]
    function: Function


class NamedFunction(_Body):
    """The name of a function."""

    name: str


class NamedTool(_Body):
    """The one tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchema(_Body):
    """A schema for the answer."""

    name: str = "answer"
    schema_: dict[str, Any] = Field(alias="schema")


class ResponseFormat(_Body):
    """The required format of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(_Body):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(_Body):
    """A request for the next message of a conversation."""

    model: Annotated[str, Field(max_length=128)] = "local"
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=chatml.MAX_MESSAGES)]
    tools: list[ToolOffer] | None = None
    tool_choice: Literal["auto", "none", "required"] | NamedTool | None = None
    response_format: ResponseFormat | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=-1, le=2**31)] = -1
    max_tokens: Annotated[int, Field(ge=1, le=4_096)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=4_096)] | None = None
    stop: Annotated[str, Field(max_length=64)] | Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=4)] | None = None
    user: Annotated[str, Field(max_length=256)] | None = None
    keep_prompt: bool = False
    """An extension: save the system messages and the tools to disk once they were read. They are not private to a conversation."""
    background: bool = False
    """An extension: nobody listens to the answer, so live calls are served first; it comes in one piece."""
    ahead: bool = False
    """An extension: a request that may follow, to be read. It is refused with `OVERLOADED` while the model works for others, or in the
    `background` waits for its moment. Instructions alone are what conversations begin with: nothing is written behind them."""

    def conversation(self) -> list[chatml.Message]:
        """Return the messages for `core`."""
        return [each for message in self.messages for each in message.messages()]

    def said(self) -> bool:
        """Tell whether there is a conversation behind the instructions."""
        return any(message.role not in ("system", "developer") for message in self.messages)

    def offered(self) -> list[chatml.Tool]:
        """Return the tools for `core`. Raises the errors of `chatml.check_tools`."""
        tools = [
            chatml.Tool(
                one.name,
                one.description or "",
                one.parameters or {},
                tuple(one.utterances),
                one.listed,
                one.names,
                tuple(one.orders),
                one.reads,
            )
            for one in (offer.function for offer in self.tools or ())
        ]
        chatml.check_tools(tools)
        return tools

    def choice(self) -> chatml.Choice:
        """Return whether a tool is to be called, and which."""
        match self.tool_choice:
            case NamedTool(function=function):
                return chatml.Choice("required", function.name)
            case None:
                return chatml.Choice("auto")
            case mode:
                return chatml.Choice(mode)

    def answer_schema(self) -> dict[str, Any] | None:
        """Return the schema that the answer must fit, `{}` for any object, None for words. Raises `INVALID_ARGUMENT`."""
        form = self.response_format
        if form is None or form.type == "text":
            return None
        if self.tools:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, "An answer is either JSON or may call tools: leave out one of them.", field="response_format"
            )
        if form.type == "json_object":
            return {}
        if form.json_schema is None:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, "The format json_schema needs the field json_schema.", field="response_format.json_schema"
            )
        return form.json_schema.schema_

    def stops(self) -> tuple[str, ...]:
        """Return the texts that end the answer."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in given if text)


class SpeechRequest(_Body):
    """A request to speak a text. `pcm` is 24 kHz mono PCM16, streamed while it is synthesized."""

    model: Annotated[str, Field(max_length=128)] = "piper"
    input: Annotated[str, Field(min_length=1, max_length=4_096)]
    voice: Annotated[str, Field(max_length=64)] = "default"
    response_format: Literal["pcm", "wav"] = "wav"
    speed: Annotated[float, Field(ge=0.25, le=4.0)] = 1.0
