"""Beginnings and ends of commands in a program's output, by prompt marks (OSC 133) that may come split anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from voxbridge.services.terminals.core.marks import PROMPT_MARK, Prompt, of_prompt

_START: Final = b"\x1b]133;"
_LONGEST: Final = 256
"""Bytes of a mark at most."""


class Last(NamedTuple):
    """The last command: the offsets of its output, and its exit code."""

    begun: int | None = None
    ended: int | None = None
    code: int | None = None


_NONE: Final = Last()


class Commands:
    """The commands of a shell, of which the last is known."""

    def __init__(self, last: Last = _NONE) -> None:
        self.last = last
        self._tail = b""

    @property
    def begun(self) -> int | None:
        """Return the offset at which the output of the last command begins."""
        return self.last.begun

    def feed(self, data: bytes, offset: int) -> list[Prompt]:
        """Take output that begins at an offset; return its marks."""
        held = self._tail + data
        base = offset - len(self._tail)
        found = []
        last = 0
        if _START in held:
            for start, end, prompt in _marks(held):
                last = end
                found.append(prompt)
                if prompt.mark == "C":
                    self.last = Last(base + end)
                elif prompt.mark == "D" and self.last.begun is not None and self.last.ended is None:
                    self.last = Last(self.last.begun, base + start, prompt.code)
        self._tail = _unfinished(held[last:])
        return found


def _marks(held: bytes) -> Iterator[tuple[int, int, Prompt]]:
    for match in PROMPT_MARK.finditer(held):
        yield match.start(), match.end(), of_prompt(match.group(1), match.group(2))


def _unfinished(rest: bytes) -> bytes:
    """Return the end of some output that may be the beginning of a mark."""
    at = rest.rfind(b"\x1b")
    if at < 0 or len(rest) - at > _LONGEST:
        return b""
    tail = rest[at:]
    if tail == b"\x1b" and (before := rest.rfind(_START, 0, at)) >= 0 and at - before <= _LONGEST and b"\x07" not in rest[before:at]:
        return rest[before:]  # the mark's end is cut in two
    return tail if _START.startswith(tail) or tail.startswith(_START) else b""
