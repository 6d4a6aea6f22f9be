"""From the user's onset to silence in the browser: taken by `tests.browser.barge_in`, which drives a real Chromium.

Owns only the question. That module prints one JSON object on its last line: `{"onset_to_silence_ms": [...]}`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from typing import Final

import msgspec

from bench import figures
from bench.audio import Found, Say
from bench.report import Figure
from bench.stack import ROOT

MODULE: Final = "tests.browser.barge_in"
TIMEOUT_S: Final = 300.0
_WHAT: Final = "barge-in in the browser, onset → silence, longest"


class Heard(msgspec.Struct, frozen=True):
    """What the module says."""

    onset_to_silence_ms: list[float]


async def barge_in(quick: bool, say: Say) -> Found:
    """Run it once; a run that fails is a missed target."""
    if importlib.util.find_spec(MODULE) is None:
        return [], {}, []
    say("barge_in: a browser is interrupted")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", MODULE, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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
    lines = (said or words).decode(errors="replace").strip().splitlines() or [""]
    try:
        heard = msgspec.json.decode(lines[-1].encode(), type=Heard)
        times = figures.series(heard.onset_to_silence_ms)
    except (msgspec.DecodeError, ValueError):
        return _failed(lines[-1][:200])
    return [Figure(area="barge_in", what=_WHAT, unit="ms", value=times.longest, target=300)], {"onset_to_silence": times}, []


def _failed(why: str) -> Found:
    return [Figure(area="barge_in", what=_WHAT, unit="ms", value=None, target=300, note=why)], {}, []
