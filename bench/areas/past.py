"""Past calls: a recorded call replayed with `voxbridge replay`, and half an hour opened in Studio's timeline.

The baseline of the replay is the start of the command alone; that of the timeline is the page with the list of sessions.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure, beside
from bench.stack import ROOT, StackError
from tests.recorded_calls import a_call, file_of

MINUTES: Final = 10
TIMES: Final = 5
OPENINGS: Final = 8
TIMEOUT_S: Final = 300.0


class Opened(msgspec.Struct, frozen=True):
    """Output of `bench.clients.timeline`: ms from navigation to the first frame that shows the timeline, and the same for the list."""

    timeline_ms: list[float]
    list_ms: list[float]


async def past(quick: bool, say: Say) -> Found:
    """Measure both, several times."""
    replayed, about, _ = await _replay(2 if quick else TIMES, say)
    opened, more, _ = await _timeline(3 if quick else OPENINGS, say)
    return [*replayed, *opened], {**about, **more}, []


async def _replay(times: int, say: Say) -> Found:
    say(f"past: a call of {MINUTES} minutes is made")
    turns, log = 64, a_call(64)
    while log[-1].ts - log[0].ts < MINUTES * 60_000_000:
        turns += 16
        log = a_call(turns)
    took: list[float] = []
    start: list[float] = []
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder:
        file = Path(folder) / "call.jsonl"
        file.write_bytes(file_of(log))
        for number in range(times):
            say(f"past: replay {number + 1} of {times}")
            start.append((await ran("voxbridge", "replay", "--help"))[1])
            took.append((await ran("voxbridge", "replay", str(file)))[1])
    whole, command = figures.series(took), figures.series(start)
    what = f"replay of a recorded session of {MINUTES} minutes, the whole command, p50"
    note = f"{len(log):,} events, {turns} turns"
    figure = Figure(area="past", what=what, key="past.replay", unit="ms", value=whole.p50, target=3_000, note=note)
    return (
        [beside(figure, "the start of the command", command.p50)],
        {"replay": whole},
        [],
    )


async def _timeline(times: int, say: Say) -> Found:
    say(f"past: half an hour is opened in Studio, {times} times")
    said, _ = await ran("bench.clients.timeline", str(times))
    opened = msgspec.json.decode(said.splitlines()[-1], type=Opened)
    timeline, listed = figures.series(opened.timeline_ms), figures.series(opened.list_ms)
    what = "opening a session of 30 minutes in Studio, from the click to the first frame with its timeline"
    note, other = f"{times} times", "the list of sessions"
    middle = Figure(area="past", what=f"{what}, p50", key="past.timeline", unit="ms", value=timeline.p50, target=1_000, note=note)
    longest = Figure(area="past", what=f"{what}, longest", unit="ms", value=timeline.longest, note=note)
    found = [
        beside(middle, other, listed.p50),
        beside(longest, other, listed.longest),
    ]
    return found, {"timeline": timeline, "list": listed}, []


async def ran(module: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[bytes, float]:
    """Run a module. Return its output and the ms it took; raises `StackError` when it fails."""
    began = time.perf_counter()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, *words, cwd=ROOT, env=env, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said, failed = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise StackError(f"{module} ended with {process.returncode}: {(failed or said).decode(errors='replace').strip()[-300:]}")
    return said, (time.perf_counter() - began) * 1_000
