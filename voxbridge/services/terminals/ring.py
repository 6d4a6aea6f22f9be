"""The last bytes that a program wrote, in a file that outlives the process which reads them.

A descriptor is read straight into the file's memory, and the count is advanced after it. Killed between the two, a process has read bytes
that its count does not name; so what lies ahead of the count is kept at 0xFF, which no UTF-8 text holds, and a successor takes what is not.
(A program that ends a read with bytes 0xFF and whose service is killed within those microseconds loses these.) Beside the bytes are two
slots for keyframes, written in turn: the screen at a count that the bytes still reach back to.

A crash of the machine loses the file: it is in memory, as the programs were.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

SIZE: Final = 2 * 1024 * 1024
"""Bytes that are kept."""

READ: Final = 65_536
"""Most bytes of one read."""

KEYFRAME_LIMIT: Final = 1024 * 1024
"""Most bytes of a keyframe."""

_MAGIC: Final = b"VXRING01"
_HEAD: Final = struct.Struct("=8sIIQ")  # magic, run, unused, count
_SLOT: Final = struct.Struct("<QIIHHI")  # count, size, checksum, columns, rows, serial
_SLOT_AT: Final = (64, 64 + _SLOT.size + KEYFRAME_LIMIT)
_DATA_AT: Final = 64 + 2 * (_SLOT.size + KEYFRAME_LIMIT)
_EMPTY: Final = 0xFF


class Keyframe(NamedTuple):
    """A screen as bytes for an emulator of this size, after so many bytes of output."""

    after: int
    columns: int
    rows: int
    data: bytes


class Ring:
    """The ring of a terminal, in a file. One process uses it at a time."""

    def __init__(self, path: Path, run: int) -> None:
        """Open the ring of this start of a program; one of another start is begun anew."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = _DATA_AT + SIZE
        fresh = os.fstat(self._fd).st_size != size
        if fresh:
            os.ftruncate(self._fd, size)
        self._map = mmap.mmap(self._fd, size)
        self._data = memoryview(self._map)[_DATA_AT:]
        self._counts = memoryview(self._map)[16:24].cast("Q")
        magic, known, _, count = _HEAD.unpack_from(self._map)
        self._count: int = count
        self._serial = 0
        if fresh or magic != _MAGIC or known != run:
            self._count = 0
            self._map[: _SLOT_AT[0]] = bytes(_SLOT_AT[0])
            for at in _SLOT_AT:
                _SLOT.pack_into(self._map, at, 0, 0, 0, 0, 0, 0)
            self._clear(0, READ)
            _HEAD.pack_into(self._map, 0, _MAGIC, run, 0, 0)
        else:
            self._recover()

    @property
    def count(self) -> int:
        """Return the number of bytes that were read since the program's start."""
        return self._count

    def read_from(self, descriptor: int) -> bytes:
        """Read what is there, `READ` bytes at most; empty if nothing is, or the other end is closed. Raises `OSError` (EIO) at the end."""
        at = self._count % SIZE
        room = min(READ, SIZE - at)
        try:
            size = os.readv(descriptor, [self._data[at : at + room]])
        except BlockingIOError:
            return b""
        if not size:
            raise OSError("the end")
        found = bytes(self._data[at : at + size])
        self._clear(self._count + READ, size)
        self._advance(self._count + size)
        return found

    def since(self, count: int) -> bytes | None:
        """Return what was written after a count; None if it is not all kept any more."""
        if not self.reaches(count):
            return None
        at, size = count % SIZE, self._count - count
        first = bytes(self._data[at : min(at + size, SIZE)])
        return first + bytes(self._data[: size - len(first)])

    def reaches(self, count: int) -> bool:
        """Tell whether all that was written after a count is still there."""
        return 0 <= self._count - count <= SIZE - 2 * READ

    def keep(self, keyframe: Keyframe) -> bool:
        """Keep a keyframe in place of the one before the last; return false for one that is too large."""
        if len(keyframe.data) > KEYFRAME_LIMIT:
            return False
        self._serial += 1
        at = _SLOT_AT[self._serial % 2]
        _SLOT.pack_into(self._map, at, 0, 0, 0, 0, 0, 0)
        body = at + _SLOT.size
        self._map[body : body + len(keyframe.data)] = keyframe.data
        checksum = zlib.crc32(keyframe.data)
        _SLOT.pack_into(self._map, at, keyframe.after, len(keyframe.data), checksum, keyframe.columns, keyframe.rows, self._serial)
        return True

    def keyframe(self) -> Keyframe | None:
        """Return the last whole keyframe from which the bytes go on."""
        best: tuple[int, Keyframe] | None = None
        for at in _SLOT_AT:
            count, size, checksum, columns, rows, serial = _SLOT.unpack_from(self._map, at)
            data = bytes(self._map[at + _SLOT.size : at + _SLOT.size + min(size, KEYFRAME_LIMIT)])
            if serial and zlib.crc32(data) == checksum and self.reaches(count) and (best is None or serial > best[0]):
                best = serial, Keyframe(count, columns, rows, data)
            self._serial = max(self._serial, serial)
        return best[1] if best is not None else None

    def close(self) -> None:
        """Close the file; it stays."""
        self._data.release()
        self._counts.release()
        self._map.close()
        os.close(self._fd)

    def _recover(self) -> None:
        """Take the bytes that were read and not counted."""
        at = self._count % SIZE
        ahead = bytes(self._data[at : at + min(READ, SIZE - at)]).rstrip(bytes([_EMPTY]))
        self._clear(self._count + READ, len(ahead))
        self._advance(self._count + len(ahead))

    def _advance(self, count: int) -> None:
        self._counts[0] = count  # eight bytes at once: a kill leaves the old count or the new one
        self._count = count

    def _clear(self, count: int, size: int) -> None:
        """Empty the bytes from a count on."""
        at = count % SIZE
        first = min(size, SIZE - at)
        self._data[at : at + first] = bytes([_EMPTY]) * first
        self._data[: size - first] = bytes([_EMPTY]) * (size - first)
