"""The models behind the cascade: transcription, language, speech, end of turn, each from the provider that the agent names.

Without a name the installation's own endpoints are asked by OpenAI-compatible HTTP, whichever server it is: voxbridge/services/models,
Ollama, vLLM. A name is that of a built-in vendor or of an endpoint of `VOXBRIDGE_ENDPOINTS`. Errors are raised as `VoxbridgeError` with
the part's name, so that the session can say what failed. A crash here loses the open requests; the session asks again.
"""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import Final, TypeVar

import httpx  # noqa: F401 - loaded here in full, since one SDK looks at it while another SDK's thread may still be loading it
import httpx2
import msgspec
from openai import AsyncOpenAI

from voxbridge.services.voice.core.outputs import Complete
from voxbridge.services.voice.providers.cascade import base, endpoints
from voxbridge.services.voice.providers.cascade.base import LanguageModel, Written
from voxbridge.services.voice.providers.cascade.chat_completions import Catalogue, ChatCompletions, client, named
from voxbridge.services.voice.providers.cascade.endpoints import VENDORS, Held, KeyedClient, Keys
from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.store.store import Function

T = TypeVar("T")

TEXT_LIMIT: Final = 64 * 1024
"""Characters of one transcript; the core bounds a reply itself."""

WHY_S: Final = 1.0
"""Seconds that voxbridge/services/models may take to say why a model is late."""

_CHUNK: Final = 4_800
"""Bytes of speech passed on at a time: 100 ms."""


class Transcript(msgspec.Struct, frozen=True):
    """Result of a transcription."""

    text: str
    language: str = ""
    confidence: float | None = None


class _Health(msgspec.Struct, frozen=True):
    """Health of voxbridge/services/models; `late` tells why an answer may be late."""

    late: str = ""


