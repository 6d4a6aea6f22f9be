"""Recognition of AssemblyAI over its streaming socket (v3): the words are known while they are said.

Owns the connection and what the vendor has written in it. Does not own what is sent when (`session.streamed_speech`). The end of an
utterance is ours: the vendor is told not to decide it, and to end its turn where we say so. A crash loses the connection; the audio is
sent again in another one. Facts: assemblyai.com/docs/streaming, "Message Sequence" and "Common session errors and closures".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from voxbridge.services.voice.providers.streaming import socket as vendor_socket
from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.language import base, endpoints

PROVIDER: Final = "assemblyai"
CHUNK_MS: Final = (50, 1_000)
"""Shortest and longest piece of audio that the vendor takes, ms."""

TERMS_LIMIT: Final = 100
TERM_CHARACTERS: Final = 50
"""Likely words that the vendor takes, and the characters of each."""

OTHER_LANGUAGES: Final = "universal-streaming-multilingual"
"""Model for a language that is not English, where none is named."""

_PART: Final = "transcription"
_NO_END_MS: Final = 10_000
"""Milliseconds of silence after which the vendor may end a turn by itself: longer than we wait for anybody."""


class Word(msgspec.Struct, frozen=True):
    """A word of a turn."""

    text: str
    confidence: float = 0.0


class Turn(msgspec.Struct, frozen=True, tag="Turn"):
    """State of a turn, as far as the vendor has understood it; `words` has those that may still change, `transcript` does not."""

    turn_order: int
    transcript: str
    end_of_turn: bool
    turn_is_formatted: bool = False
    words: tuple[Word, ...] = ()

    @property
    def whole(self) -> bool:
        """True if nothing of it changes any more."""
        return self.end_of_turn and self.turn_is_formatted


class Failure(msgspec.Struct, frozen=True, tag="Error"):
    """An error, which the vendor states before it closes the connection."""

    error: str
    error_code: int = 0


class _Other(msgspec.Struct, frozen=True):
    type: str


class Turns:
    """The turns of one connection, by their order."""

    def __init__(self) -> None:
        self._turns: dict[int, Turn] = {}

    def take(self, turn: Turn) -> None:
        """Take the newest state of a turn. An older one that comes late changes nothing."""
        known = self._turns.get(turn.turn_order)
        if known is None or not known.whole:
            self._turns[turn.turn_order] = turn

    @property
    def next(self) -> int:
        """Order of the turn that follows all that are known."""
        return max(self._turns, default=-1) + 1

    def open(self, first: int) -> bool:
        """Tell whether a turn from this one on may still change."""
        return any(not turn.whole for order, turn in self._turns.items() if order >= first)

    def forget(self, before: int) -> None:
        """Drop the turns before this one."""
        self._turns = {order: turn for order, turn in self._turns.items() if order >= before}

    def text(self, first: int) -> str:
        """Return what was understood from a turn on."""
        return " ".join(filter(None, (_text(turn) for _, turn in self._from(first))))

    def confidence(self, first: int) -> float | None:
        """Return how sure the vendor is of the words from a turn on, from 0 to 1; None without words."""
        sure = [word.confidence for _, turn in self._from(first) for word in turn.words]
        return sum(sure) / len(sure) if sure else None

    def _from(self, first: int) -> list[tuple[int, Turn]]:
        return sorted((order, turn) for order, turn in self._turns.items() if order >= first)


def _text(turn: Turn) -> str:
    return turn.transcript.strip() if turn.end_of_turn else " ".join(word.text for word in turn.words) or turn.transcript.strip()


class Recogniser:
    """A connection to the recogniser. `changed` is called when it has understood more."""

    def __init__(self, socket: ClientConnection, key: str, changed: Callable[[], None]) -> None:
        self._socket, self._key, self._changed = socket, key, changed
        self.turns = Turns()

    async def read(self) -> None:
        """Read until the connection ends. Raises `VoxbridgeError` then."""
        with vendor_socket.failures(_PART, self._key):
            while True:
                self._take(await self._socket.recv(decode=False))

    def _take(self, message: bytes) -> None:
        try:
            kind = msgspec.json.decode(message, type=_Other).type
            told = msgspec.json.decode(message, type=Turn | Failure) if kind in ("Turn", "Error") else None
        except msgspec.DecodeError as error:
            raise base.unreadable(_PART, error, self._key) from None
        match told:
            case Turn():
                self.turns.take(told)
                self._changed()
            case Failure():
                raise vendor_socket.closed(_PART, told.error_code, told.error, self._key)
            case _:
                pass  # the beginning, warnings, and what is new

    async def hear(self, pcm: bytes) -> None:
        """Send PCM16 at 16 kHz of `CHUNK_MS`."""
        with vendor_socket.failures(_PART, self._key):
            await self._socket.send(pcm)

    async def end_turn(self) -> None:
        """Have the vendor end its turn with what it has heard."""
        with vendor_socket.failures(_PART, self._key):
            await self._socket.send('{"type":"ForceEndpoint"}')

    async def close(self) -> None:
        """End the session, which the vendor counts by its length, and close the connection."""
        with suppress(ConnectionClosed, OSError, TimeoutError):
            async with asyncio.timeout(vendor_socket.CLOSE_S):
                await self._socket.send('{"type":"Terminate"}')
        with suppress(ConnectionClosed, OSError):
            await self._socket.close()


class AssemblyAI:
    """The recogniser of AssemblyAI. `keys` returns the key, and is called for each connection."""

    def __init__(self, keys: endpoints.Keys) -> None:
        self._keys = keys

    async def open(self, model: str, language: str, vocabulary: Sequence[str], changed: Callable[[], None]) -> Recogniser:
        """Open a connection. Raises `VoxbridgeError`."""
        vendor = endpoints.VENDORS[PROVIDER]
        key = await endpoints.key_of(PROVIDER, self._keys)
        query = {
            "speech_model": model or (vendor.stt if language.partition("-")[0] in ("", "en") else OTHER_LANGUAGES),
            "sample_rate": str(INPUT_RATE),
            "encoding": "pcm_s16le",
            "format_turns": "true",
            "end_of_turn_confidence_threshold": "1.0",
            "max_turn_silence": str(_NO_END_MS),
        }
        if terms := [word for word in vocabulary if len(word) <= TERM_CHARACTERS][:TERMS_LIMIT]:
            query["keyterms_prompt"] = msgspec.json.encode(terms).decode()
        with vendor_socket.failures(_PART, key):
            socket = await vendor_socket.dialled(f"{vendor.base_url.rstrip('/')}/v3/ws?{urlencode(query)}", {"Authorization": key})
        return Recogniser(socket, key, changed)
