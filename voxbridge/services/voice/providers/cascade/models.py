"""The models behind the cascade: transcription, language, speech, end of turn, each from the provider that the agent names.

Without a name the installation's own endpoints are asked by OpenAI-compatible HTTP, whichever server it is: voxbridge/services/models,
Ollama, vLLM. A name is that of a built-in vendor or of an endpoint of `VOXBRIDGE_ENDPOINTS`. Errors are raised as `VoxbridgeError` with
the part's name, so that the session can say what failed. A crash here loses the open requests; the session asks again.
"""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Final, TypeVar

import httpx2
import msgspec
from openai import AsyncOpenAI, omit

from voxbridge.services.voice.providers.streaming.assemblyai import PROVIDER as ASSEMBLYAI
from voxbridge.services.voice.providers.streaming.assemblyai import AssemblyAI
from voxbridge.services.voice.providers.streaming.elevenlabs import PROVIDER as ELEVENLABS
from voxbridge.services.voice.providers.streaming.elevenlabs import ElevenLabs
from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base, endpoints
from voxbridge.shared.language.chat_completions import Catalogue, client, named
from voxbridge.shared.language.conversation import Complete, Message, Written
from voxbridge.shared.language.endpoints import VENDORS, Held, Keys
from voxbridge.shared.language.models import LanguageModels, always, named_model, one_of
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
        stt, tts = (
            client(url or local, key, hook=False) for url, key in ((config.stt_url, config.stt_key), (config.tts_url, config.tts_key))
        )
        self._language = LanguageModels(config, keys, catalogue)
        openai = self._language.openai
        others = {name: _Http(use=one.use, model="") for name, one in self._language.named.items()}
        vendor = VENDORS["openai"]
        own_stt, own_tts = _Http(use=always(stt), model=config.stt_model), _Http(use=always(tts), model=config.tts_model)
        self._stt = {"": own_stt, endpoints.LOCAL: own_stt, "openai": _Http(use=openai.use, model=vendor.stt), **others}
        openai_tts = _Http(use=openai.use, model=vendor.tts, voice=vendor.voice)
        self._tts = {"": own_tts, endpoints.LOCAL: own_tts, "openai": openai_tts, **others}
        self._elevenlabs = ElevenLabs(keys)
        self.recognisers = {ASSEMBLYAI: AssemblyAI(keys)}
        """Recognisers that hear speech while it is said, by their providers."""

        self._closing = (self._http.aclose, stt.close, tts.close, self._elevenlabs.close, self._language.close)

    @property
    def local(self) -> bool:
        """True if the language model is this installation's own: keeping a vendor's model warm would cost money and change nothing."""
        return self._language.local

    @property
    def hears_here(self) -> bool:
        """True if the models service transcribes: what a server of others transcribes ahead, and perhaps in vain, may be paid for."""
        return self._config.stt_url.rstrip("/") in ("", self._config.models_base_url)

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(close() for close in self._closing))

    async def prepare(self) -> None:
        """Load the SDKs of the vendors that have keys, so that the first request to them need not wait."""
        await self._language.prepare()

    async def transcribe(
        self, pcm: bytes, provider: str = "", model: str = "", language: str = "", vocabulary: Sequence[str] = ()
    ) -> Transcript:
        """Transcribe PCM16 at 16 kHz in which some words are likely. Empty names stand for the installation's own endpoint, and for its
        default model and language."""
        where = one_of(self._stt, provider, "transcription")
        spoken = language or self._config.language
        chosen = named_model(model or where.model, provider)
        async with where.use() as held:
            with named("transcription", held.key):
                found = await held.client.audio.transcriptions.create(
                    model=chosen,
                    file=("speech.wav", _wav(pcm), "audio/wav"),
                    # Transcription models know languages, and refuse a tag with a region.
                    language=spoken.partition("-")[0],
                    response_format="json",
                    prompt=f"{', '.join(vocabulary)}." if vocabulary else omit,
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
        """Have the language model read what requests of a session begin with, so that the next answer need not wait. `shared` is as in
        `Complete`; `said` is the conversation so far, and with `asked` ends with a request that may be made in a moment."""
        await self._language.warm(model, instructions, functions, shared=shared, said=said, asked=asked)

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the language model that the request names; yield inputs for the core as they come, `Completed` last."""
        async with aclosing(self._language.complete(effect, request)) as written:
            async for input in written:
                yield input

    async def synthesize(
        self, text: str, voice: str, provider: str = "", model: str = "", speed: float = 1.0, language: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Yield speech as PCM16 at 24 kHz, in pieces of whole samples, as it is made. Empty names are as in `transcribe`."""
        if provider == ELEVENLABS:
            async with aclosing(self._elevenlabs.synthesize(text, voice, model, language or self._config.language, speed)) as spoken:
                async for pcm in spoken:
                    yield pcm
            return
        where = one_of(self._tts, provider, "speech")
        chosen = named_model(model or where.model, provider)
        async with where.use() as held:
            with named("speech", held.key):
                request = held.client.audio.speech.with_streaming_response.create(
                    model=chosen, voice=voice or where.voice, input=text, response_format="pcm", speed=omit if speed == 1.0 else speed
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