class _Http(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint for one part, with its default model and voice."""

    use: Callable[[], AbstractAsyncContextManager[Held[AsyncOpenAI]]]
    model: str
    voice: str = "default"


class _Later:
    """A vendor whose SDK is loaded when it is first needed: loading takes seconds, which a worker that takes over calls does not have."""

    def __init__(self, provider: str, keys: Keys, load: Callable[[Keys], LanguageModel]) -> None:
        self._provider = provider
        self._keys = keys
        self._load = load
        self._loading: asyncio.Future[LanguageModel] | None = None

    async def load(self) -> LanguageModel:
        """Return the vendor, loaded if needed. Raises `PROVIDER_REFUSED`, without loading anything, if there is no key."""
        if self._loading is None:
            await endpoints.key_of(self._provider, self._keys)
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load, self._keys))
        return await asyncio.shield(self._loading)

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model, as `LanguageModel.complete` says."""
        async with aclosing((await self.load()).complete(effect, request)) as written:
            async for input in written:
                yield input

    async def close(self) -> None:
        """Close the vendor's connections, if it was loaded."""
        if self._loading is not None:
            await (await self._loading).close()


class Models:
    """All endpoints of one installation, shared by all sessions of a process. `keys` returns a vendor's key, and is called per request, as
    is `catalogue`, which returns the functions of the installation."""

    def __init__(self, config: Config, keys: Keys = endpoints.environment_keys, catalogue: Catalogue = tuple) -> None:
        self._config = config
        local = config.models_base_url
        timeout = httpx2.Timeout(base.READ_TIMEOUT_S, connect=base.CONNECT_TIMEOUT_S)
        self._http = httpx2.AsyncClient(timeout=timeout)
        self._turns_url = f"{local}/audio/turns"
        self._healthz = f"{local.removesuffix('/v1')}/healthz"
        stt, llm, tts = (
            client(url or local, key, hook=False)
            for url, key in ((config.stt_url, config.stt_key), (config.llm_url, config.llm_key), (config.tts_url, config.tts_key))
        )
        self._own = ChatCompletions(_always(llm), config.llm_model, catalogue=catalogue if self.local else None)
        self._later = {name: _Later(name, keys, load) for name, load in (("anthropic", _claude), ("gemini", _gemini))}
        openai = _keyed("openai", keys, VENDORS["openai"].base_url)
        named_ones = {name: _keyed(name, keys, url, needs_key=False) for name, url in endpoints.parse(config.endpoints).items()}
        self._llm: dict[str, LanguageModel] = {
            "": self._own,
            endpoints.LOCAL: self._own,
            "openai": ChatCompletions(openai.use, VENDORS["openai"].llm, vendor=True),
            **self._later,
            **{name: ChatCompletions(one.use, "") for name, one in named_ones.items()},
        }
        others = {name: _Http(use=one.use, model="") for name, one in named_ones.items()}
        vendor = VENDORS["openai"]
        own_stt, own_tts = _Http(use=_always(stt), model=config.stt_model), _Http(use=_always(tts), model=config.tts_model)
        self._stt = {"": own_stt, endpoints.LOCAL: own_stt, "openai": _Http(use=openai.use, model=vendor.stt), **others}
        openai_tts = _Http(use=openai.use, model=vendor.tts, voice=vendor.voice)
        self._tts = {"": own_tts, endpoints.LOCAL: own_tts, "openai": openai_tts, **others}
        self._closing = (
            *(self._http.aclose, stt.close, llm.close, tts.close, openai.close),
            *(one.close for one in named_ones.values()),
            *(one.close for one in self._later.values()),
        )

    @property
    def local(self) -> bool:
        """True if the language model is this installation's own: keeping a vendor's model warm would cost money and change nothing."""
        return not self._config.llm_url

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(close() for close in self._closing))

    async def prepare(self) -> None:
        """Load the SDKs of the vendors that have keys, so that the first request to them need not wait."""
        for later in self._later.values():
            with suppress(VoxbridgeError):
                await later.load()

    async def transcribe(self, pcm: bytes, provider: str = "", model: str = "", language: str = "") -> Transcript:
        """Transcribe PCM16 at 16 kHz. Empty names stand for the installation's own endpoint, and for its default model and language."""
        where = _of(self._stt, provider, "transcription")
        spoken = language or self._config.language
        chosen = _model(model or where.model, provider)
        async with where.use() as held:
            with named("transcription", held.key):
                found = await held.client.audio.transcriptions.create(
                    model=chosen,
                    file=("speech.wav", _wav(pcm), "audio/wav"),
                    # Transcription models know languages, and refuse a tag with a region.
                    language=spoken.partition("-")[0],
                    response_format="json",
                )
                text = found.text.strip()
        if len(text) > TEXT_LIMIT:
            raise VoxbridgeError(
                Code.PROVIDER_REFUSED, f"The transcription has {len(text)} characters; at most {TEXT_LIMIT} are taken.", limit=TEXT_LIMIT
            )
        return Transcript(text=text, language=spoken)

    async def judge_turn(self, pcm: bytes) -> float:
        """Return the probability that the speaker has finished, from 0 to 1. Raises `PROVIDER_UNAVAILABLE` if there is no such model."""
        with named("end-of-turn"):
            response = await self._http.post(self._turns_url, files={"file": ("speech.wav", _wav(pcm), "audio/wav")})
            response.raise_for_status()
            return float(response.json()["probability"])

    async def why_late(self, provider: str) -> str:
        """Return why a model does not answer, as the installation's own service says; empty if that is not known."""
        if provider not in ("", endpoints.LOCAL):
            return ""
        try:
            async with asyncio.timeout(WHY_S):
                answer = await self._http.get(self._healthz)
            return msgspec.json.decode(answer.content, type=_Health).late[: base.WORDS_LIMIT]
        except (TimeoutError, httpx2.HTTPError, msgspec.DecodeError):
            return ""

    async def warm(self, model: str, instructions: str, functions: Sequence[Function], *, shared: bool = True) -> None:
        """Have the language model read what every request of a session begins with, so that the first answer need not wait. `shared` is
        as in `Complete`."""
        await self._own.warm(model, instructions, functions, shared=shared)

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the language model that the request names; yield inputs for the core as they come, `Completed` last."""
        where = _of(self._llm, request.provider, "language")
        if request.provider and request.provider not in VENDORS and where is not self._own:
            _model(request.model, request.provider)
        async with aclosing(where.complete(effect, request)) as written:
            async for input in written:
                yield input

    async def synthesize(self, text: str, voice: str, provider: str = "", model: str = "") -> AsyncGenerator[bytes, None]:
        """Yield speech as PCM16 at 24 kHz, in pieces of whole samples, as it is made. Empty names are as in `transcribe`."""
        where = _of(self._tts, provider, "speech")
        chosen = _model(model or where.model, provider)
        async with where.use() as held:
            with named("speech", held.key):
                request = held.client.audio.speech.with_streaming_response.create(
                    model=chosen, voice=voice or where.voice, input=text, response_format="pcm"
                )
                async with request as response:
                    odd = b""
                    async for chunk in response.iter_bytes(_CHUNK):
                        pcm = odd + chunk
                        odd = pcm[len(pcm) & ~1 :]
                        if len(pcm) > 1:
                            yield pcm[: len(pcm) & ~1]


def _claude(keys: Keys) -> LanguageModel:
    from voxbridge.services.voice.providers.cascade.anthropic import Claude  # imported here for the reason that `_Later` gives

    return Claude(keys)


def _gemini(keys: Keys) -> LanguageModel:
    from voxbridge.services.voice.providers.cascade.gemini import Gemini  # imported here for the reason that `_Later` gives

    return Gemini(keys)


def _always(client: AsyncOpenAI) -> Callable[[], AbstractAsyncContextManager[Held[AsyncOpenAI]]]:
    held = Held(client.api_key if client.api_key != "local" else "", client)

    @asynccontextmanager
    async def use() -> AsyncIterator[Held[AsyncOpenAI]]:
        yield held

    return use


def _keyed(provider: str, keys: Keys, url: str, *, needs_key: bool = True) -> KeyedClient[AsyncOpenAI]:
    return KeyedClient(provider, keys, lambda key: client(url, key), lambda made: made.close(), needs_key=needs_key)


def _of(known: Mapping[str, T], provider: str, part: str) -> T:
    if provider not in known:
        names = ", ".join(sorted(filter(None, known)))
        message = f"No {part} model of {provider!r:.60} can be asked; there are {names}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="provider", limit=names)
    return known[provider]


def _model(model: str, provider: str) -> str:
    if not model:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"Name a model of {provider}: it has no default.", field="model")
    return model


def _wav(pcm: bytes) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(INPUT_RATE)
        file.writeframes(pcm)
    return out.getvalue()
