"""From the user's onset to silence in the browser.

This module only starts the measurement and reads the result; `bench.clients.browser` drives Chromium with the tools of the browser tests.
"""

from __future__ import annotations

from typing import Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.program import result
from bench.report import Figure

TIMES: Final = 9
TIMEOUT_S: Final = 600.0
TARGET_MS: Final = 300
_WHAT: Final = "barge-in in the browser, onset → silence"


class Heard(msgspec.Struct, frozen=True):
    """Output of `bench.clients.browser`."""

    onset_to_silence_ms: list[float]


async def barge_in(quick: bool, say: Say) -> Found:
    """Run the measurement once; a run that fails is a missed target."""
    times = 2 if quick else TIMES
    say(f"barge_in: the agent is interrupted {times} times in a browser")
    try:
        heard = await result("bench.clients.browser", str(times), kind=Heard, within_s=TIMEOUT_S)
        found = figures.series(heard.onset_to_silence_ms)
    except (TimeoutError, ValueError) as error:
        return [Figure(area="barge_in", what=_WHAT, unit="ms", value=None, target=TARGET_MS, note=str(error))], {}, []
    rows = [
        Figure(
            area="barge_in",
            what=f"{_WHAT}, p50",
            key="barge_in.p50",
            unit="ms",
            value=found.p50,
            target=TARGET_MS,
            note=f"{found.count} interruptions",
        ),
        Figure(area="barge_in", what=f"{_WHAT}, longest", key="barge_in.longest", unit="ms", value=found.longest),
    ]
    return rows, {"onset_to_silence": found}, []
