"""Errors of the services on the console, each printed only once in a while: a fault that recurs ten times a second must not hide the rest.

Owns which lines count as the same. The log files keep every line. A crash here loses a count.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

QUIET_S: Final = 10.0
LINES_LIMIT: Final = 64
"""Different lines remembered; the oldest is forgotten, and printed again when it recurs."""

CHARACTERS: Final = 300


class Repeats:
    """Times at which lines were printed."""

    def __init__(self) -> None:
        self._said: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def worth_saying(self, line: str, now_s: float) -> str | None:
        """Return the line to print, or None if the same line was printed within `QUIET_S`."""
        text = line[:CHARACTERS]
        # The time and the process id differ from line to line and from process to process.
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
