"""WebSocket frames (RFC 6455), the short way for what is sent all the time: whole text and binary messages below 64 KiB.

The libraries that own the sockets read and write a frame through generators and objects, for about 12 µs each way; audio is nothing
but such frames. A `Cutter` finds frames in what arrives, reads the simple ones, and leaves every other one (control frames,
fragments, extensions, anything wrong) to the library, which alone decides what is an error. A crash loses nothing.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import Final

from websockets.frames import apply_mask  # type: ignore[attr-defined]  # in C where there is one

OTHER: Final = 0
TEXT: Final = 1
BINARY: Final = 2

_FINAL: Final = 0x80
_SIMPLE: Final = frozenset((_FINAL | TEXT, _FINAL | BINARY))
_SHORT: Final = 125
_LONG: Final = 0xFFFF
_HEAD16: Final = Struct("!BBH")
_MASKS: Final = 1_024


class Cutter:
    """Cuts one direction of a socket into frames; it must see all of it from the end of the handshake on."""

    def __init__(self, *, masked: bool, limit: int) -> None:
        """`masked` as the peer has to do it: a client always, a server never. `limit`: payload bytes of a frame that are waited for."""
        self._masked = masked
        self._limit = limit
        self._rest = b""
        self._fragments = False
        self._off = False

    def cut(self, data: bytes, *, simple: bool = True) -> list[tuple[int, bytes]]:
        """What is whole now: `TEXT` or `BINARY` with the payload, or `OTHER` with the bytes of a frame for the library, which with
        `simple=False` is every frame. After a frame that cannot be right everything is for the library."""
        if self._off:
            return [(OTHER, data)]
        if self._rest:
            data, self._rest = self._rest + data, b""
        found: list[tuple[int, bytes]] = []
        at, size = 0, len(data)
        while size - at >= 2:
            first, second = data[at], data[at + 1]
            head, length = at + 2, second & 0x7F
            if length > _SHORT:
                begin, head = head, head + (2 if length == _SHORT + 1 else 8)
                if head > size:
                    break
                length = int.from_bytes(data[begin:head])
            if length > self._limit or (second >= _FINAL) is not self._masked:
                self._off = True
                found.append((OTHER, data[at:]))
                return found
            start = head + 4 if self._masked else head
            end = start + length
            if end > size:
                break
            if simple and first in _SIMPLE and not self._fragments:
                found.append((first & 0x0F, apply_mask(data[start:end], data[head:start]) if self._masked else data[start:end]))
            else:
                self._note(first)
                found.append((OTHER, data[at:end]))
            at = end
        if at < size:
            self._rest = data[at:]
        return found

    def _note(self, first: int) -> None:
        opcode = first & 0x0F
        if opcode <= BINARY:
            self._fragments = first < _FINAL


class Masks:
    """Masking keys of a client. They have to be unpredictable; asking the kernel for many at once costs as much as for one."""

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def take(self) -> bytes:
        """Four bytes."""
        if self._at >= len(self._pool):
            self._pool, self._at = os.urandom(4 * _MASKS), 0
        self._at += 4
        return self._pool[self._at - 4 : self._at]


def server_frame(opcode: int, payload: bytes) -> bytes | None:
    """A whole message as a server writes it; nothing for 64 KiB and more."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_FINAL | opcode, size)) + payload
    return _HEAD16.pack(_FINAL | opcode, 126, size) + payload if size <= _LONG else None


def client_frame(opcode: int, payload: bytes, mask: bytes) -> bytes | None:
    """A whole message as a client writes it; nothing for 64 KiB and more."""
    size = len(payload)
    if size > _LONG:
        return None
    head = _HEAD16.pack(_FINAL | opcode, 0xFE, size) if size > _SHORT else bytes((_FINAL | opcode, _FINAL | size))
    return b"".join((head, mask, apply_mask(payload, mask)))
