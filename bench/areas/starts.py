"""From `start` to `setup_complete`: sessions in local mode on the whole product, with its models loaded and its greeting on."""

from __future__ import annotations

from typing import Final

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.client import StartsResult, Task
from bench.clients.load import run
from bench.report import Figure
from bench.stack import Stack

SESSIONS: Final = 50
GAP_S: Final = 0.25
"""Seconds between two starts: four users a second."""

WARM: Final = "models that are loaded and five starts before"


async def starts(product: Stack, quick: bool, say: Say) -> Found:
    """Start up to 50 sessions one after another and hold them; then start 50 at once."""
    rounds = 1 if quick else 3
    paced: list[float] = []
    say("starts: warming up")
    await _run(product, 5, GAP_S)
    for number in range(rounds):
        say(f"starts: {SESSIONS} one after another, round {number + 1} of {rounds}")
        paced += await _run(product, SESSIONS, GAP_S)
    say(f"starts: {SESSIONS} at once")
    burst = figures.series(await _run(product, SESSIONS, 0.0))
    spaced = figures.series(paced)
    what = "start → setup_complete, local mode"
    held = f"{what}, up to {SESSIONS} sessions held"
    found = [
        Figure(area="starts", what=f"{held}, p50", key="starts.p50", unit="ms", value=spaced.p50, needs=WARM),
        Figure(area="starts", what=f"{held}, p95", key="starts.p95", unit="ms", value=spaced.p95, target=100, needs=WARM),
        Figure(area="starts", what=f"{what}, {SESSIONS} at the same instant, p95", key="starts.burst", unit="ms", value=burst.p95),
    ]
    return found, {"paced": spaced, "burst": burst, "gap_s": GAP_S}, []


async def _run(product: Stack, sessions: int, gap_s: float) -> list[float]:
    task = Task(kind="starts", url=product.url, sessions=sessions, gap_s=gap_s, mode="local")
    return (await run(task, StartsResult)).start_ms
