"""Speech of ElevenLabs over its socket for several contexts: sound comes while the rest of a sentence is still being made.

Owns the connections, which stay open for the next sentence: opening one takes longer than the first sound. One sentence is in a connection
at a time, and one that is not wanted any more is closed with its connection, so that no context of it is left (the vendor allows five).
A crash loses what was being said; the session asks again. Facts: elevenlabs.io/docs/api-reference, "Multi-Context WebSocket".
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from voxbridge.services.voice.providers.streaming import socket as vendor_socket
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base, endpoints

PROVIDER: Final = "elevenlabs"
KEPT_S: Final = 15.0
"""Seconds for which an unused connection is kept: less than the 20 after which the vendor closes it."""

KEPT_LIMIT: Final = 8
"""Unused connections that a process keeps."""

SPEEDS: Final = (0.7, 1.2)
"""Slowest and fastest factor that the vendor takes."""

SOUND_LIMIT: Final = 10 * 60 * 48_000
"""Bytes of sound of one sentence: ten minutes."""

_PART: Final = "speech"
_WITH_LANGUAGE: Final = ("flash_v2_5", "turbo_v2_5", "eleven_v3")
"""Models that are told the language; others refuse to be."""


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    """A message of the vendor, as far as it is read."""

    audio: str | None = None
    is_final: bool | None = None
    context_id: str = ""
    error: str = ""
    message: str = ""
    code: int = 0


class _Kept(msgspec.Struct, frozen=True):
    """An unused connection, with what it was opened for."""

    whose: tuple[str, ...]
    socket: ClientConnection
    since: float


class ElevenLabs:
    """The voice of ElevenLabs. `keys` returns the key, and is called for each sentence."""

    def __init__(self, keys: endpoints.Keys) -> None:
        self._keys = keys
        self._kept: list[_Kept] = []
        self._numbers = itertools.count(1)
        self._closing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Close the connections."""
        kept, self._kept = self._kept, []
        for one in kept:
            self._drop(one.socket)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def synthesize(self, text: str, voice: str, model: str, language: str, speed: float) -> AsyncGenerator[bytes, None]:
        """Yield speech as PCM16 at 24 kHz, in pieces of whole samples, as it is made. Raises `VoxbridgeError`."""
        vendor = endpoints.VENDORS[PROVIDER]
        key = await endpoints.key_of(PROVIDER, self._keys)
        chosen = model or vendor.tts
        spoken = language.partition("-")[0] if any(name in chosen for name in _WITH_LANGUAGE) else ""
        whose = (key, vendor.base_url, voice or vendor.voice, chosen, spoken)
        with vendor_socket.failures(_PART, key):
            for new in (False, True):
                socket, kept = await self._taken(whose, new=new)
                begun = whole = False
                try:
                    async with aclosing(self._said(socket, f"s{next(self._numbers)}", key, text, speed)) as said:
                        async for pcm in said:
                            begun = True
                            yield pcm
                    whole = True
                except ConnectionClosed:
                    if begun or not kept:
                        raise
                    continue  # the vendor had closed it meanwhile
                finally:
                    # A sentence that was not heard to its end leaves a context behind, which ends with its connection.
                    if whole:
                        self._keep(whose, socket)
                    else:
                        self._drop(socket)
                return

    async def _said(self, socket: ClientConnection, name: str, key: str, text: str, speed: float) -> AsyncGenerator[bytes, None]:
        begin: dict[str, Any] = {"text": " ", "context_id": name}
        if speed != 1.0:
            begin["voice_settings"] = {"speed": min(max(speed, SPEEDS[0]), SPEEDS[1])}
        say = {"text": f"{text.strip()} ", "context_id": name, "flush": True}
        for sent in (begin, say, {"context_id": name, "close_context": True}):
            await socket.send(msgspec.json.encode(sent), text=True)
        made, odd = 0, b""
        while True:
            async with asyncio.timeout(base.READ_TIMEOUT_S):
                told = _read(await socket.recv(decode=False), key)
            if told.error or told.message:
                raise vendor_socket.closed(_PART, told.code, told.message or told.error, key)
            if told.context_id not in (name, ""):
                continue
            sound = _sound(told.audio or "", key)
            made += len(sound)
            pcm = odd + sound
            odd = pcm[len(pcm) & ~1 :]
            if made > SOUND_LIMIT:
                message = f"The speech model made more than {SOUND_LIMIT} bytes of one sentence."
                raise VoxbridgeError(Code.PROVIDER_REFUSED, message, limit=SOUND_LIMIT, retryable=False)
            if len(pcm) > 1:
                yield pcm[: len(pcm) & ~1]
            if told.is_final:
                return

    async def _taken(self, whose: tuple[str, ...], *, new: bool) -> tuple[ClientConnection, bool]:
        """Return a connection, and whether it was kept from a sentence before."""
        for one in [one for one in self._kept if time.monotonic() - one.since > KEPT_S or one.socket.state is not State.OPEN]:
            self._kept.remove(one)
            self._drop(one.socket)
        for one in () if new else self._kept:
            if one.whose == whose:
                self._kept.remove(one)
                return one.socket, True
        key, url, voice, model, language = whose
        query = {"model_id": model, "output_format": "pcm_24000", "auto_mode": "true"} | ({"language_code": language} if language else {})
        address = f"{url.rstrip('/')}/v1/text-to-speech/{quote(voice, safe='')}/multi-stream-input?{urlencode(query)}"
        return await vendor_socket.dialled(address, {"xi-api-key": key}), False

    def _keep(self, whose: tuple[str, ...], socket: ClientConnection) -> None:
        self._kept.append(_Kept(whose, socket, time.monotonic()))
        while len(self._kept) > KEPT_LIMIT:
            self._drop(self._kept.pop(0).socket)

    def _drop(self, socket: ClientConnection) -> None:
        task = asyncio.create_task(_closed(socket))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _closed(socket: ClientConnection) -> None:
    with suppress(ConnectionClosed, OSError):
        await socket.close()


def _read(message: bytes, key: str) -> _Told:
    try:
        return msgspec.json.decode(message, type=_Told)
    except msgspec.DecodeError as error:
        raise base.unreadable(_PART, error, key) from None


def _sound(audio: str, key: str) -> bytes:
    try:
        return base64.b64decode(audio, validate=True)
    except binascii.Error as error:
        raise base.unreadable(_PART, error, key) from None
