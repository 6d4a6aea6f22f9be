"""Choosing among many functions by the local language model: the held-out set of `bench.choice`.

python -m bench --only choices
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import httpx
import msgspec

from bench import machine
from bench.areas.audio import Found, Say
from bench.areas.local_model import running
from bench.choice import measure, sets
from bench.choice.asking import Asker
from bench.choice.measure import Measured, share
from bench.report import Figure
from voxbridge.shared.agents.functions import Function

ANSWER_S: Final = 120.0
FIRST_TRIES: Final = 3
"""Tries of the first request: it also reads the prompt, which can exceed `ANSWER_S` on a busy machine."""

QUICK_EVERY: Final = 10
_MORE_IS_BETTER: Final = frozenset({"choices.shortlist", "choices.right", "choices.arguments", "choices.follow_ups"})


async def measured(
    name: sets.Name, say: Callable[[str], None], *, every: int = 1, unread: bool = False, functions: Sequence[Function] | None = None
) -> Measured:
    """Measure a set with a models service of its own, which knows these functions, or all. `unread`: before it has read the whole prompt.
    Raises `StackError`."""
    load, known = machine.load_average(), sets.functions() if functions is None else functions
    routing = measure.routing(name, known)
    async with running() as service:
        with httpx.Client(base_url=f"{service.url}/v1", timeout=ANSWER_S, trust_env=False) as client:
            asker = Asker(client, known)
            for attempt in range(0 if unread else FIRST_TRIES):
                try:
                    await asyncio.to_thread(asker.read_ahead)
                except httpx.TimeoutException:
                    if attempt + 1 == FIRST_TRIES:
                        raise
                else:
                    break
            answers = await asyncio.to_thread(measure.answers, asker, name, known, say, every=every)
    return Measured(datetime.now(UTC).isoformat(timespec="seconds"), name, routing, answers, round(load, 2))


async def choices(quick: bool, say: Say) -> Found:
    """Ask every request once."""
    found = await measured("held_out", say, every=QUICK_EVERY if quick else 1)
    requests, talk, follow_ups = found.of("request"), found.of("talk"), found.of("follow-up")
    routing = found.routing
    known = f"{routing.functions} functions known"
    wanted = f"{len(requests)} held-out requests, {known}, load {found.load:.1f}"
    shortlist = "router: the wanted function is in its shortlist of six"
    figures = [
        _figure(shortlist, "choices.shortlist", "%", routing.hit(6), 95, f"{len(routing.places)} held-out requests, {known}"),
        _figure("router: cost of a turn, p95", "choices.cost", "ms", routing.cost_p95_ms, 3, known),
        _figure("local model: right function", "choices.right", "%", share(one.right for one in requests), 85, wanted),
        _figure(
            "local model: right function and arguments",
            "choices.arguments",
            "%",
            share(one.arguments_right for one in requests),
            75,
            wanted,
        ),
        _figure(
            "local model: small talk that calls", "choices.needless", "%", share(not one.right for one in talk), 5, f"{len(talk)} lines"
        ),
        _figure(
            "local model: follow-ups right", "choices.follow_ups", "%", share(one.right for one in follow_ups), 75, f"{len(follow_ups)}"
        ),
        _figure("local model: a call decided, p50", "choices.decision", "s", measure.decision_s(requests), 1.2, wanted),
    ]
    return figures, msgspec.to_builtins(found), []


def _figure(what: str, key: str, unit: str, value: float, target: float, note: str) -> Figure:
    return Figure(
        area="choices",
        what=what,
        key=key,
        unit=unit,
        value=round(value, 2),
        target=target,
        aim="at least" if key in _MORE_IS_BETTER else "at most",
        needs="" if what.startswith("router") else "a warm prompt",
        note=note,
    )
