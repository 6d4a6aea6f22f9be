"""From the end of speech to the first audio sent, with the local models: spoken questions in real time, and the time of each stage.

The questions are spoken by the product's own voice and sent as 20 ms frames with a little noise between them. The timestamps of a turn are
the product's (`turn_complete.latency`, from the end of speech as it detects it). The time from the last loud sample sent to the first reply
frame received is measured here, from outside, and includes the network and the detector.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec
import numpy as np
import numpy.typing as npt
import soxr

from bench.areas.audio import Found, Say
from bench.clients.client import FRAME_S, PCM_BYTES
from bench.clients.websocket import Socket, connect
from bench.report import Figure
from bench.stack import Stack
from voxbridge.shared.audio import frames

STAGES: Final = ("end_of_turn", "stt_final", "llm_first_token", "first_sentence", "tts_first_audio", "first_audio_sent")
REHEARSAL: Final = "Good morning, how are you today?"
PLAIN: Final = (
    "What is the capital of France?",
    "Who wrote Romeo and Juliet?",
    "How many days are in a week?",
    "What colour is the sky?",
    "What is the opposite of hot?",
    "Which animal says meow?",
    "What do bees make?",
    "Who painted the Mona Lisa?",
    "What is the largest ocean?",
    "What language do they speak in Brazil?",
    "How many legs does a spider have?",
    "What is frozen water called?",
)
TOOLS: Final = (
    "What time is it in Tokyo?",
    "What is seventeen times twenty three?",
    "Set a timer for ten minutes.",
    "Remember that my car is on level three.",
)
TURN_S: Final = 40.0
PAUSE_S: Final = 0.6
REHEARSALS: Final = 8
WARM_MS: Final = 3_000
"""A first token within this many ms means that the prompt had been read before."""

READ_S: Final = 300.0
QUIET: Final = 4
"""Checks, one a second, at which nothing is read in the background, after which nothing more is to be read."""

WARM: Final = "a language model that has read its standing prompt"

LOUD: Final = 400
"""Least absolute value of a sample that counts as speech."""

Pcm = npt.NDArray[np.int16]


class Turn(msgspec.Struct, kw_only=True):
    """A spoken question, and the times of its stages in ms after the end of speech."""

    asked: str
    understood: str = ""
    answered: str = ""
    tool: str = ""
    latency: dict[str, int] = {}
    outside_ms: float | None = None
    """Time from the last loud sample sent to the first reply frame received."""


class Call:
    """A call: sends the microphone in real time and plays the replies, as a browser would."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._quiet = np.random.default_rng(7).integers(-6, 7, PCM_BYTES // 2, dtype=np.int16).tobytes()
        self._waiting: list[bytes] = []
        self._sequence = 0
        self._loud_until = 0.0
        self._generation = 0
        self._played_s = 0.0
        self._began = 0.0
        self._turn = Turn(asked="")
        self._ready = asyncio.Event()
        self._complete = asyncio.Event()
        self._silent = asyncio.Event()
        self._lost: int | None = None
        socket.on_text = self._text
        socket.on_binary = self._frame
        socket.on_closed = self._closed

    async def write(self, text: str) -> Turn:
        """Type instead of speaking; raises `TimeoutError`, `ConnectionError`."""
        self._turn = Turn(asked=text)
        self._complete.clear()
        self._say({"type": "text", "text": text})
        return await self._completed(TURN_S)

    async def start(self) -> None:
        """Start the session and wait until the greeting was played."""
        self._say({"type": "start", "mode": "local"})
        async with asyncio.timeout(TURN_S):
            await self._ready.wait()
            await self._silent.wait()

    async def microphone(self) -> None:
        """Send a frame every 20 ms until cancelled."""
        clock = time.perf_counter
        due = clock()
        while True:
            pcm = self._waiting.pop(0) if self._waiting else self._quiet
            self._socket.send_binary(frames.pack(frames.PCM16, 0, self._sequence, 0, pcm))
            self._sequence += 1
            if pcm is not self._quiet:
                self._loud_until = clock()
            due += FRAME_S
            await asyncio.sleep(max(0.0, due - clock()))

    async def ask(self, text: str, pcm: Pcm) -> Turn:
        """Speak a question and wait until its turn is complete and its answer was played; raises `TimeoutError`, `ConnectionError`."""
        self._turn = Turn(asked=text)
        self._complete.clear()
        self._silent.clear()
        data = pcm.tobytes()
        self._waiting = [data[at : at + PCM_BYTES].ljust(PCM_BYTES, b"\0") for at in range(0, len(data), PCM_BYTES)]
        return await self._completed(TURN_S + len(data) / 32_000)

    async def _completed(self, within_s: float) -> Turn:
        async with asyncio.timeout(within_s):
            await self._complete.wait()
        if self._lost is not None:
            raise ConnectionError(f"The call was closed with {self._lost}.")
        return self._turn

    def _text(self, payload: bytes) -> None:
        message: dict[str, Any] = msgspec.json.decode(payload)
        kind = message["type"]
        if kind == "setup_complete":
            self._ready.set()
        elif kind == "transcript" and message.get("final"):
            if message["role"] == "user":
                self._turn.understood = f"{self._turn.understood} {message['text']}".strip()
            else:
                self._turn.answered = message["text"]
        elif kind == "function_call":
            self._turn.tool = message["name"]
        elif kind == "turn_complete" and self._turn.asked:
            self._turn.latency = message.get("latency", {})
            self._complete.set()

    def _frame(self, frame: bytes) -> None:
        prefix = frames.parse(frame)
        loop = asyncio.get_running_loop()
        if prefix.kind != frames.PCM16:
            self._say({"type": "playback", "generation": prefix.generation, "played_ms": self._played_ms(), "state": "flushed"})
            return
        if prefix.generation != self._generation:
            self._generation, self._played_s, self._began = prefix.generation, 0.0, time.perf_counter()
            if self._turn.outside_ms is None and self._loud_until:
                self._turn.outside_ms = (self._began - self._loud_until) * 1_000
            self._say({"type": "playback", "generation": prefix.generation, "played_ms": 0, "state": "playing"})
        self._played_s += (len(frame) - frames.PREFIX_SIZE) / (2 * frames.OUTPUT_RATE)
        if prefix.flags & frames.LAST:
            loop.call_later(max(0.0, self._began + self._played_s - time.perf_counter()), self._finished, prefix.generation)

    def _finished(self, generation: int) -> None:
        if generation == self._generation:
            played_ms = round(self._played_s * 1_000)
            self._say({"type": "playback", "generation": generation, "played_ms": played_ms, "state": "finished"})
            self._silent.set()

    def _played_ms(self) -> int:
        return round(min(self._played_s, time.perf_counter() - self._began) * 1_000)

    def _closed(self, code: int) -> None:
        self._lost = code
        for event in (self._ready, self._silent, self._complete):
            event.set()

    def _say(self, message: dict[str, Any]) -> None:
        self._socket.send_text(msgspec.json.encode(message))


