"""Knowledge graphs: search over 100,000 passages, the memory of the service, ingest, and a live call beside an ingest.

The texts are made of the words of the set that search quality is measured on, as often as they stand there. The caller is this process; the
models service embeds, and runs the local models for the call.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

from bench import figures
from bench.areas.audio import Found, Say
from bench.areas.speech import rehearse, speech
from bench.clients.client import EchoResult, Task
from bench.clients.load import run
from bench.report import Figure, beside
from bench.stack import FULL, Stack, stack
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.knowledge import Asks, Ingest, Search, asking
from voxbridge.shared.setting import PREFIX

PASSAGES: Final = 100_000
QUICK: Final = 10_000
EACH: Final = 100
"""Passages of a document."""

WORDS: Final = 70
"""Words of a passage."""

SEARCHES: Final = 300
MADE: Final = 50
"""Documents that are made ahead of a measurement."""

ECHO_S: Final = 10.0
SET: Final = Path(__file__).parents[2] / "tests" / "knowledge" / "python_faq.json"
ACCOUNT: Final = "local"
_T = TypeVar("_T")


async def knowledge(quick: bool, say: Say) -> Found:
    """Measure ingest, then search and memory, then a call without an ingest and with one."""
    total = QUICK if quick else PASSAGES
    texts = _Texts(7)
    async with stack(("knowledge", *FULL), extra={f"{PREFIX}KNOWLEDGE_READING": "0"}) as product:
        nc = await connect_nats(product.config.nats_url, "bench-knowledge", pending=1 << 20, timeout_s=5)
        try:
            asks = asking(nc)
            began = time.perf_counter()
            for number in range(total // EACH):
                if number % 100 == 0:
                    say(f"knowledge: {number * EACH:,} of {total:,} passages")
                await _ingest(asks, "large", number, texts.document())
            rate = total / (time.perf_counter() - began)
            say("knowledge: search")
            took, by = await _searches(asks, texts, 50 if quick else SEARCHES)
            memory = product.memory()["knowledge"] / 2**20
            beside_call, about, _ = await _call(product, asks, texts, quick, say)
        finally:
            await nc.close()
    found = figures.series(took)
    over = f"search by {by.partition(' (')[0]} over {total:,} passages, the question embedded"
    return (
        [
            _of(f"{over}, p50", "knowledge.search_p50", found.p50, "ms"),
            _of(f"{over}, p95", "knowledge.search_p95", found.p95, "ms", target=30),
            _of(f"memory of the service with {total:,} passages", "knowledge.memory", memory, "MiB", target=450),
            _of(
                "passages ingested a second, embedded",
                "knowledge.ingest",
                rate,
                "/s",
                target=300,
                aim="at least",
            ),
            *beside_call,
        ],
        {"search": found, **about},
        [],
    )


class _Texts:
    """Texts of the set's words, in the order that chance gives."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = " ".join(json.loads(SET.read_text("utf-8"))["documents"]).split()

    def words(self, number: int) -> str:
        """Return a row of words."""
        return " ".join(self._random.choices(self._words, k=number))

    def document(self) -> str:
        """Return a text of `EACH` passages."""
        return "\n".join(f"# {self.words(4)}\n\n{self.words(WORDS)[:580]}." for _ in range(EACH)).replace("```", "")


async def _ingest(asks: Asks, graph: str, number: int, text: str) -> None:
    await asks(Ingest(account=ACCOUNT, graph=graph, source=f"{number}.md", title=f"{number}", text=text, at=number + 1))


async def _searches(asks: Asks, texts: _Texts, times: int) -> tuple[list[float], str]:
    took: list[float] = []
    by = ""
    for number in range(times + 10):
        question = texts.words(4 + number % 5)[:500]
        began = time.perf_counter()
        by = (await asks(Search(account=ACCOUNT, query=question, graphs=("large",)))).by
        took.append((time.perf_counter() - began) * 1_000)
    return took[10:], by


async def _call(product: Stack, asks: Asks, texts: _Texts, quick: bool, say: Say) -> Found:
    """Measure audio and the first audio of a turn, each without an ingest and with one."""

    async def echo() -> EchoResult:
        return await run(Task(kind="echo", url=product.url, sessions=1, seconds=3.0 if quick else ECHO_S, pids=product.pids()), EchoResult)

    async def turns() -> float | None:
        found, _, _ = await speech(product, quick, say)
        return next(one.value for one in found if one.key == "speech.p50")

    say("knowledge: a call alone, then beside an ingest")
    alone, with_ingest, rate = await _both(echo, asks, texts)
    await rehearse(product)
    first, first_with, _ = await _both(turns, asks, texts)
    share = first_with / first if first and first_with else None
    what = "audio round trip of one call beside an ingest, p99"
    return (
        [
            beside(_of(what, "knowledge.audio", with_ingest.rtt_ms.p99, "ms", target=10), "the same without one", alone.rtt_ms.p99),
            _of("passages ingested a second beside the call", "knowledge.ingest_beside", rate, "/s"),
            _of(
                "first audio of a turn beside an ingest, p50, and without one",
                "knowledge.first",
                share,
                "×",
                target=1.15,
            ),
        ],
        {"echo": [alone, with_ingest], "first_audio_ms": [first, first_with]},
        [],
    )


async def _both(measure: Callable[[], Awaitable[_T]], asks: Asks, texts: _Texts) -> tuple[_T, _T, float]:
    """Measure without an ingest, then with one; return both, and how many passages were ingested a second."""
    alone = await measure()
    made = [texts.document() for _ in range(MADE)]  # ahead, since this process is the caller of the call too
    done = 0

    async def ingest() -> None:
        nonlocal done
        for number in count(1):
            await _ingest(asks, "beside", number, made[number % MADE])
            done = number

    began, ingesting = time.perf_counter(), asyncio.create_task(ingest())
    try:
        beside_it = await measure()
    finally:
        rate = done * EACH / (time.perf_counter() - began)
        ingesting.cancel()
        with suppress(asyncio.CancelledError):
            await ingesting
    return alone, beside_it, rate


def _of(what: str, key: str, value: float | None, unit: str, **more: Any) -> Figure:
    return Figure(area="knowledge", what=what, key=key, unit=unit, value=value, **more)
