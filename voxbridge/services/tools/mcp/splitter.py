"""Cutting a stream of bytes into lines, each of bounded length. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CHUNK: Final = 64 * 1024
"""Bytes that are read at a time."""

EDGE: Final = 1_024
"""Bytes of both ends that are kept of a line that was cut."""


@dataclass(frozen=True, slots=True)
class CutLine:
    """A line that was too long: its length, and its ends."""

    size: int
    begin: bytes
    end: bytes


class Splitter:
    """Lines of at most `limit` bytes; of a longer one only the ends are kept, while it comes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._begin = b""
        self._end = b""

    @property
    def waiting(self) -> int:
        """Length so far of the line that has not ended."""
        return self._size

    def feed(self, piece: bytes) -> list[bytes | CutLine]:
        """Take the next bytes, and return the lines that ended with them; empty ones are left out."""
        *ended, rest = piece.split(b"\n")
        lines: list[bytes | CutLine] = []
        for part in ended:
            self._add(part)
            if self._size:
                lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        if self._parts:
            whole = b"".join(self._parts)
            self._begin, self._end = whole[:EDGE], whole[-EDGE:]
            self._parts.clear()
        self._begin = self._begin or part[:EDGE]
        self._end = (self._end + part[-EDGE:])[-EDGE:]

    def _take(self) -> bytes | CutLine:
        line = b"".join(self._parts) if self._size <= self._limit else CutLine(self._size, self._begin, self._end)
        self._parts.clear()
        self._size, self._begin, self._end = 0, b"", b""
        return line
