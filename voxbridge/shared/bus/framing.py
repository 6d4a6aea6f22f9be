"""Divider of a NATS server's byte stream: payloads for listeners are handed over on reading, everything else is left to the client.

Parses only as much of the protocol as is needed to find the end of a message; from the first bytes it does not understand on, everything is
left to the client. Messages for listeners may overtake other messages of the same connection, but never one another. Owns a message until
it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Listener = Callable[[bytes], None]

LINE_LIMIT: Final = 64 * 1024
"""Bytes of an incomplete control line that are kept; the server's INFO is the longest."""

_LINE_END: Final = b"\r\n"
_MESSAGE: Final = b"MSG "
_WITH_HEADERS: Final = b"HMSG "


class Divider:
    """Divider of one connection; it begins at the end of a line."""

    def __init__(self, listeners: Mapping[int, Listener], hand_over: Callable[[Listener, bytes], None]) -> None:
        """Set up the divider. `listeners` are keyed by the number of their subscription; `hand_over` gives a listener its payload, and does
        not raise."""
        self._listeners = listeners
        self._hand_over = hand_over
        self._rest = b""
        self._passing = 0
        """Bytes still to come of a message for the client."""

        self._off = False

    @property
    def kept(self) -> bytes:
        """Bytes of an incomplete line or message."""
        return self._rest

    def divide(self, data: bytes) -> bytes:
        """Hand over the messages for listeners; return the bytes for the client."""
        if self._off:
            return data
        if self._rest:
            data, self._rest = self._rest + data, b""
        others: list[bytes] = []
        size = len(data)
        at = min(self._passing, size)
        if at:
            self._passing -= at
            others.append(data[:at])
        while at < size:
            line_end = data.find(_LINE_END, at)
            if line_end < 0:
                if size - at > LINE_LIMIT:
                    return self._give_up(others, data[at:])
                self._rest = data[at:]
                break
            begin = stop = line_end + 2
            if data.startswith(_MESSAGE, at) or data.startswith(_WITH_HEADERS, at):
                words = data[at:line_end].split()
                try:
                    number, length = int(words[2]), int(words[-1])
                except (ValueError, IndexError):
                    return self._give_up(others, data[at:])
                if length < 0:
                    return self._give_up(others, data[at:])
                stop = begin + length + 2
                listener = self._listeners.get(number)
                if listener is not None and len(words[0]) == 3:
                    if stop > size:
                        self._rest = data[at:]
                        break
                    self._hand_over(listener, data[begin : stop - 2])
                    at = stop
                    continue
            end = min(stop, size)
            others.append(data[at:end])
            self._passing = stop - end
            at = end
        return b"".join(others) if others else b""

    def _give_up(self, others: list[bytes], rest: bytes) -> bytes:
        self._off = True
        return b"".join((*others, rest))
