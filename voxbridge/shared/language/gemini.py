"""Gemini as a language model of the cascade: text in, text and calls out, through google-genai.

Owns the encoding of a conversation and the reading of the stream. Does not own the key (`endpoints`) nor Gemini Live. A crash
here loses the answer in progress.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final, cast

import httpx2
import msgspec
from google import genai
from google.genai import errors, types

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import base, dialects, endpoints
from voxbridge.shared.language.base import Result, Turn
from voxbridge.shared.language.conversation import Complete, Completed, TextDelta, ToolRequested, ToolUse, Written
from voxbridge.shared.log.storable import storable

MAX_TOKENS: Final = 4_096
"""Tokens of one answer, including the model's thoughts."""

_UNSIGNED: Final = base64.urlsafe_b64decode("skip_thought_signature_validator")
"""Placeholder for the signature that Gemini 3 wants back with each of its calls: the conversation keeps no signatures, since other models
and other workers continue it. Google's documentation gives this text for that case; the SDK sends bytes as base64."""

_ENDS: Final = frozenset({types.FinishReason.STOP, types.FinishReason.MAX_TOKENS})


class Gemini:
    """Google's language models."""

    def __init__(self, keys: endpoints.Keys) -> None:
        self._clients = endpoints.KeyedClient("gemini", keys, _client, _close)

    async def close(self) -> None:
        """Close the connections."""
        await self._clients.close()

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model, as `LanguageModel.complete` says."""
        model = request.model or endpoints.VENDORS["gemini"].llm
        instructions, turns = base.turns(request.messages)
        called: list[types.FunctionCall] = []
        ended: types.FinishReason | None = None
        usage: types.GenerateContentResponseUsageMetadata | None = None
        async with self._clients.use() as held:
            with named(held.key):
                stream = await held.client.aio.models.generate_content_stream(
                    model=model, contents=[_content(turn, model) for turn in turns], config=_config(request.functions, instructions, model)
                )
                async with aclosing(cast("AsyncGenerator[types.GenerateContentResponse]", stream)) as chunks:
                    async for chunk in chunks:
                        usage = chunk.usage_metadata or usage
                        ended = _reason(chunk) or ended
                        for part in _parts(chunk):
                            if part.function_call is not None:
                                called.append(part.function_call)
                            elif part.text and not part.thought:
                                yield TextDelta(effect, part.text)
                requested = _calls(effect, called, ended)
        for call in requested:
            yield call
        yield Completed(
            effect=effect,
            input_tokens=(usage.prompt_token_count or 0) if usage else 0,
            output_tokens=((usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)) if usage else 0,
        )


def _client(key: str) -> genai.Client:
    retry = types.HttpRetryOptions(attempts=base.RETRIES + 1, initial_delay=0.5, max_delay=base.RETRY_WAIT_S, jitter=0.5)
    options = types.HttpOptions(
        base_url=endpoints.VENDORS["gemini"].base_url,
        timeout=round(base.READ_TIMEOUT_S * 1_000),
        async_client_args={"event_hooks": {"request": [_quick_to_connect]}},
        retry_options=retry,
    )
    return genai.Client(api_key=key, vertexai=False, http_options=options)


async def _close(client: genai.Client) -> None:
    await client.aio.aclose()
    client.close()


async def _quick_to_connect(request: httpx2.Request) -> None:
    # The SDK has one timeout for everything, but a model may stay silent for longer than connecting may take.
    request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "connect": base.CONNECT_TIMEOUT_S}


def _reason(chunk: types.GenerateContentResponse) -> types.FinishReason | None:
    feedback = chunk.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        raise base.refused(f"refused to answer: {feedback.block_reason_message or feedback.block_reason.value}")
    return chunk.candidates[0].finish_reason if chunk.candidates else None


def _parts(chunk: types.GenerateContentResponse) -> Sequence[types.Part]:
    content = chunk.candidates[0].content if chunk.candidates else None
    return (content.parts if content is not None else None) or ()


def _calls(effect: int, called: list[types.FunctionCall], ended: types.FinishReason | None) -> list[ToolRequested]:
    """Return the calls of a complete answer. Raises the error that an answer ended with instead."""
    if ended is None:
        raise base.cut_off()
    if ended not in _ENDS:
        raise base.refused(f"refused to answer: {ended.value}")
    if called and ended is types.FinishReason.MAX_TOKENS:
        raise base.refused("reached its limit of tokens in the middle of a call.")
    for call in called:
        base.bounded(json.dumps(call.args))
    return [ToolRequested(effect=effect, name=call.name or "", arguments=storable(dict(call.args or {}))) for call in called]


def _config(functions: tuple[Function, ...], instructions: str, model: str) -> types.GenerateContentConfig:
    declared = [
        types.FunctionDeclaration(
            name=function.name, description=function.description, parameters_json_schema=dialects.gemini(function.parameters)
        )
        for function in sorted(functions, key=lambda function: function.name)
    ]
    return types.GenerateContentConfig(
        system_instruction=instructions or None,
        max_output_tokens=MAX_TOKENS,
        tools=[types.Tool(function_declarations=declared)] if declared else None,
        automatic_continuation=False,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=_thinking(model),
    )


def _thinking(model: str) -> types.ThinkingConfig | None:
    """Return the least thinking that the model can be told to do; None for an unknown model."""
    if model.startswith("gemini-3"):
        return types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
    if model.startswith("gemini-2.5-flash"):
        return types.ThinkingConfig(thinking_budget=0)
    return None


def _content(turn: Turn, model: str) -> types.Content:
    parts = [types.Part(function_response=_response(result)) for result in turn.results]
    parts.extend(types.Part(text=text) for text in turn.texts)
    parts.extend(_call(use, model) for use in turn.uses)
    return types.Content(role="user" if turn.role == "user" else "model", parts=parts)


def _call(use: ToolUse, model: str) -> types.Part:
    call = types.FunctionCall(id=use.call_id, name=use.name, args=use.arguments)
    return types.Part(function_call=call, thought_signature=None if model.startswith(("gemini-1", "gemini-2")) else _UNSIGNED)


def _response(result: Result) -> types.FunctionResponse:
    try:
        response = msgspec.json.decode(result.text, type=dict[str, Any])
    except msgspec.DecodeError:
        response = {"error" if result.failed else "output": result.text}
    return types.FunctionResponse(id=result.use.call_id, name=result.use.name, response=response)


@contextmanager
def named(key: str) -> Iterator[None]:
    """Convert an error of the client to one that does not hold the key. The cause is left out: its text may quote the key."""
    try:
        yield
    except VoxbridgeError:
        raise
    except (errors.APIError, httpx2.HTTPError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _error(key, error) from None


def _error(key: str, error: Exception) -> VoxbridgeError:
    match error:
        case httpx2.TimeoutException():
            return base.timed_out("language")
        case httpx2.TransportError() | OSError():
            return base.unreachable("language", error, key)
        case errors.APIError():
            headers = getattr(error.response, "headers", None) or {}
            # An invalid key is a bad request (400) here, and the message says which key it was.
            code = error.code or 500
            status = 401 if code == 400 and "api key" in (error.message or "").lower() else code
            return base.failed("language", status, error.message or str(error.status or ""), key=key, headers=headers)
        case _:
            return base.unreadable("language", error, key)
