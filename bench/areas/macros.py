"""Runs of macros: what the engine adds to a step, and how soon a run goes on whose executor was killed.

The steps call functions that do nothing, or nothing for a moment, so all of it is the path: the step's events, its call by the common path,
and their journal, each acknowledged by a log that syncs every append.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.empty_pack import LINGER_S
from bench.clients.function_calls import PACK
from bench.clients.tool_session import Heard, ToolSession, tool_session
from bench.report import Figure, beside
from bench.stack import Child, Stack, child_environment, stack
from voxbridge.shared import events
from voxbridge.shared.events.tools import RunCompleted, RunStarted, RunStepCompleted, RunStepFailed, RunStepStarted
from voxbridge.shared.setting import PREFIX

STEPS: Final = 20
RUNS: Final = 25
KILLS: Final = 10
LINGERING: Final = 6
"""Steps of a run that is killed, one after the other in each of its steps but the last."""

PACKS: Final = {f"{PREFIX}TOOL_PACKS": f"{PACK},voxbridge.services.tools.packs.macros.functions"}
APPEND: Final = "an event appended and acknowledged"


async def macros(quick: bool, say: Say) -> Found:
    """Run a macro of empty steps, then kill the executors of others, with another executor beside and without."""
    steps, about_steps, _ = await _steps(3 if quick else RUNS, say)
    kills = 2 if quick else KILLS
    alone = [await _killed(number, say, beside=False) for number in range(kills)]
    paired = [await _killed(number, say, beside=True) for number in range(kills)]
    what = "executor killed (kill -9) in a step of a macro → the run goes on"
    rows = [
        _resumed(f"{what}, longest", "macros.resumed", alone, "one executor, started again at once"),
        _resumed("the same beside a second executor, longest", "macros.resumed_beside", paired, "a second executor"),
    ]
    return [*steps, *rows], {**about_steps, "resumed_ms": alone, "resumed_beside_ms": paired}, []


async def _steps(runs: int, say: Say) -> Found:
    between: list[float] = []
    whole: list[float] = []
    async with stack(("tools",), extra=PACKS) as product, tool_session(product.config.nats_url) as session:
        await _save(session, "empty", "nothing", STEPS)
        await _run(session, "empty")
        for number in range(runs):
            say(f"macros: run {number + 1} of {runs}")
            heard = await _run(session, "empty")
            ends = [one.at for one in heard if isinstance(one.event, RunStepCompleted)]
            if len(ends) != STEPS:
                raise ValueError(f"{len(ends)} of {STEPS} steps ended well")
            between += [1_000 * (after - before) for before, after in pairwise(ends)]
            whole.append(1_000 * (heard[-1].at - heard[0].at))
        append = figures.series([await session.append_ms() for _ in range(200)])
    step, run = figures.series(between), figures.series(whole)
    note = f"{runs} runs of {STEPS} steps that do nothing, from the end of one to the end of the next"
    found = [
        beside(_of("a step of a macro, our share, p50", "macros.step", step.p50, "ms", target=12, note=note), APPEND, append.p50),
        _of("the same, p95", "", step.p95, "ms"),
        _of(f"a run of {STEPS} such steps, p50", "", run.p50, "ms"),
    ]
    return found, {"steps": step, "runs": run, "append": append}, []


async def _killed(number: int, say: Say, *, beside: bool) -> float:
    """Kill the executor in the middle of a step, and return the ms until its successor first tells of the run.

    The run must then end, each step having ended once. Raises `ValueError` otherwise."""
    say(f"macros: executor killed, round {number + 1}{', another one beside' if beside else ''}")
    async with stack(("tools",), extra=PACKS) as product, tool_session(product.config.nats_url) as session:
        await _save(session, "slow", "linger", LINGERING)
        begun = len(session.heard)
        await session.begin("run_macro", name="slow")
        at = f"s{number % (LINGERING - 1)}"
        await session.until(lambda one: isinstance(one, RunStepStarted) and one.step == at, after=begun)
        with ExitStack() as running:
            victims = [product.processes["tools"]]
            if beside:
                await product.start("tools")  # takes longer than the run: the next run is the one that is killed
                await session.until(lambda one: isinstance(one, RunCompleted), after=begun)
                begun = len(session.heard)
                await session.begin("run_macro", name="slow")
                await session.until(lambda one: isinstance(one, RunStepStarted) and one.step == at, after=begun)
            for victim in victims:
                victim.kill()
                victim.wait(5)
            killed, before = time.perf_counter(), len(session.heard)
            if not beside:
                folder = running.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-"))
                running.enter_context(_executor(product, Path(folder)))
            onwards = await session.until(_of_steps, after=before)
            await session.until(lambda one: isinstance(one, RunCompleted), after=begun)
        check(session.heard[begun:])
    return 1_000 * (onwards.at - killed)


def _executor(product: Stack, folder: Path) -> Child:
    return Child("tools", ["voxbridge.services.tools"], {**child_environment(), **product.config.as_env(), **PACKS}, folder)


def _of_steps(event: events.Event) -> bool:
    return isinstance(event, RunStepStarted | RunStepCompleted | RunStepFailed)


def check(heard: list[Heard]) -> None:
    """Raise `ValueError` unless every step of the run ended well once."""
    ended = sorted(one.event.step for one in heard if isinstance(one.event, RunStepCompleted))
    if ended != [f"s{number}" for number in range(LINGERING)]:
        raise ValueError(f"of {LINGERING} steps, {len(ended)} ended: {', '.join(ended)}")


async def _save(session: ToolSession, name: str, function: str, count: int) -> None:
    steps = [{"id": f"s{number}", "call": function} for number in range(count)]
    await session.there("nothing")
    await session.call("create_macro", name=name, steps=steps)


async def _run(session: ToolSession, name: str) -> list[Heard]:
    """Run a macro, and return what was heard from its start to its end."""
    after = len(session.heard)
    await session.begin("run_macro", name=name)
    first = await session.until(lambda one: isinstance(one, RunStarted), after=after)
    last = await session.until(lambda one: isinstance(one, RunCompleted), after=after)
    return [one for one in session.heard[after:] if first.at <= one.at <= last.at]


def _resumed(what: str, key: str, taken: list[float], needs: str) -> Figure:
    found = figures.series(taken)
    middle = f"p50 {found.p50:,.0f} ms" if found.p50 is not None else ""
    note = f"{len(taken)} kills in the middle of a step of {1_000 * LINGER_S:.0f} ms, {middle}; each step ended once"
    return _of(what, key, found.longest, "ms", target=4_000, needs=needs, note=note)


def _of(what: str, key: str, value: float | None, unit: str, **more: Any) -> Figure:
    return Figure(area="macros", what=what, key=key, unit=unit, value=value, **more)
