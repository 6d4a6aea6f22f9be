"""The way into a program: what was typed, and the emulator's answers to the program's queries, in order.

Owns the bytes that the program has not taken yet, and the bound on them. A program that asks and does not read leaves answers behind; once
its command has ended they would be typed into the shell, so they are dropped then, with what the kernel holds for the program.

The bytes that wait are in memory only. A service that is killed loses them, and its successor begins with none.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import termios
from collections import deque
from contextlib import suppress
from typing import Final, NamedTuple

QUEUE_LIMIT: Final = 262_144
"""Bytes that the program has not taken; what is more is refused."""

_TIOCGPTPEER: Final = 0x5441
"""Request of Linux for a descriptor of the program's end, which Python does not name."""

_ESCAPE: Final = b"\x1b"


class _Piece(NamedTuple):
    data: bytes
    answer: bool
    begun: bool = False


class Inlet:
    """The way into the program of one terminal. It is closed until it has a descriptor."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._master: int | None = None
        self._pieces: deque[_Piece] = deque()
        self._size = 0

    def open(self, master: int) -> None:
        """Write to this descriptor, which does not block, from now on."""
        self._master = master

    def close(self) -> None:
        """Write no more, and forget what was not written."""
        if self._master is not None:
            self._loop.remove_writer(self._master)
            self._master = None
        self._pieces.clear()
        self._size = 0

    def write(self, data: bytes, *, answer: bool = False) -> bool:
        """Write to the program once it reads; return false if there is no room."""
        if self._master is None or self._size + len(data) > QUEUE_LIMIT:
            return False
        if data:
            self._pieces.append(_Piece(data, answer))
            self._size += len(data)
            self._writable()
        return True

    def drop_answers(self) -> None:
        """Forget the answers that were not written. One that was written in part is written to its end, unless the kernel drops it too."""
        typed = self._pieces and self._pieces[0].begun and not self._pieces[0].answer  # the kernel has its beginning
        if not typed and any(piece.answer for piece in self._pieces) and self._dropped_by_kernel():
            self._pieces = deque(piece for piece in self._pieces if not (piece.answer and piece.begun))
        left = [self._rest(piece) if piece.answer else piece for piece in self._pieces]
        self._pieces = deque(piece for piece in left if piece.data)
        self._size = sum(len(piece.data) for piece in self._pieces)

    def _dropped_by_kernel(self) -> bool:
        """Have the kernel forget what the program has not read: as answers wait here, its queue is full of them. Return whether it did."""
        if self._master is None:
            return False
        try:
            program = fcntl.ioctl(self._master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            termios.tcflush(program, termios.TCIFLUSH)
        except termios.error:
            return False
        finally:
            os.close(program)
        return True

    @staticmethod
    def _rest(piece: _Piece) -> _Piece:
        if not piece.begun:
            return piece._replace(data=b"")
        end = piece.data.find(_ESCAPE, 1)  # the last byte written may be the escape itself, but two never follow each other
        return piece if end < 0 else piece._replace(data=piece.data[:end])

    def _writable(self) -> None:
        if self._master is None:
            return
        try:
            while self._pieces:
                piece = self._pieces[0]
                written = os.write(self._master, piece.data)
                self._size -= written
                if written == len(piece.data):
                    self._pieces.popleft()
                else:
                    self._pieces[0] = piece._replace(data=piece.data[written:], begun=True)
        except BlockingIOError:
            self._loop.add_writer(self._master, self._writable)
            return
        except OSError:
            self._pieces.clear()
            self._size = 0
        with suppress(OSError, ValueError):
            self._loop.remove_writer(self._master)
