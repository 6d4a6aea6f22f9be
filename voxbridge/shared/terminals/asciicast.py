"""One asciicast of several: pieces of a recording, each with a header of its own, become one file that `asciinema play` plays. Pure.

A piece begins with the whole screen, so that what is missing between two pieces is missing for a moment only.
"""

from __future__ import annotations

import msgspec

_Event = tuple[float, str, str]


class _Screen(msgspec.Struct, frozen=True):
    cols: int
    rows: int


class _Header(msgspec.Struct, frozen=True):
    term: _Screen


_header = msgspec.json.Decoder(_Header)
_event = msgspec.json.Decoder(_Event)


class Joined:
    """A recording that is put together as its pieces are read, in parts of any length."""

    def __init__(self) -> None:
        self._rest = b""
        self._at_ms = self._begun_ms = 0
        self._size: _Screen | None = None
        self._begins = False

    def begin(self, begun_ms: int) -> None:
        """Begin a piece, which was begun at a time (ms since 1970). A line that the piece before broke off in is left out."""
        self._rest, self._begun_ms, self._begins = b"", begun_ms, True

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the piece, and return the lines that they end. Raises `msgspec.MsgspecError` for what is no asciicast."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return b"".join(made + b"\n" for line in lines if (made := self._line(line)))

    def _line(self, line: bytes) -> bytes:
        if self._begins:
            self._begins = False
            return self._head(line)
        interval, kind, text = _event.decode(line)
        waited = self._gap_ms()
        self._at_ms += round(interval * 1_000)
        if kind == "r":
            columns, _, rows = text.partition("x")
            self._size = _Screen(int(columns), int(rows))
        return msgspec.json.encode((round(waited / 1_000 + interval, 3), kind, text)) if waited else line

    def _head(self, line: bytes) -> bytes:
        size, before = _header.decode(line).term, self._size
        self._size = size
        if before is None:
            self._at_ms, self._begun_ms = self._begun_ms, 0
            return line
        return msgspec.json.encode((self._gap_ms() / 1_000, "r", f"{size.cols}x{size.rows}")) if size != before else b""

    def _gap_ms(self) -> int:
        """Return the time between the last event and the beginning of the piece, the first time that it is asked for."""
        begun_ms, self._begun_ms = self._begun_ms, 0
        gap = max(0, begun_ms - self._at_ms) if begun_ms else 0
        self._at_ms += gap
        return gap
