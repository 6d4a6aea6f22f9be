"""Text to speech: Piper in a process of its own, asked over HTTP on loopback; its licence (GPL) keeps it out of this process.

Owns that process: starts it, waits until it answers, starts it again when it dies. Text goes to it in sentences, one ahead of
the one being sent, so that the first sound leaves early. A crash here loses the sentence being made.
"""

from __future__ import annotations

import asyncio
import io
import re
import socket
import sys
import wave
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx

from services.models.audio import Resampler
from shared.child import die_with_parent
from shared.errors import Unavailable

START_TIMEOUT_S: Final = 60.0
SENTENCE_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 2.0
RESTART_PAUSE_S: Final = 0.5
MAX_CHARACTERS: Final = 4_096
FIRST_CLAUSE: Final = 80
"""A first sentence longer than this is cut at a clause, so that sound begins sooner."""
MIN_CLAUSE: Final = 24
SENTENCE_PAUSE_MS: Final = 80

_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
_CLAUSE_END: Final = re.compile(r"(?<=[,;:—])\s+")


def sentences(text: str) -> list[str]:
    """The pieces that are spoken one by one: sentences, and of a long first one the first clause by itself."""
    pieces = [piece.strip() for piece in _SENTENCE_END.split(text)]
    pieces = [piece for piece in pieces if any(char.isalnum() for char in piece)]
    if pieces and len(pieces[0]) > FIRST_CLAUSE:
        first = pieces[0]
        cut = next(
            (mark for mark in _CLAUSE_END.finditer(first) if mark.start() >= MIN_CLAUSE and len(first) - mark.end() >= MIN_CLAUSE), None
        )
        if cut is not None:
            pieces[:1] = [first[: cut.start()], first[cut.end() :]]
    return pieces


class Piper:
    """Keeps one Piper process alive. `start` returns when it answers."""

    def __init__(self, voice: Path) -> None:
        self._voice = voice
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._last_words: deque[str] = deque(maxlen=20)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(SENTENCE_TIMEOUT_S, connect=2.0), trust_env=False)
        self.restarts = 0

    async def start(self) -> None:
        """Start the process and wait until it speaks; raises `UNAVAILABLE`."""
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep(), name="piper-keeper")

    @property
    def pid(self) -> int | None:
        """The process id of Piper while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def speak(self, text: str, speed: float = 1.0) -> AsyncIterator[bytes]:
        """PCM16 at 24 kHz, sentence by sentence. Raises `UNAVAILABLE`."""
        pieces = sentences(text)
        ahead = [asyncio.create_task(self._sentence(pieces[0], speed))] if pieces else []
        resampler: Resampler | None = None
        try:
            for index in range(len(pieces)):
                rate, pcm = await ahead.pop()
                if index + 1 < len(pieces):
                    ahead.append(asyncio.create_task(self._sentence(pieces[index + 1], speed)))
                    pcm += bytes(rate * SENTENCE_PAUSE_MS // 1000 * 2)
                resampler = resampler or Resampler(rate)
                yield resampler.convert(pcm, last=index + 1 == len(pieces))
        finally:
            for task in ahead:
                task.cancel()

    async def close(self) -> None:
        """Stop the process."""
        if self._keeper:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        await self._stop()
        await self._client.aclose()

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _sentence(self, text: str, speed: float) -> tuple[int, bytes]:
        body: dict[str, object] = {"text": text}
        if speed != 1.0:
            body["length_scale"] = 1.0 / speed
        for attempt in (1, 2):
            try:
                await asyncio.wait_for(self._up.wait(), START_TIMEOUT_S)
                answer = await self._client.post(f"{self._url}/synthesize", json=body)
            except (httpx.TransportError, TimeoutError) as error:
                if attempt == 2 or isinstance(error, httpx.TimeoutException | TimeoutError):
                    raise Unavailable(f"Piper does not answer ({type(error).__name__}); it is being started again.") from error
                self._up.clear()
                continue
            if answer.status_code != httpx.codes.OK:
                raise Unavailable(f"Piper answered {answer.status_code} for {text[:80]!r}.")
            with wave.open(io.BytesIO(answer.content)) as stream:
                return stream.getframerate(), stream.readframes(stream.getnframes())
        raise AssertionError  # both attempts return or raise

    async def _spawn(self) -> None:
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}"
        piper = [sys.executable, "-m", "piper.http_server", "--host", "127.0.0.1", "--port", str(port), "-m", str(self._voice)]
        self._process = await asyncio.create_subprocess_exec(
            *piper,
            "--data-dir",
            str(self._voice.parent),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=die_with_parent(),
        )
        if self._process.stderr:
            self._reader = asyncio.create_task(self._read(self._process.stderr), name="piper-stderr")
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while not await self._answers():
                    if self._process.returncode is not None:
                        await self._reader
                        words = " ".join(list(self._last_words)[-2:]) or "it said nothing"
                        raise Unavailable(f"Piper ended with status {self._process.returncode} at its start: {words}")
                    await asyncio.sleep(0.02)
                # The first sentence makes the engine allocate; it is not a user's.
                await self._client.post(f"{self._url}/synthesize", json={"text": "Ready."})
        except TimeoutError as error:
            raise Unavailable(f"Piper did not answer within {START_TIMEOUT_S:.0f} s of its start.") from error
        self._up.set()

    async def _answers(self) -> bool:
        try:
            return (await self._client.get(f"{self._url}/info")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    async def _read(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            self._last_words.append(line.decode(errors="replace").strip())

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                await self._process.wait()
            self._up.clear()
            self.restarts += 1
            try:
                await self._spawn()
            except Unavailable:
                await self._stop()
                await asyncio.sleep(RESTART_PAUSE_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
