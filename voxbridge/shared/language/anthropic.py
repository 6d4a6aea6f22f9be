"""Claude, through Anthropic's messages API.

Owns the encoding of a conversation and the reading of the stream. Every call of a message is answered in the next message. The parts
that do not change between requests come first and are cached. Calls are passed on only when all of them are complete. Does not own the
key (`endpoints`). A crash here loses the answer in progress.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import anthropic
import httpx2
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import RawContentBlockDeltaEvent, RawMessageDeltaEvent, RawMessageStreamEvent
from msgspec.structs import replace

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import base, dialects, endpoints
from voxbridge.shared.language.base import Turn
from voxbridge.shared.language.conversation import Complete, Completed, TextDelta, ToolRequested, ToolUse, Written

MAX_TOKENS: Final = 4_096
"""Tokens of one message, including the model's thoughts: the newer models cannot be kept from thinking."""

PAUSES_LIMIT: Final = 3
"""Number of times that a message that the service paused is continued."""

_EFFORT: Final = ("claude-sonnet-5", "claude-opus-5", "claude-haiku-5", "claude-fable-5", "claude-mythos-5", "claude-sonnet-4-6")
"""Models that think unless they are told to make little effort. Others are not told, since older ones refuse the field."""

_CACHED: Final = {"type": "ephemeral"}

_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status of each type of error that comes within a stream, where the status of the response was sent before the error."""


class _Block:
    """A content block as it grows."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.fields = start
        self.json = ""

    def add(self, event: RawContentBlockDeltaEvent) -> None:
        delta = event.delta
        match delta.type:
            case "text_delta":
                self.fields["text"] += delta.text
            case "input_json_delta":
                self.json += delta.partial_json
                base.bounded(self.json)
            case "thinking_delta":
                self.fields["thinking"] += delta.thinking
            case "signature_delta":
                self.fields["signature"] = delta.signature

    @property
    def called(self) -> bool:
        return bool(self.fields["type"] == "tool_use")

    def request(self, effect: int) -> ToolRequested:
        return ToolRequested(effect=effect, name=self.fields["name"], arguments=base.arguments(self.json))

    def param(self) -> dict[str, Any]:
        return {**self.fields, "input": base.arguments(self.json)} if self.json else self.fields


