"""The local language model as its callers see it: under load, after a restart, and from one agent to the next.

    python -m bench --only busy        first tokens and whole answers with 0, 2 and 4 busy loops beside it, 20 of each
    python -m bench --only warm        the models service killed, stopped, its engine killed, a change of agent: against a warm
    prompt

Starts the models service alone, in a folder that is removed. The first token is timed from the request to the first piece of text or of a
call. The detail holds all values, with the load average beside them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import msgspec
import psutil

from bench import machine
from bench.areas.audio import Found, Say
from bench.areas.speech import PLAIN
from bench.report import Figure
from bench.stack import READY_S, Child, StackError, child_environment, free_port
from bench.tool_choice import SYSTEM, TOOLS
from voxbridge.shared.config import Config

LOADS: Final = (0, 2, 4)
ANSWERS: Final = 20
ROUNDS: Final = 5
MAX_TOKENS: Final = 64
ANSWER_S: Final = 110.0
SETTLE_S: Final = 1.0
"""Seconds between starting the loops and the first measurement."""

AGENTS: Final = tuple(
    f"{SYSTEM} You are {name}, and you speak about {topic} only."
    for name, topic in (("Ada", "the museum"), ("Ben", "the weather"), ("Cleo", "recipes"), ("Dan", "trains"))
)
"""Agents: one more than the engine has slots."""


class Answer(msgspec.Struct, frozen=True):
    """Times of one answer in ms after the request, and the load average."""

    first_ms: float
    whole_ms: float
    load: float


class Service:
    """The models service, started and ended as often as needed, in one folder."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        usual = Config()
        self._config = replace(usual, data_dir=folder, models_port=free_port(), log_level="warning")
        self._folder, self._running = folder, running
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Base URL of the service."""
        return f"http://127.0.0.1:{self._config.models_port}"

    @property
    def process(self) -> psutil.Process:
        """Process of the service. Raises `StackError` when it does not run."""
        if self._child is None:
            raise StackError("The models service is not running.")
        return psutil.Process(self._child.pid)

    async def start(self) -> None:
        """Start it and wait until every model is ready; raises `StackError`."""
        env = {**child_environment(), **self._config.as_env()}
        self._child = child = self._running.enter_context(Child("models", ["voxbridge.services.models"], env, self._folder))
        end = time.monotonic() + READY_S
        async with self._client() as client:
            while not await self._ready(client):
                child.check()
                if time.monotonic() > end:
                    raise StackError(f"The models service was not ready within {READY_S:g} s.")
                await asyncio.sleep(0.1)

    async def end(self, *, kill: bool) -> None:
        """End it with SIGKILL or, like a supervisor, with SIGTERM."""
        process = self.process
        (process.kill if kill else process.terminate)()
        await asyncio.to_thread(process.wait, 20)

    def engine(self) -> psutil.Process:
        """Return the process of llama.cpp; raises `StackError`."""
        for process in self.process.children(recursive=True):
            if (
                "voxbridge.services.models.engines.llama" in process.cmdline()
                and "voxbridge.services.models.processes.keeper" not in process.cmdline()
            ):
                return process
        raise StackError("llama.cpp is not running.")

    async def ask(self, question: str, system: str = SYSTEM, *, screen: str = "") -> Answer:
        """Stream one answer, of a model that is told of a `screen`; raises `httpx.HTTPError`."""
        told = [{"role": "user", "content": screen}] if screen else []
        messages = [{"role": "system", "content": system}, *told, {"role": "user", "content": question}]
        body = {"messages": messages, "tools": TOOLS, "stream": True, "max_tokens": MAX_TOKENS, "temperature": 0, "keep_prompt": True}
        began, first = time.perf_counter(), 0.0
        async with self._client() as client, client.stream("POST", "/v1/chat/completions", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                if not first and line.startswith("data: {") and _says_something(line[6:]):
                    first = time.perf_counter() - began
        whole = time.perf_counter() - began
        return Answer(round((first or whole) * 1_000, 1), round(whole * 1_000, 1), round(machine.load_average(), 2))

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=ANSWER_S, trust_env=False)

    async def _ready(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get("/readyz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


def _says_something(line: str) -> bool:
    choices: list[dict[str, Any]] = msgspec.json.decode(line).get("choices", [])
    return any(choice["delta"].get("content") or choice["delta"].get("tool_calls") for choice in choices)


@asynccontextmanager
async def running() -> AsyncIterator[Service]:
    """Run a service that is ready; raises `StackError`."""
    with ExitStack() as children:
        folder = children.enter_context(TemporaryDirectory(prefix="voxbridge-bench-", ignore_cleanup_errors=True))
        service = Service(Path(folder), children)
        await service.start()
        yield service


@contextmanager
def loops(count: int) -> Iterator[None]:
    """Run a process of so many busy loops beside the measurement, as another program of the same user would."""
    code = f"import os\nfor _ in range({count}):\n    os.fork() or exec('while True: pass')\nos.wait()"
    if not count:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()


async def busy(quick: bool, say: Say) -> Found:
    """Measure the same answers with nothing beside them, and with two and four busy loops."""
    count = 4 if quick else ANSWERS
    taken: dict[str, list[Answer]] = {}
    async with running() as service:
        await service.ask("Hello!")
        for load in LOADS:
            say(f"local model: {count} answers beside {load} busy loops")
            with loops(load):
                await asyncio.sleep(SETTLE_S)
                taken[str(load)] = [await service.ask(PLAIN[number % len(PLAIN)]) for number in range(count)]
    found: list[Figure] = []
    quiet = statistics.median(one.first_ms for one in taken["0"])
    for beside, answers in taken.items():
        first, whole = [one.first_ms for one in answers], [one.whole_ms for one in answers]
        where = f"local model, {beside} busy loops beside it" if beside != "0" else "local model, nothing beside it"
        longest_target = 8_000 if beside == "4" else None
        note = f"{len(answers)} answers"
        found.append(_figure("busy", f"{where}: first token, p50", "ms", statistics.median(first), key=f"busy.first_{beside}", note=note))
        found.append(_figure("busy", f"{where}: first token, longest", "ms", max(first)))
        what = f"{where}: a whole short answer, longest"
        found.append(_figure("busy", what, "ms", max(whole), key=f"busy.whole_{beside}", target=longest_target))
    against = statistics.median(one.first_ms for one in taken["4"]) / quiet
    what = "local model, first token beside 4 busy loops against none, p50"
    found.append(_figure("busy", what, "×", round(against, 2), key="busy.against_quiet", target=4))
    return found, taken, []


async def warm(quick: bool, say: Say) -> Found:
    """Measure the first token on a prompt that was read before: after a kill, after a start, and from one agent to the next."""
    rounds = 1 if quick else ROUNDS
    taken: dict[str, list[Answer]] = {"warm": [], "killed": [], "stopped": [], "engine killed": [], "handoff": []}
    async with running() as service:
        await service.ask("Hello!")
        for number in range(4 * rounds):
            taken["warm"].append(await service.ask(PLAIN[number % len(PLAIN)]))
        for number in range(rounds):
            for name, kill in (("killed", True), ("stopped", False)):
                say(f"the models service {name}, round {number + 1} of {rounds}")
                await service.end(kill=kill)
                await service.start()
                taken[name].append(await service.ask(PLAIN[number % len(PLAIN)]))
            engine = service.engine()
            engine.kill()
            await asyncio.to_thread(engine.wait, 20)
            await service.ask("Are you back?", AGENTS[0])  # waits for the engine, with another prompt than the one that is measured next
            taken["engine killed"].append(await service.ask(PLAIN[number % len(PLAIN)]))
        say("a change of agent")
        for agent in AGENTS:
            await service.ask("Hello!", agent)
        for number in range(2 * rounds):
            for agent in AGENTS:
                taken["handoff"].append(await service.ask(PLAIN[number % len(PLAIN)], agent))
    usual = statistics.median(one.first_ms for one in taken["warm"])
    note = f"{len(taken['warm'])} answers"
    found = [_figure("warm", "local model: first token, warm prompt, p50", "ms", usual, key="warm.usual", note=note)]
    for name, key, what in (
        ("killed", "warm.killed", "the models service killed: first token of the next turn against warm, p50"),
        ("stopped", "warm.started", "the models service started anew: first token of the next turn against warm, p50"),
        ("engine killed", "warm.engine", "llama.cpp killed: first token once it is back against warm, p50"),
        ("handoff", "warm.handoff", "handoff between local agents whose prompts were read once: first token against warm, p50"),
    ):
        against = statistics.median(one.first_ms for one in taken[name]) / usual
        found.append(_figure("warm", what, "×", round(against, 2), key=key, target=1.3, note=f"{len(taken[name])} answers"))
    return found, taken, []


def _figure(area: str, what: str, unit: str, value: float, *, key: str = "", target: float | None = None, note: str = "") -> Figure:
    needs = "the prompt read once before" if area == "warm" else "a warm prompt"
    return Figure(area=area, what=what, unit=unit, value=value, key=key, target=target, needs=needs, note=note)
