"""Text to speech: Piper in its own process, asked over HTTP on loopback; its licence (GPL) keeps it out of this process.

Owns how Piper is started and asked. Text goes to it in sentences, one ahead of the sentence being sent, so that the first sound leaves
early. A crash here loses the sentence being synthesized.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import wave
from collections.abc import AsyncGenerator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import httpx

from voxbridge.services.models.engines.audio import Resampler
from voxbridge.services.models.processes.engine_process import Child, Launch, fingerprint, free_port
from voxbridge.services.models.processes.home import Home
from voxbridge.shared.errors import Unavailable

SENTENCE_TIMEOUT_S: Final = 30.0
FIRST_CLAUSE: Final = 80
"""Characters above which a first sentence is cut at a clause, so that sound begins sooner."""
MIN_CLAUSE: Final = 24
SENTENCE_PAUSE_MS: Final = 80

_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]])\s+|\n+")
_CLAUSE_END: Final = re.compile(r"(?<=[,;:—])\s+")


def sentences(text: str) -> list[str]:
    """Split a text into pieces that are spoken one by one: sentences, and the first clause of a long first sentence."""
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


class Piper(Child):
    """A Piper process with the weights of one speaker."""

    name = "Piper"

    def __init__(self, home: Home, voice: Path) -> None:
        super().__init__(home)
        self._voice = voice
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(SENTENCE_TIMEOUT_S, connect=2.0), trust_env=False, verify=False)  # noqa: S501 - no TLS on loopback; its certificates take time

    def identity(self) -> tuple[object, ...]:
        """Return the voice and Piper's version."""
        return (version("piper-tts"), fingerprint(self._voice))

    def launch(self) -> Launch:
        """Return the command of Piper's own HTTP server on a free port."""
        port = free_port()
        options = ("--host", "127.0.0.1", "--port", str(port), "--data-dir", str(self._voice.parent), "-m", str(self._voice))
        return Launch(command=(sys.executable, "-m", "piper.http_server", *options), url=f"http://127.0.0.1:{port}")

    async def serves(self) -> bool:
        """Have it speak a sentence: the engine allocates memory with the first, and a user should not wait for that."""
        answer = await self._client.post(f"{self.url}/synthesize", json={"text": "Ready."})
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"Piper answers {answer.status_code} to its first sentence.")
        return True

    async def speak(self, text: str, speed: float = 1.0, pitch: float = 1.0) -> AsyncGenerator[bytes]:
        """Yield PCM16 at 24 kHz, sentence by sentence. Raises `UNAVAILABLE`.

        With `pitch`, the text is spoken slower and played faster by this factor: higher, as by a smaller person, and not longer.
        """
        pieces = sentences(text)
        ahead = [asyncio.create_task(self._sentence(pieces[0], speed / pitch))] if pieces else []
        resampler: Resampler | None = None
        try:
            for index in range(len(pieces)):
                made, pcm = await ahead[-1]
                rate = round(made * pitch)
                ahead.clear()
                if index + 1 < len(pieces):
                    ahead.append(asyncio.create_task(self._sentence(pieces[index + 1], speed / pitch)))
                    pcm += bytes(rate * SENTENCE_PAUSE_MS // 1000 * 2)
                resampler = resampler or Resampler(rate)
                yield resampler.convert(pcm, last=index + 1 == len(pieces))
        finally:
            for task in ahead:
                task.cancel()

    async def close(self) -> None:
        """Stop the process."""
        await super().close()
        await self._client.aclose()

    async def _sentence(self, text: str, speed: float) -> tuple[int, bytes]:
        body: dict[str, object] = {"text": text}
        if speed != 1.0:
            body["length_scale"] = 1.0 / speed
        for last_try in (False, True):
            await self.up()
            try:
                answer = await self._client.post(f"{self.url}/synthesize", json=body)
            except httpx.TransportError as error:
                if last_try or isinstance(error, httpx.TimeoutException):
                    raise Unavailable(f"Piper does not answer ({type(error).__name__}).") from error
                # It died with the sentence; its keeper notices soon, and the sentence is requested again.
                self._up.clear()
                continue
            if answer.status_code != httpx.codes.OK:
                raise Unavailable(f"Piper answered {answer.status_code} for {text[:80]!r}.")
            with wave.open(io.BytesIO(answer.content)) as stream:
                return stream.getframerate(), stream.readframes(stream.getnframes())
        raise AssertionError  # the second try returns or raises