class _Answer:
    """A message of the model, read from its stream."""

    def __init__(self) -> None:
        self.blocks: dict[int, _Block] = {}
        self.input_tokens = 0
        self.output_tokens = 0
        self.reason = ""
        self.why = ""
        self.whole = False

    def take(self, event: RawMessageStreamEvent) -> str:
        """Read an event; return the text that it adds."""
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                self.blocks[event.index] = _Block(event.content_block.model_dump(exclude_none=True))
                text = self.blocks[event.index].fields.get("text", "")
                return f" {text}" if self._said() and self.blocks[event.index].fields["type"] == "text" else text
            case "content_block_delta":
                self.blocks[event.index].add(event)
                return event.delta.text if event.delta.type == "text_delta" else ""
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.whole = True
        return ""

    def _said(self) -> bool:
        *earlier, _ = self.blocks.values()
        return any(block.fields.get("text") for block in earlier)

    def _end(self, event: RawMessageDeltaEvent) -> None:
        self._count(event.usage)
        self.reason = event.delta.stop_reason or self.reason
        details = event.delta.stop_details
        if details is not None:
            self.why = details.explanation or details.category or ""

    def _count(self, usage: Any) -> None:
        if usage.input_tokens is not None:
            self.input_tokens = usage.input_tokens + (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        self.output_tokens = usage.output_tokens

    def calls(self, effect: int) -> list[ToolRequested]:
        """Return the calls of a complete message. Raises the error that a message ended with instead."""
        if not self.whole:
            raise base.cut_off()
        called = [block for block in self.blocks.values() if block.called]
        match self.reason:
            case "refusal":
                raise base.refused(f"refused to answer: {self.why or 'it gave no reason'}")
            case "model_context_window_exceeded":
                raise base.refused("has no room left: the conversation fills its context window.")
            case "max_tokens" if called:
                raise base.refused("reached its limit of tokens in the middle of a call.")
        return [block.request(effect) for block in called]


class Claude:
    """Anthropic's language models."""

    def __init__(self, keys: endpoints.Keys) -> None:
        self._clients = endpoints.KeyedClient("anthropic", keys, _client, AsyncAnthropic.close)

    async def close(self) -> None:
        """Close the connections."""
        await self._clients.close()

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model, as `LanguageModel.complete` says. A message that the service pauses is continued, `PAUSES_LIMIT` times."""
        body = asked = _body(request)
        said: list[dict[str, Any]] = []
        input_tokens = output_tokens = 0
        async with self._clients.use() as held:
            for _ in range(PAUSES_LIMIT + 1):
                answer = _Answer()
                with named(held.key):
                    async with await held.client.messages.create(**body, stream=True) as stream:
                        async for event in stream:
                            text = answer.take(event)
                            if text:
                                yield TextDelta(effect, text)
                    calls = answer.calls(effect)
                input_tokens += answer.input_tokens
                output_tokens += answer.output_tokens
                if answer.reason != "pause_turn" or calls:
                    break
                said.extend(block.param() for block in answer.blocks.values())
                body = {**asked, "messages": [*asked["messages"], {"role": "assistant", "content": said}]}
            else:
                raise base.refused(f"paused more than {PAUSES_LIMIT} times.")
        names = {function.name: dialects.anthropic_names(function.parameters) for function in request.functions}
        for call in calls:
            yield _as_declared(call, names.get(call.name, {}))
        yield Completed(effect=effect, input_tokens=input_tokens, output_tokens=output_tokens)


def _client(key: str) -> AsyncAnthropic:
    timeout = anthropic.Timeout(base.READ_TIMEOUT_S, connect=base.CONNECT_TIMEOUT_S)
    http = DefaultAsyncHttpxClient(timeout=timeout, event_hooks={"response": [endpoints.no_long_wait]})
    url = endpoints.VENDORS["anthropic"].base_url
    return AsyncAnthropic(api_key=key, base_url=url, max_retries=base.RETRIES, timeout=timeout, http_client=http)


def _body(request: Complete) -> dict[str, Any]:
    model = request.model or endpoints.VENDORS["anthropic"].llm
    instructions, turns = base.turns(request.messages)
    messages = [_message(turn) for turn in turns]
    # The next request begins with all of this: with the cache, a long conversation is not read anew with every turn.
    messages[-1]["content"][-1]["cache_control"] = _CACHED
    body: dict[str, Any] = {"model": model, "max_tokens": MAX_TOKENS, "messages": messages}
    if instructions:
        body["system"] = [{"type": "text", "text": instructions, "cache_control": _CACHED}]
    if model.startswith(_EFFORT):
        body["output_config"] = {"effort": "low"}
    if request.functions:
        body["tools"] = _tools(request.functions)
    elif uses := [use for turn in turns for use in turn.uses]:
        body["tools"] = _names(uses)
        body["tool_choice"] = {"type": "none"}
    return body


def _tools(functions: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the tools in the order of their names: the same functions are then the same bytes, by which the cache finds them."""
    tools: list[dict[str, Any]] = [
        {"name": function.name, "description": function.description, "input_schema": dialects.anthropic(function.parameters)}
        for function in sorted(functions, key=lambda function: function.name)
    ]
    tools[-1]["cache_control"] = _CACHED
    return tools


def _as_declared(call: ToolRequested, names: Mapping[str, str]) -> ToolRequested:
    """Return a call with the arguments' own names, where the model was told others."""
    if not names:
        return call
    return replace(call, arguments={names.get(name, name): value for name, value in call.arguments.items()})


def _names(uses: Sequence[ToolUse]) -> list[dict[str, Any]]:
    """Return stand-ins for functions that were called earlier and are not offered now: a conversation with calls needs their names."""
    return [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in sorted({use.name for use in uses})]


def _message(turn: Turn) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": result.use.call_id, "content": result.text, **({"is_error": True} if result.failed else {})}
        for result in turn.results
    ]
    blocks.extend({"type": "text", "text": text} for text in turn.texts)
    blocks.extend({"type": "tool_use", "id": use.call_id, "name": use.name, "input": use.arguments} for use in turn.uses)
    return {"role": turn.role, "content": blocks}


@contextmanager
def named(key: str) -> Iterator[None]:
    """Convert an error of the client to one that does not hold the key. The cause is left out: its text may quote the key."""
    try:
        yield
    except VoxbridgeError:
        raise
    except (anthropic.AnthropicError, httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _error(key, error) from None


def _error(key: str, error: Exception) -> VoxbridgeError:
    match error:
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return base.timed_out("language")
        case anthropic.APIConnectionError() | httpx2.TransportError():
            return base.unreachable("language", error, key)
        case anthropic.APIStatusError():
            within = error.status_code < 400
            status = _STATUS.get(error.type or "", 500) if within else error.status_code
            headers = {} if within else error.response.headers
            return base.failed("language", status, error.api_message or error.message, key=key, headers=headers)
        case _:
            return base.unreadable("language", error, key)
