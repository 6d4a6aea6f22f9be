"""The models behind the cascade, each an OpenAI-compatible endpoint: transcription, chat completion, speech, end of turn.

Which endpoint serves which part is a setting; the calls are the same for services/models, Ollama, vLLM or a vendor. Errors
come out as `VoxbridgeError` with the part's name, so that the session can say what failed.
"""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import msgspec
import openai
from openai import AsyncOpenAI

from services.voice.inputs import Completed, TextDelta, ToolRequested
from services.voice.outputs import Complete, Message, ToolUse
from shared.config import Config
from shared.errors import Code, VoxbridgeError
from shared.frames import INPUT_RATE
from shared.store import Function

CONNECT_TIMEOUT_S: Final = 3.0
READ_TIMEOUT_S: Final = 60.0
RETRIES: Final = 1
MAX_TOKENS: Final = 320
ARGUMENTS_LIMIT: Final = 64 * 1024
"""Characters of the arguments of one call."""

TEXT_LIMIT: Final = 64 * 1024
"""Characters of one transcript; the core bounds a reply itself."""

_CHUNK: Final = 4_800
"""Bytes of speech handed on at a time: 100 ms."""


class Transcript(msgspec.Struct, frozen=True):
    """What a transcription gave."""

    text: str
    language: str = ""
    confidence: float | None = None


class Models:
    """The endpoints of one installation, shared by all sessions of a process."""

    def __init__(self, config: Config) -> None:
        self._config = config
        local = config.models_base_url
        self._http = httpx2.AsyncClient(timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S))

        def client(url: str, key: str) -> AsyncOpenAI:
            timeout = openai.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
            return AsyncOpenAI(base_url=url or local, api_key=key or "local", max_retries=RETRIES, timeout=timeout)

        self._stt = client(config.stt_url, config.stt_key)
        self._llm = client(config.llm_url, config.llm_key)
        self._tts = client(config.tts_url, config.tts_key)
        self._turns_url = f"{local}/audio/turns"

    @property
    def local(self) -> bool:
        """Whether the language model is this installation's own: keeping a vendor's warm would cost money and change nothing."""
        return not self._config.llm_url

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(self._http.aclose(), self._stt.close(), self._llm.close(), self._tts.close())

    async def transcribe(self, pcm: bytes) -> Transcript:
        """The words in PCM16 at 16 kHz."""
        with _named("transcription"):
            found = await self._stt.audio.transcriptions.create(
                model=self._config.stt_model,
                file=("speech.wav", _wav(pcm), "audio/wav"),
                language=self._config.language,
                response_format="json",
            )
            text = found.text.strip()
        if len(text) > TEXT_LIMIT:
            raise VoxbridgeError(
                Code.PROVIDER_REFUSED, f"The transcription has {len(text)} characters; at most {TEXT_LIMIT} are taken.", limit=TEXT_LIMIT
            )
        return Transcript(text=text, language=self._config.language)

    async def judge_turn(self, pcm: bytes) -> float:
        """How likely the speaker has finished, from 0 to 1; `UNAVAILABLE` where the installation has no such model."""
        with _named("end-of-turn"):
            response = await self._http.post(self._turns_url, files={"file": ("speech.wav", _wav(pcm), "audio/wav")})
            response.raise_for_status()
            return float(response.json()["probability"])

    async def warm(self, model: str, instructions: str, functions: Sequence[Function]) -> None:
        """Have the language model read what every request of a session begins with, so that the first answer need not wait."""
        with _named("language"):
            await self._llm.chat.completions.create(
                model=model or self._config.llm_model,
                messages=[{"role": "system", "content": instructions}, {"role": "user", "content": "Hi"}],
                tools=[_tool(function) for function in functions] or openai.omit,
                max_tokens=1,
                temperature=0.0,
            )

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[TextDelta | ToolRequested | Completed, None]:
        """Run the language model; yields inputs for the core as they come, `Completed` last."""
        calls: dict[int, dict[str, str]] = {}
        usage: Any = None
        with _named("language"):
            stream = await self._llm.chat.completions.create(
                model=request.model or self._config.llm_model,
                messages=[_message(message) for message in request.messages],
                tools=[_tool(function) for function in request.functions] or openai.omit,
                max_tokens=MAX_TOKENS,
                temperature=0.0,
                stream=True,
                stream_options={"include_usage": True},
            )
            async with stream:
                async for chunk in stream:
                    usage = chunk.usage or usage
                    for choice in chunk.choices:
                        if choice.delta.content:
                            yield TextDelta(effect, choice.delta.content)
                        for call in choice.delta.tool_calls or ():
                            into = calls.setdefault(call.index, {"name": "", "arguments": ""})
                            if call.function is not None:
                                into["name"] += call.function.name or ""
                                into["arguments"] += call.function.arguments or ""
                                _bounded(into["arguments"])
        # All are read before the first is called: a reply with a broken call has no effect at all.
        requested = [ToolRequested(effect=effect, name=parts["name"], arguments=_arguments(parts["arguments"])) for parts in calls.values()]
        for request_of_tool in requested:
            yield request_of_tool
        yield Completed(
            effect=effect, input_tokens=usage.prompt_tokens if usage else 0, output_tokens=usage.completion_tokens if usage else 0
        )

    async def synthesize(self, text: str, voice: str) -> AsyncGenerator[bytes, None]:
        """Speech as PCM16 at 24 kHz, in even pieces, as it is made."""
        with _named("speech"):
            request = self._tts.audio.speech.with_streaming_response.create(
                model=self._config.tts_model, voice=voice or "default", input=text, response_format="pcm"
            )
            async with request as response:
                odd = b""
                async for chunk in response.iter_bytes(_CHUNK):
                    pcm = odd + chunk
                    odd = pcm[len(pcm) & ~1 :]
                    if len(pcm) > 1:
                        yield pcm[: len(pcm) & ~1]


def _wav(pcm: bytes) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(INPUT_RATE)
        file.writeframes(pcm)
    return out.getvalue()


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
        "function": {"name": function.name, "description": function.description, "parameters": function.parameters},
    }


def _bounded(arguments: str) -> None:
    if len(arguments) > ARGUMENTS_LIMIT:
        message = f"The language model wrote more than {ARGUMENTS_LIMIT} characters of arguments."
        raise VoxbridgeError(Code.PROVIDER_REFUSED, message, limit=ARGUMENTS_LIMIT)


def _arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise VoxbridgeError(Code.PROVIDER_REFUSED, f"The language model wrote arguments that are not JSON: {error}.") from error


@contextmanager
def _named(part: str) -> Iterator[None]:
    """Turn what the clients raise, and what they stumble over in an answer that is none, into an error that names the part."""
    try:
        yield
    except (openai.APITimeoutError, httpx2.TimeoutException) as error:
        raise VoxbridgeError(Code.TIMED_OUT, f"The {part} model did not answer in time.") from error
    except (openai.APIConnectionError, httpx2.TransportError) as error:
        raise VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model cannot be reached: {error}") from error
    except (openai.RateLimitError, openai.InternalServerError) as error:
        raise VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model failed: {error.message}") from error
    except openai.APIError as error:
        raise VoxbridgeError(Code.PROVIDER_REFUSED, f"The {part} model refused: {error.message}", retryable=False) from error
    except httpx2.HTTPStatusError as error:
        raise VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model answered {error.response.status_code}.") from error
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise VoxbridgeError(
            Code.PROVIDER_REFUSED, f"The {part} model answered something that cannot be read: {error!r:.200}", retryable=False
        ) from error
