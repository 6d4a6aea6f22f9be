"""Speech of a user, sent to a streaming recogniser while it is said.

Owns which audio was sent, where an utterance begins in what the recogniser understood, and when its words count as whole. Does not own
when an utterance begins and ends: the core asks for transcripts, as it does of other recognisers. A lost connection is opened again and
hears the utterance from its beginning, which the microphone keeps; a crash of the worker loses the connection, and its successor does the
same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec

from voxbridge.services.voice.audio.microphone import Microphone
from voxbridge.services.voice.core.outputs import AUDIO_END
from voxbridge.services.voice.providers.cascade.models import Transcript
from voxbridge.services.voice.providers.streaming.assemblyai import CHUNK_MS, Recogniser
from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import base

LINGER_S: Final = 30.0
"""Seconds without speech after which the connection is closed: vendors charge for the time that it is open."""

SETTLE_S: Final = 2.0
"""Seconds that the recogniser has for the rest of an utterance once it was told of its end. After that its words are taken as they are."""

QUIET_S: Final = 0.6
"""The same where it has said nothing since the turn before was whole: there may be no words, or they are still on their way."""

_BYTES_PER_MS: Final = INPUT_RATE * 2 // 1_000
_log = logging.getLogger(__name__)


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """Recogniser of an agent, and what it is told of the speech."""

    provider: str
    model: str = ""
    language: str = ""
    vocabulary: tuple[str, ...] = ()


Open = Callable[[Listener, Callable[[], None]], Awaitable[Recogniser]]


class StreamedSpeech:
    """The speech of one session for its recogniser."""

    def __init__(self, microphone: Microphone, dial: Open, language: str) -> None:
        """Create it. `dial` opens a connection; `language` is that of agents that name none."""
        self._microphone = microphone
        self._dial = dial
        self._language = language
        self._listener = Listener(provider="")
        self._from_ms = -1
        """Beginning of the utterance in the session's audio, ms; -1 while there is none."""

        self._sent_ms = 0
        self._until_ms: int | None = None
        """End of the utterance, ms, once there is one; -1 when the recogniser was told."""

        self._first = 0
        """Turn of the recogniser in which the utterance begins."""

        self._due = 0
        """Turn that is whole once all of the utterance is understood."""

        self._recogniser: Recogniser | None = None
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """The running connection, and those before it that are being closed."""

        self._fresh = asyncio.Event()
        self._news = asyncio.Event()

    def begin(self, listener: Listener, from_ms: int) -> None:
        """Send what is said from here on, ms of the session's audio. Of an utterance that goes on after a pause, send what follows."""
        if from_ms != self._from_ms or listener != self._listener:
            self._start(listener, from_ms)
        self._until_ms = None
        self._run()

    def heard(self) -> None:
        """Send what the microphone has heard meanwhile."""
        if self._from_ms >= 0 and self._until_ms is None and self._microphone.end_ms - self._sent_ms >= CHUNK_MS[0]:
            self._fresh.set()

    def over(self) -> None:
        """Send nothing more until the next utterance."""
        self._from_ms = -1

    async def transcript(self, listener: Listener, from_ms: int, to_ms: int) -> Transcript:
        """Return the words of a range: what is known by now if its end is `AUDIO_END`, else all, for which it raises `VoxbridgeError`."""
        self.begin(listener, from_ms)
        if to_ms != AUDIO_END:
            self._until_ms = min(to_ms, self._microphone.end_ms)
            self._fresh.set()
            await self._settled(from_ms)
        return self._words()

    def stop(self) -> None:
        """Close the connection; `closed` waits for it."""
        self._from_ms = -1
        if self._running is not None:
            self._running.cancel()

    async def closed(self) -> None:
        """Wait until the connection is closed."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, listener: Listener, from_ms: int) -> None:
        if listener != self._listener and self._running is not None:
            self._running.cancel()
            self._running = self._recogniser = None
        self._listener, self._from_ms, self._sent_ms = listener, from_ms, from_ms
        if self._recogniser is not None:
            self._first = self._recogniser.turns.next
            self._recogniser.turns.forget(self._first)

    def _run(self) -> None:
        if self._running is None or self._running.done():
            self._sent_ms = self._from_ms
            self._running = asyncio.create_task(self._keep())
            self._tasks.add(self._running)
            self._running.add_done_callback(self._ended)
        self._fresh.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.info("The connection to %s ended: %s", self._listener.provider, error)
        self._news.set()

    def _words(self) -> Transcript:
        spoken = self._listener.language or self._language
        if self._recogniser is None:
            return Transcript(text="", language=spoken)
        turns = self._recogniser.turns
        return Transcript(text=turns.text(self._first), language=spoken, confidence=turns.confidence(self._first))

    async def _settled(self, from_ms: int) -> None:
        """Wait until all of an utterance is understood, as far as it ever will be. Raises what ended the connection."""
        task = self._running
        while task is not None and not task.done() and self._until_ms != -1 and self._from_ms == from_ms:
            await self._changed(None)
        begun = asyncio.get_running_loop().time()
        while task is not None and not task.done() and (recogniser := self._recogniser) is not None:
            begun_to_tell = recogniser.turns.next > self._due
            if begun_to_tell and not recogniser.turns.open(self._due):
                return
            left = begun + (SETTLE_S if begun_to_tell else QUIET_S) - asyncio.get_running_loop().time()
            if left <= 0:
                return
            await self._changed(left)
        if task is not None and task.done():
            task.result()
            raise base.cut_off("transcription")

    async def _changed(self, within_s: float | None) -> None:
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()

    async def _keep(self) -> None:
        """Open a connection, and send what is said until nobody has spoken for `LINGER_S`."""
        recogniser = await self._dial(self._listener, self._news.set)
        self._recogniser, self._first = recogniser, 0
        reading = asyncio.create_task(recogniser.read())
        try:
            while await self._speech(reading):
                await self._send(recogniser)
        finally:
            # Who speaks while this connection is closed has another one.
            if self._running is asyncio.current_task():
                self._running = None
            if self._recogniser is recogniser:
                self._recogniser = None
            reading.cancel()
            with suppress(asyncio.CancelledError, VoxbridgeError):
                await reading
            await recogniser.close()

    async def _speech(self, reading: asyncio.Task[None]) -> bool:
        """Wait for speech to send; return whether there is any. Raises what ended the connection."""
        waiting = asyncio.create_task(self._fresh.wait())
        try:
            await asyncio.wait((waiting, reading), timeout=LINGER_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if reading.done():
            reading.result()
        said = self._fresh.is_set()
        self._fresh.clear()
        return said or self._from_ms >= 0

    async def _send(self, recogniser: Recogniser) -> None:
        shortest, longest = CHUNK_MS
        while self._from_ms >= 0 and self._until_ms != -1:
            end = self._microphone.end_ms if self._until_ms is None else self._until_ms
            left = end - self._sent_ms
            if left < shortest and self._until_ms is None:
                return
            if left > 0:
                to_ms = min(end, self._sent_ms + longest)
                pcm = self._microphone.audio(self._sent_ms, to_ms)
                self._sent_ms = to_ms
                await recogniser.hear(pcm.ljust(shortest * _BYTES_PER_MS, b"\0"))
            elif self._until_ms is not None:
                turns, self._until_ms = recogniser.turns, -1
                self._due = turns.next - 1 if turns.open(self._first) else turns.next
                await recogniser.end_turn()
                self._news.set()
