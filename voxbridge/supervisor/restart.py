"""When a process that died is started again. Pure: it is told how long the process ran and answers how long to wait.

Owns the numbers of the back-off. Does not own processes or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST_WAIT_S: Final = 0.1
LAST_WAIT_S: Final = 5.0
SERVED_WAIT_S: Final = 0.4
"""The longest wait for a process that was ready before it ended: it can start, and people wait for it."""
STEADY_S: Final = 10.0
"""A process that ran this long is taken to be sound again; what it did before is forgotten."""
LOOP_AFTER: Final = 5
"""Short lives in a row after which a crash loop is said plainly."""


@dataclass(frozen=True, slots=True)
class History:
    """Short lives in a row."""

    failures: int = 0


class Restart(NamedTuple):
    """What follows an exit: wait this long, and say that it is a loop when it has just become one."""

    history: History
    wait_s: float
    looping: bool
    news: bool


def after_exit(history: History, ran_s: float, *, served: bool = False) -> Restart:
    """The answer to an exit after `ran_s` seconds of life, in which the process was ready at some time if it `served`."""
    failures = 1 if ran_s >= STEADY_S else history.failures + 1
    wait_s = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 16), SERVED_WAIT_S if served else LAST_WAIT_S)
    return Restart(History(failures), wait_s, looping=failures >= LOOP_AFTER, news=failures == LOOP_AFTER)
