"""The models in memory: fetches their weights, loads them concurrently, and knows the progress of each.

Owns the four engines and their threads. A model that fails reports the reason and is tried again, while the others serve. A crash here
loses what is in memory; the weights on disk stay verified.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from voxbridge.services.models.core import phrasings
from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines.admission import Line
from voxbridge.services.models.engines.audio import RATE
from voxbridge.services.models.engines.background import Background, collected
from voxbridge.services.models.engines.llm import SLOTS, Llm, Sampling
from voxbridge.services.models.engines.phrasings import Phrasings
from voxbridge.services.models.engines.readings import Readings
from voxbridge.services.models.engines.stt import Whisper
from voxbridge.services.models.engines.tts import Piper
from voxbridge.services.models.engines.turn import SmartTurn
from voxbridge.services.models.processes import busy
from voxbridge.services.models.processes.home import Home
from voxbridge.services.models.weights.loader import Loader, sources_for
from voxbridge.services.models.weights.manifest import Model, Voice, load
from voxbridge.services.models.weights.progress import CountingProgress
from voxbridge.services.models.weights.shelf import Shelf
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

RETRY_S: Final = 15.0
DEFAULT_VOICE: Final = "default"
CPU_THREADS: Final = max(1, min(4, os.cpu_count() or 1))
ALIASES: Final = {"stt": ("whisper", "whisper-1"), "llm": ("local",), "tts": ("piper", "tts-1"), "turn": ("smart-turn",)}

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Phase(StrEnum):
    """The phase of a model."""

    WAITING = "waiting"
    FETCHING = "fetching"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Engines:
    """The chosen set of models. `run` starts them and returns when all are ready; using one before raises `UNAVAILABLE`."""

    def __init__(self, config: Config, home: Home) -> None:
        self._config = config
        self._home = home
        self.shelf = Shelf(config.models_dir)
        self.models = load().chosen(config.models_set)
        self.phases = {model.id: Phase.WAITING for model in self.models}
        self.reasons: dict[str, str] = {}
        self.lines = {
            "stt": Line("stt", 1),
            "llm": Line("llm", SLOTS),
            "tts": Line("tts", 2),
            "turn": Line("turn", 1),
            "embedding": Line("embedding", 1),
        }
        self.background = Background(tuple(line for name, line in self.lines.items() if name != "embedding"))
        self.readings = Readings(self.background, self._read, self._read_on)
        self.phrasings = Phrasings(self.background, self._phrase, home.phrasings, self.by_role("llm").files[0].sha256)
        self._pools = {role: ThreadPoolExecutor(1, thread_name_prefix=role) for role in ("stt", "turn")}
        self._progress: dict[str, CountingProgress] = {}
        self._stt: Whisper | None = None
        self._turn: SmartTurn | None = None
        self._llm: Llm | None = None
        self._tts: Piper | None = None

    def by_role(self, role: str) -> Model:
        """Return the model of a role."""
        return next(model for model in self.models if model.role == role)

    def named(self, role: str, name: str) -> None:
        """Raise `NOT_FOUND` unless `name` is this role's model or one of its aliases."""
        known = (self.by_role(role).id, *ALIASES[role])
        if name not in known:
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no model {name!r} here for this; use {' or '.join(known)}.", field="model")

    def voice(self, name: str) -> Voice:
        """Return the voice with this name. Raises `INVALID_ARGUMENT`."""
        voices = self.by_role("tts").voices
        known = {DEFAULT_VOICE: voices[0], **{voice.id: voice for voice in voices}}
        if name not in known:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"There is no voice {name!r}; use {' or '.join(known)}.", field="voice")
        return known[name]

    @property
    def stt(self) -> Whisper:
        """The transcriber. Raises `UNAVAILABLE` until it is ready."""
        return self._need(self._stt, "stt")

    @property
    def turn(self) -> SmartTurn:
        """The end-of-turn detector. Raises `UNAVAILABLE` until it is ready."""
        return self._need(self._turn, "turn")

    @property
    def llm(self) -> Llm:
        """The language model. Raises `UNAVAILABLE` until it is ready."""
        return self._need(self._llm, "llm")

    @property
    def tts(self) -> Piper:
        """The speech synthesizer. Raises `UNAVAILABLE` until it is ready."""
        return self._need(self._tts, "tts")

    def _need(self, engine: _Result | None, role: str) -> _Result:
        if engine is None:
            model = self.by_role(role)
            raise Unavailable(f"{model.title} is not ready: {self.state(model)}.", retry_after_ms=1_000)
        return engine

    def state(self, model: Model) -> str:
        """Return the progress of a model in words: `ready`, `loading`, `fetching, 41 % of model.bin …`, `failed: why`."""
        phase = self.phases[model.id]
        if phase is Phase.FETCHING and model.id in self._progress:
            progress = self._progress[model.id]
            return f"fetching, {progress.percent} % of {progress.label}" if progress.label else "checking the files on disk"
        return f"failed: {self.reasons[model.id]}" if phase is Phase.FAILED else phase.value

    @property
    def ready(self) -> bool:
        """True when every model serves."""
        return all(phase is Phase.READY for phase in self.phases.values())

    def late(self) -> str:
        """Return why an answer may be late, in words; empty when there is no reason."""
        missing = next((model for model in self.models if self.phases[model.id] is not Phase.READY), None)
        if missing is not None:
            return f"{missing.title} is {self.state(missing)}"
        reading = "the model reads its instructions for the first time" if self._llm is not None and self._llm.reading else ""
        return busy.why() or reading

    async def _read(self, family: str, keep: bool) -> None:
        await self.llm.read(family, keep=keep)

    async def _read_on(self, prompt: Prompt) -> None:
        await self.llm.read_on(prompt)

    async def _phrase(self, prompt: Prompt) -> str:
        sampling = Sampling(grammar=phrasings.GRAMMAR, max_tokens=phrasings.MAX_TOKENS)
        return "".join([step.text for step in await collected(self.llm.generate(prompt, sampling))])

    async def in_thread(self, role: str, work: Callable[[], _Result]) -> _Result:
        """Run blocking work in the thread of a role."""
        return await asyncio.get_running_loop().run_in_executor(self._pools[role], work)

    async def run(self) -> None:
        """Start all models. A failed model is tried again until it is ready."""
        fetching = asyncio.Lock()
        async with asyncio.TaskGroup() as group:
            for model in self.models:
                group.create_task(self._bring_up(model, fetching), name=f"bring-up-{model.id}")

    async def _bring_up(self, model: Model, fetching: asyncio.Lock) -> None:
        while True:
            try:
                # One at a time: downloads share the disk and the network, and the first models load while the others are fetched.
                async with fetching:
                    self.phases[model.id] = Phase.FETCHING
                    await asyncio.to_thread(self._fetch, model)
                self.phases[model.id] = Phase.LOADING
                await self._load(model)
            except VoxbridgeError as error:
                self.phases[model.id], self.reasons[model.id] = Phase.FAILED, error.message
                _log.error("%s", error.message)
                await asyncio.sleep(RETRY_S)
            else:
                self.phases[model.id] = Phase.READY
                _log.info("%s is ready", model.title)
                return

    def _fetch(self, model: Model) -> None:
        if not self.shelf.missing(model):
            return
        progress = self._progress[model.id] = CountingProgress(_log.info)
        Loader(self.shelf, sources_for(self._config.models_source, load(), self.shelf), progress).get(model)

    async def _load(self, model: Model) -> None:
        paths = [self.shelf.path(model, file) for file in model.files]
        loaders: dict[str, Callable[[Path], Awaitable[None]]] = {
            "stt": self._load_stt,
            "turn": self._load_turn,
            "llm": self._load_llm,
            "tts": self._load_tts,
        }
        if model.role in loaders:
            await loaders[model.role](paths[0])

    async def _load_stt(self, path: Path) -> None:
        def work() -> Whisper:
            try:
                whisper = Whisper(path.parent, min(2, CPU_THREADS))
            except (RuntimeError, ValueError) as error:
                raise Unavailable(f"CTranslate2 cannot load {path.parent.name}: {error}") from error
            whisper.warm()
            return whisper

        self._stt = await self.in_thread("stt", work)

    async def _load_turn(self, path: Path) -> None:
        def work() -> SmartTurn:
            try:
                model = SmartTurn(path)
            except RuntimeError as error:
                raise Unavailable(f"onnxruntime cannot load {path.name}: {error}") from error
            model.predict(np.zeros(RATE, np.float32))
            return model

        self._turn = await self.in_thread("turn", work)

    async def _load_llm(self, path: Path) -> None:
        llm = Llm(self._home, path, self._config.llm_threads or CPU_THREADS, sha256=self.by_role("llm").files[0].sha256)
        await llm.start()
        self._llm = llm

    async def _load_tts(self, path: Path) -> None:
        piper = Piper(self._home, path)
        await piper.start()
        self._tts = piper

    async def close(self) -> None:
        """Stop the engines' processes. The threads end with this process."""
        await asyncio.gather(*(engine.close() for engine in (self._tts, self._llm) if engine))
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
