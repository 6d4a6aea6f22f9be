"""Language models behind OpenAI's chat completions: voxbridge/services/models, Ollama, vLLM, OpenAI itself.

Owns the encoding of a conversation and the reading of the stream. Does not own the connection (`endpoints`). A crash here loses the
answer in progress.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final

import httpx2
import msgspec
import openai
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import base, dialects, endpoints, own_offer
from voxbridge.shared.language.conversation import Complete, Completed, Message, TextDelta, ToolRequested, ToolUse, Written
from voxbridge.shared.language.thoughts import Thoughts
from voxbridge.shared.language.tool_calls import ToolCalls

MAX_TOKENS: Final = 320
VENDOR_MAX_TOKENS: Final = 1_024

_WITHOUT_REASONING: Final = ("gpt-5.", "gpt-6")
"""Models that reason unless they are told not to, and that call functions over chat completions only if they are told not to reason."""

Client = Callable[[], AbstractAsyncContextManager[endpoints.Held[AsyncOpenAI]]]

Catalogue = Callable[[], Sequence[Function]]


def client(url: str, key: str, *, hook: bool = True) -> AsyncOpenAI:
    """Return a client of the SDK with this installation's timeouts."""
    timeout = openai.Timeout(base.READ_TIMEOUT_S, connect=base.CONNECT_TIMEOUT_S)
    http = DefaultAsyncHttpxClient(timeout=timeout, event_hooks={"response": [endpoints.no_long_wait]}) if hook else None
    return AsyncOpenAI(base_url=url, api_key=key or "local", max_retries=base.RETRIES, timeout=timeout, http_client=http)


class ChatCompletions:
    """The language models of an endpoint. `vendor` marks OpenAI's own, whose newer models refuse parameters that older ones and other
    servers need. `catalogue` marks voxbridge/services/models, which keeps prompts on disk where it is told that it may, and chooses
    among functions by what people say; it returns the functions of the installation, without I/O."""

    def __init__(self, client: Client, default_model: str, *, vendor: bool = False, catalogue: Catalogue | None = None) -> None:
        self._client = client
        self._default_model = default_model
        self._vendor = vendor
        self._catalogue = catalogue

    async def close(self) -> None:
        """Do nothing: the owner of the client closes it."""

    async def warm(
        self,
        model: str,
        instructions: str,
        functions: Sequence[Function],
        *,
        shared: bool = True,
        said: Sequence[Message] = (),
        asked: bool = False,
    ) -> None:
        """Have the model read what requests of a session begin with: the instructions, and what was `said`. `shared` is as in
        `Complete`. With `asked`, `said` ends with a request that may be made in a moment: it is read as it will be made, or refused with
        `OVERLOADED` while the model works for others."""
        follows: list[Any] = [_message(message) for message in said]
        if self._catalogue is None:  # another server, which has to answer something
            follows.append({"role": "user", "content": "Hi"})
        async with self._client() as held:
            with named("language", held.key):
                await held.client.chat.completions.create(
                    model=model or self._default_model,
                    messages=[{"role": "system", "content": instructions}, *follows],
                    max_tokens=1,
                    temperature=0.0,
                    **self._offer(functions, shared=shared, background=not asked, ahead=True),
                )

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model, as `LanguageModel.complete` says."""
        calls, thoughts = ToolCalls(), Thoughts()
        usage: Any = None
        finished, more = "", False
        model = request.model or self._default_model
        async with self._client() as held:
            with named("language", held.key):
                stream = await held.client.chat.completions.create(
                    model=model,
                    messages=[_message(message) for message in request.messages],
                    stream=True,
                    stream_options={"include_usage": True},
                    **self._offer(request.functions, shared=request.shared, background=request.background),
                    **self._manner(model),
                )
                async with stream:
                    async for chunk in stream:
                        usage = chunk.usage or usage
                        more = more or (self._catalogue is not None and getattr(chunk, "more", False) is True)
                        for choice in chunk.choices:
                            finished = choice.finish_reason or finished
                            if choice.delta.content and (text := thoughts.take(choice.delta.content)):
                                yield TextDelta(effect, text)
                            for call in choice.delta.tool_calls or ():
                                calls.take(call)
        if finished == "content_filter":
            raise base.refused("was stopped by its content filter.")
        if text := thoughts.rest():
            yield TextDelta(effect, text)
        if finished == "length" and thoughts.inside:
            raise base.refused("spent all of its tokens on thinking. Choose a model that does not think aloud, or switch its thinking off.")
        if finished == "length" and calls.calls:
            raise base.refused("reached its limit of tokens in the middle of a call.")
        # All calls are parsed before the first is made: a reply with a broken call has no effect at all.
        requested = [ToolRequested(effect=effect, name=call.name, arguments=base.arguments(call.arguments)) for call in calls.calls]
        for request_of_tool in requested:
            yield request_of_tool if self._catalogue is None else own_offer.as_offered(request_of_tool, request.functions)
        yield Completed(
            effect=effect,
            input_tokens=usage.prompt_tokens if usage else 0,
            output_tokens=usage.completion_tokens if usage else 0,
            more=more,
        )

    def _offer(self, functions: Sequence[Function], *, shared: bool, background: bool = False, ahead: bool = False) -> dict[str, Any]:
        """Return the arguments that offer functions. To the installation's own service they go past the SDK, which takes 4 ms to go through
        ninety of them with what people say for each."""
        if self._catalogue is None:
            return {"tools": [_tool(function) for function in functions] or openai.omit}
        tools = own_offer.offer(functions, self._catalogue())
        told = {"tools": tools, "keep_prompt": shared, "background": background, "ahead": ahead}
        return {"extra_body": {name: value for name, value in told.items() if value} or None}

    def _manner(self, model: str) -> dict[str, Any]:
        if not self._vendor:
            return {"max_tokens": MAX_TOKENS, "temperature": 0.0}
        effort = {"reasoning_effort": "none"} if model.startswith(_WITHOUT_REASONING) else {}
        return {"max_completion_tokens": VENDOR_MAX_TOKENS, **effort}


def _message(message: Message) -> Any:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if message.uses:
        return {"role": "assistant", "content": message.text or None, "tool_calls": [_call(use) for use in message.uses]}
    return {"role": message.role, "content": message.text}


def _call(use: ToolUse) -> Any:
    arguments = msgspec.json.encode(use.arguments).decode()
    return {"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _tool(function: Function) -> Any:
    return {
        "type": "function",
        "function": {"name": function.name, "description": function.description, "parameters": dialects.openai(function.parameters)},
    }


@contextmanager
def named(part: str, key: str = "") -> Iterator[None]:
    """Convert an error of the clients, or one from a malformed answer, to an error that names the part and does not hold the key. With
    a key the cause is left out too: its text may quote the key."""
    try:
        yield
    except VoxbridgeError:
        raise
    except (openai.OpenAIError, httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _error(part, key, error) from (None if key else error)


def _error(part: str, key: str, error: Exception) -> VoxbridgeError:
    match error:
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return base.timed_out(part)
        case openai.APIConnectionError() | httpx2.TransportError():
            return base.unreachable(part, error, key)
        case openai.APIStatusError():
            return base.failed(part, error.status_code, error.message, key=key, headers=error.response.headers)
        case openai.APIError():
            return base.failed(part, 400, error.message, key=key)
        case httpx2.HTTPStatusError():
            return base.failed(part, 503, f"HTTP {error.response.status_code}", key=key)
        case _:
            return base.unreadable(part, error, key)
