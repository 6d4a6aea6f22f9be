"""WebSocket frames (RFC 6455), read and written by hand: a library's generators and objects cost about 12 µs each way, and audio consists
of nothing but frames.

A `Receiver` is the whole of a server's side: it checks each frame by its header, before its payload has arrived, and returns whole messages
and control frames. A `Cutter` is a client's side beside a library: it reads the simple frames and leaves every other one to the library,
which alone decides what is an error. Both keep an incomplete frame in one buffer that only grows, so that a peer that sends byte by byte
costs no more than its bytes. A crash loses nothing.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import Final, NamedTuple

from websockets.frames import apply_mask  # type: ignore[attr-defined]  # in C where available

OTHER: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

PROTOCOL_ERROR: Final = 1002
NOT_UTF8: Final = 1007
TOO_MANY: Final = 1008
TOO_BIG: Final = 1009

FRAGMENTS_LIMIT: Final = 1_024
"""Frames of one message."""

_CONTINUATION: Final = 0
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_RESERVED: Final = 0x70
_SIMPLE: Final = frozenset((_FINAL | TEXT, _FINAL | BINARY))
_DATA: Final = (TEXT, BINARY)
_CONTROL: Final = (CLOSE, PING, PONG)
_SHORT: Final = 125
_MIDDLE: Final = 126
_LONG: Final = 0xFFFF
_HEAD16: Final = Struct("!BBH")
_HEAD64: Final = Struct("!BBQ")
_MASKS: Final = 1_024


class Fault(NamedTuple):
    """Reason to fail a connection: the close code and a sentence."""

    code: int
    reason: str


class Receiver:
    """Parser of what one client sends from the end of its handshake on. `limit` is the payload bytes of a message, over all its frames; it
    may be changed between two calls."""

    def __init__(self, *, limit: int) -> None:
        self.limit = limit
        self.fault: Fault | None = None
        """Protocol error; once it is set, no further data is read."""
        self._rest = bytearray()
        self._need = 0
        self._opcode = _CONTINUATION
        self._fragments: list[bytes] = []
        self._size = 0

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame or of their message."""
        return len(self._rest) + self._size

    def receive(self, data: bytes) -> list[tuple[int, bytes]]:  # noqa: C901, PLR0912 - one case for each rule of RFC 6455
        """Take received bytes. Return whole messages as `TEXT`, which is UTF-8, or `BINARY`, and control frames, in order. Sets `fault` if
        the bytes after them break the protocol."""
        if self.fault is not None:
            return []
        rest = self._rest
        if rest:
            rest += data
            if len(rest) < self._need:
                return []
            data, self._rest = bytes(rest), bytearray()
        found: list[tuple[int, bytes]] = []
        at, size, need = 0, len(data), 0
        while size - at >= 2:
            first, length = data[at], data[at + 1] - _MASKED
            plain = first in _SIMPLE and not self._opcode
            if not plain or length < 0:
                self.fault = self._wrong(first) or _wrong_length(first, length)
                if self.fault is not None:
                    return self._failed(found)
            start = at + 6
            if length > _SHORT:
                start = at + (8 if length == _MIDDLE else 14)
                if start - 4 > size:
                    break
                shortest = _SHORT if length == _MIDDLE else _LONG
                length = int.from_bytes(data[at + 2 : start - 4])
                if length <= shortest or length >> 63:
                    self.fault = Fault(PROTOCOL_ERROR, "a length is written in the fewest bytes")
                elif length > self.limit - self._size:
                    self.fault = self._too_big()
                if self.fault is not None:
                    return self._failed(found)
            end = start + length
            if end > size:
                need = end - at
                break
            payload = apply_mask(data[start:end], data[start - 4 : start])
            if first == _FINAL | BINARY and plain:
                found.append((BINARY, payload))
            else:
                fault = self._give(TEXT, payload, found) if plain else self._take(first, payload, found)
                if fault is not None:
                    self.fault = fault
                    return self._failed(found)
            at = end
        if at < size:
            if size - at == 1:
                self.fault = self._wrong(data[at])
                if self.fault is not None:
                    return self._failed(found)
            self._rest += data[at:] if at else data
            self._need = need
        return found

    def _failed(self, found: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        self._rest, self._fragments, self._size = bytearray(), [], 0
        return found

    def _wrong(self, first: int) -> Fault | None:
        """Return the fault that the first byte of a frame shows, or None."""
        opcode = first & 0x0F
        if first & _RESERVED:
            return Fault(PROTOCOL_ERROR, "a reserved bit is set")
        if opcode in _CONTROL:
            return None if first & _FINAL else Fault(PROTOCOL_ERROR, "a control frame is in fragments")
        if opcode in _DATA:
            return Fault(PROTOCOL_ERROR, "a message began within another") if self._opcode else None
        if opcode != _CONTINUATION:
            return Fault(PROTOCOL_ERROR, f"there is no opcode {opcode}")
        if not self._opcode:
            return Fault(PROTOCOL_ERROR, "a continuation of nothing")
        if len(self._fragments) >= FRAGMENTS_LIMIT:
            return Fault(TOO_MANY, f"a message has at most {FRAGMENTS_LIMIT} frames")
        return None

    def _take(self, first: int, payload: bytes, found: list[tuple[int, bytes]]) -> Fault | None:
        """Take a control frame or a part of a message."""
        opcode = first & 0x0F
        if opcode in _CONTROL:
            found.append((opcode, payload))
            return None
        self._size += len(payload)
        if self._size > self.limit:
            return self._too_big()
        self._fragments.append(payload)
        self._opcode = self._opcode or opcode
        if first & _FINAL:
            whole, opcode = b"".join(self._fragments), self._opcode
            self._fragments, self._size, self._opcode = [], 0, _CONTINUATION
            return self._give(opcode, whole, found)
        return None

    def _give(self, opcode: int, message: bytes, found: list[tuple[int, bytes]]) -> Fault | None:
        if opcode == TEXT and not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError:
                return Fault(NOT_UTF8, "text is UTF-8")
        found.append((opcode, message))
        return None

    def _too_big(self) -> Fault:
        return Fault(TOO_BIG, f"a message has at most {self.limit} bytes here")


def _wrong_length(first: int, length: int) -> Fault | None:
    """Return the fault of a length, or None. `length` is the seven-bit field, negative for an unmasked frame."""
    if length < 0:
        return Fault(PROTOCOL_ERROR, "a client masks its frames")
    if length > _SHORT and first & 0x0F in _CONTROL:
        return Fault(PROTOCOL_ERROR, f"a control frame has at most {_SHORT} bytes")
    return None


class Cutter:
    """Parser that cuts what a server sends into frames; it must see all of it from the end of the handshake on. `limit` is the payload
    bytes of a frame that is waited for."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._need = 0
        self._fragments = False
        self._off = False

    def cut(self, data: bytes, *, simple: bool = True) -> list[tuple[int, bytes]]:
        """Return the frames that are complete now: `TEXT` or `BINARY` with the payload, or `OTHER` with the bytes of a frame for the
        library. With `simple=False` every frame is `OTHER`. After a frame that is invalid or too large all bytes are `OTHER`."""
        if self._off:
            return [(OTHER, data)]
        rest = self._rest
        if rest:
            rest += data
            if len(rest) < self._need:
                return []
            data, self._rest = bytes(rest), bytearray()
        found: list[tuple[int, bytes]] = []
        at, size, need = 0, len(data), 0
        while size - at >= 2:
            first, length = data[at], data[at + 1]
            start = at + 2
            if _SHORT < length < _MASKED:
                start += 2 if length == _MIDDLE else 8
                if start > size:
                    break
                length = int.from_bytes(data[at + 2 : start])
            elif length >= _MASKED:
                length = self._limit + 1
            if length > self._limit:
                self._off = True
                found.append((OTHER, data[at:]))
                return found
            end = start + length
            if end > size:
                need = end - at
                break
            if simple and first in _SIMPLE and not self._fragments:
                found.append((first & 0x0F, data[start:end]))
            else:
                if first & 0x0F <= BINARY:
                    self._fragments = first < _FINAL
                found.append((OTHER, data[at:end]))
            at = end
        if at < size:
            self._rest += data[at:] if at else data
            self._need = need
        return found


class Masks:
    """Masking keys of a client. They have to be unpredictable; reading many at once from the kernel costs as much as reading one."""

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def take(self) -> bytes:
        """Return a key of four bytes."""
        if self._at >= len(self._pool):
            self._pool, self._at = os.urandom(4 * _MASKS), 0
        self._at += 4
        return self._pool[self._at - 4 : self._at]


def server_frame(opcode: int, payload: bytes) -> bytes:
    """Return a whole message, or a control frame, as a server encodes it."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_FINAL | opcode, size)) + payload
    head = _HEAD16.pack(_FINAL | opcode, _MIDDLE, size) if size <= _LONG else _HEAD64.pack(_FINAL | opcode, _MIDDLE + 1, size)
    return head + payload


def client_frame(opcode: int, payload: bytes, mask: bytes) -> bytes | None:
    """Return a whole message as a client encodes it; None for 64 KiB and more."""
    size = len(payload)
    if size > _LONG:
        return None
    head = _HEAD16.pack(_FINAL | opcode, 0xFE, size) if size > _SHORT else bytes((_FINAL | opcode, _FINAL | size))
    return b"".join((head, mask, apply_mask(payload, mask)))