async def rehearse(product: Stack) -> None:
    """Type turns until the language model has read its standing prompt, which it does while nobody asks for anything, and answers as fast
    as with a warm one. Raises `TimeoutError` when it never does."""
    socket = await connect(product.url, "voxbridge.v1")
    call = Call(socket)
    try:
        await call.start()
        for _ in range(REHEARSALS):
            turn = await call.write("Hello!")
            await _read(product)
            if turn.latency.get("llm_first_token", WARM_MS) < WARM_MS:
                return
    finally:
        socket.close()
    raise TimeoutError(f"the language model was not warm after {REHEARSALS} turns")


async def _read(product: Stack) -> None:
    """Wait until the models read nothing in the background any more; raises `TimeoutError` after `READ_S`."""
    quiet = 0
    async with httpx.AsyncClient(base_url=product.config.models_base_url.removesuffix("/v1"), trust_env=False) as client:
        async with asyncio.timeout(READ_S):
            while quiet < QUIET:
                await asyncio.sleep(1.0)
                lines = (await client.get("/metrics")).raise_for_status().text.splitlines()
                quiet = quiet + 1 if 'voxbridge_model_requests{role="background"} 0.0' in lines else 0


async def speech(product: Stack, quick: bool, say: Say) -> Found:
    """Ask every question in one call. The first turn only warms up caches and is not counted."""
    plain, tools = (PLAIN[:3], TOOLS[:1]) if quick else (PLAIN, TOOLS)
    spoken = {text: await voiced(product, text) for text in (REHEARSAL, *plain, *tools)}
    turns: list[Turn] = []
    notes: list[str] = []
    socket = await connect(product.url, "voxbridge.v1")
    call = Call(socket)
    microphone = asyncio.create_task(call.microphone())
    try:
        await call.start()
        for text, pcm in spoken.items():
            say(f"speech: {text}")
            try:
                turn = await call.ask(text, pcm)
            except TimeoutError:
                notes.append(f"no answer to {text!r} within {TURN_S:g} s")
                continue
            if text != REHEARSAL:
                turns.append(turn)
            await asyncio.sleep(PAUSE_S)
    finally:
        microphone.cancel()
    socket.close()
    answered = [turn for turn in turns if turn.asked in PLAIN]
    called = [turn for turn in turns if turn.asked in TOOLS]
    through = sum(bool(turn.tool) for turn in called)
    what = "end of speech → first audio sent, local models"
    found = [
        _figure(f"{what}, p50", "speech.p50", [_sent(turn) for turn in answered], target=800, note=f"{len(answered)} turns"),
        _figure(
            "the same from outside: last loud sample → first reply frame, p50", "speech.outside", [turn.outside_ms for turn in answered]
        ),
        _figure(
            f"{what}, answers that need a tool, p50",
            "speech.tools",
            [_sent(turn) for turn in called],
            note=f"{len(called)} turns, {through} called one",
        ),
    ]
    return found, {"turns": turns, "waterfall": waterfall(answered), "notes": notes}, notes


