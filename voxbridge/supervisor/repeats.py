"""Errors of the services on the console, each said once in a while: a fault that recurs ten times a second must not hide the rest.

Owns what counts as the same line. The log files keep every line. What a crash loses here is a count.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

QUIET_S: Final = 10.0
LINES_LIMIT: Final = 64
"""Different lines remembered; the oldest is forgotten, and said again when it comes again."""

CHARACTERS: Final = 300


class Repeats:
    """What was said when."""

    def __init__(self) -> None:
        self._said: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def worth_saying(self, line: str, now_s: float) -> str | None:
        """The line as it is to be said, or nothing while it was said a moment ago."""
        text = line[:CHARACTERS]
        # The time and the process id differ from line to line and from life to life.
        key = text.split(" ", 3)[-1] if text[:1].isdigit() else text
        at, held_back = self._said.get(key, (now_s - QUIET_S, 0))
        if now_s - at < QUIET_S:
            self._said[key] = (at, held_back + 1)
            return None
        self._said[key] = (now_s, 0)
        self._said.move_to_end(key)
        if len(self._said) > LINES_LIMIT:
            self._said.popitem(last=False)
        return f"{text} (and {held_back} times more since it was last said)" if held_back else text
