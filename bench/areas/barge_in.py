"""From the user's onset to silence in the browser.

This module only starts the measurement and reads the result; `bench.clients.browser` drives Chromium with the tools of the browser tests.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure
from bench.stack import ROOT

TIMES: Final = 9
TIMEOUT_S: Final = 600.0
_WHAT: Final = "barge-in in the browser, onset → silence"


class Heard(msgspec.Struct, frozen=True):
    """Output of `bench.clients.browser`."""

    onset_to_silence_ms: list[float]


async def barge_in(quick: bool, say: Say) -> Found:
    """Run the measurement once; a run that fails is a missed target."""
    times = 2 if quick else TIMES
    say(f"barge_in: the agent is interrupted {times} times in a browser")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.clients.browser",
        str(times),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said, words = await process.communicate()
    except TimeoutError:
        return _failed(f"not within {TIMEOUT_S:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = (words if process.returncode else said).decode(errors="replace").strip().splitlines() or [""]
    try:
        heard = msgspec.json.decode(lines[-1].encode(), type=Heard)
        found = figures.series(heard.onset_to_silence_ms)
    except (msgspec.DecodeError, ValueError):
        return _failed(lines[-1][:200])
    rows = [
        Figure(
            area="barge_in",
            what=f"{_WHAT}, p50",
            key="barge_in.p50",
            unit="ms",
            value=found.p50,
            target=300,
            note=f"{found.count} interruptions",
        ),
        Figure(area="barge_in", what=f"{_WHAT}, longest", key="barge_in.longest", unit="ms", value=found.longest),
    ]
    return rows, {"onset_to_silence": found}, []


def _failed(why: str) -> Found:
    return [Figure(area="barge_in", what=_WHAT, unit="ms", value=None, target=300, note=why)], {}, []
