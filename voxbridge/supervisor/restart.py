"""Back-off for restarting a process that died. Pure: given how long the process ran, it returns how long to wait.

Owns the numbers of the back-off. Does not own processes or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST_WAIT_S: Final = 0.1
LAST_WAIT_S: Final = 5.0
SERVED_WAIT_S: Final = 0.4
"""Longest wait in seconds for a process that was ready before it ended: it can start, and users wait for it."""
STEADY_S: Final = 10.0
"""Seconds after which a running process counts as sound again; its earlier failures are forgotten."""
LOOP_AFTER: Final = 5
"""Short lives in a row after which a crash loop is reported."""


@dataclass(frozen=True, slots=True)
class History:
    """Number of short lives in a row."""

    failures: int = 0


class Restart(NamedTuple):
    """Reaction to an exit: the wait, and whether the process is in a crash loop; `news` if that has just begun."""

    history: History
    wait_s: float
    looping: bool
    news: bool


def after_exit(history: History, ran_s: float, *, served: bool = False) -> Restart:
    """Return the reaction to an exit after `ran_s` seconds of life; `served` if the process was ready at some time of it."""
    failures = 1 if ran_s >= STEADY_S else history.failures + 1
    wait_s = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 16), SERVED_WAIT_S if served else LAST_WAIT_S)
    return Restart(History(failures), wait_s, looping=failures >= LOOP_AFTER, news=failures == LOOP_AFTER)