def waterfall(turns: Sequence[Turn]) -> dict[str, float]:
    """Return the median of each stage in ms after the end of speech, over the turns that have it."""
    by_stage = {stage: [turn.latency[stage] for turn in turns if stage in turn.latency] for stage in STAGES}
    return {stage: statistics.median(values) for stage, values in by_stage.items() if values}


def trimmed(pcm: Pcm) -> Pcm:
    """Return the speech without the silence around it; raises `ValueError` when there is none."""
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > LOUD)
    if not loud.size:
        raise ValueError("there is no speech")
    return pcm[loud[0] : loud[-1] + 1]


def _figure(what: str, key: str, values: Sequence[float | None], *, target: float | None = None, note: str = "") -> Figure:
    known = [value for value in values if value is not None]
    median = statistics.median(known) if known else None
    return Figure(area="speech", what=what, key=key, unit="ms", value=median, target=target, needs=WARM, note=note)


def _sent(turn: Turn) -> float | None:
    return turn.latency.get("first_audio_sent")


async def voiced(product: Stack, text: str) -> Pcm:
    """Return a text in the product's own voice, at 16 kHz, without silence before and after it."""
    body = {"model": "piper", "voice": "default", "input": text, "response_format": "pcm"}
    async with httpx.AsyncClient(base_url=product.config.models_base_url, timeout=60, trust_env=False) as client:
        answer = (await client.post("/audio/speech", json=body)).raise_for_status()
    samples = np.frombuffer(answer.content, dtype="<i2").astype(np.float32)
    resampled = soxr.resample(samples, frames.OUTPUT_RATE, frames.INPUT_RATE)
    return trimmed(np.clip(resampled, -32_768, 32_767).astype(np.int16))
