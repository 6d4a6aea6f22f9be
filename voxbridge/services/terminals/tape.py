"""Past screens of terminals: their output with its times, from which the screen at any moment is drawn again.

Owns the files, below `screens` in the folder of the terminals: for each life pieces of about `PIECE_BYTES`, named by the time they begin
(ms), each an asciicast v3 that starts with the whole screen, so that one piece is enough for a moment. Of more than `RATE` in a second the
screen of each second is kept in place of the output. Owns also how long and how much is kept. Like the ring beside them the files are this
user's alone and not encrypted; what people type is in none of them. Killed, the last `FLUSH_S` of output are missing, and the next process
begins with the screen as it is then. A full disk ends a piece; another one is tried `AGAIN_S` later, and programs notice nothing.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from voxbridge.services.terminals.folder import SCREENS
from voxbridge.services.terminals.screen import Screen
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.questions import Shown, Taped

PIECE_BYTES: Final = 1_048_576
PART_BYTES: Final = 524_288
"""Bytes of a piece that are read at once."""

RATE: Final = 131_072
"""Bytes of output in a second that are kept as they come."""

FLUSH_S: Final = 0.25
AGAIN_S: Final = 60.0
SWEEP_S: Final = 60.0
"""Seconds between two looks at what is too old or too much."""

_SECOND_US: Final = 1_000_000
_CHARACTER: Final = 4
"""Bytes of a character at most."""

_SUFFIX: Final = ".cast"
_log = logging.getLogger(__name__)
_Event = tuple[float, str, str]


class Limits(NamedTuple):
    """Hours and bytes that are kept on this host, the oldest pieces going first; 0 hours: nothing is kept."""

    hours: int
    size: int


class Tape:
    """Recorder of one terminal, from now on. `screen` returns its emulator."""

    def __init__(self, folder: Path, clock: Clock, screen: Callable[[], Screen]) -> None:
        self._folder, self._clock, self._screen = folder, clock, screen
        self._loop = asyncio.get_running_loop()
        self._file: IO[bytes] | None = None
        self._pending = bytearray()
        self._size = self._at_ms = self._begun_ms = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._second_us = self._written = 0
        self._flushing: asyncio.TimerHandle | None = None
        self._flooded: asyncio.TimerHandle | None = None
        self._again_us = 0

    def begin(self) -> None:
        """Begin a piece with the screen as it is."""
        self._end()
        self._begun_ms = self._at_ms = max(self._clock.now_us() // 1_000, self._begun_ms + 1)  # each piece has a name of its own
        self._size = 0
        columns, rows = self._screen().size
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self._folder / f"{self._at_ms:015d}{_SUFFIX}").open("xb", buffering=0)
        except OSError as error:
            self._failed(error)
            return
        terminal = {"cols": columns, "rows": rows, "type": "xterm-256color"}
        self._line({"version": 3, "term": terminal, "timestamp": self._at_ms // 1_000})
        self._show()

    def wrote(self, data: bytes) -> None:
        """Take output that the screen has taken."""
        now = self._clock.now_us()
        if self._file is None:
            if now >= self._again_us:
                self.begin()  # the screen has this output already
            return
        if self._flooded is not None:
            self._skip(data)
            return
        if now - self._second_us >= _SECOND_US:
            self._second_us, self._written = now, 0
        self._written += len(data)
        if self._written > RATE:
            self._skip(data)
            self._flooded = self._loop.call_later(_SECOND_US / 1e6, self._after_a_second)
            return
        if text := self._decoder.decode(data):
            self._event("o", text)
        if self._size > PIECE_BYTES:
            self.begin()

    def resized(self, columns: int, rows: int) -> None:
        """Take another size of the screen."""
        self._event("r", f"{columns}x{rows}")
        self._show()

    def flush(self) -> None:
        """Write what waits."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._file is None or not self._pending:
            return
        try:
            if self._file.write(self._pending) < len(self._pending):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - as if nothing had been written
        except OSError as error:
            self._failed(error)
        self._pending.clear()

    def close(self) -> None:
        """Write what waits, and end the piece with the program's output."""
        self._end()
        self._decoder.reset()

    def _end(self) -> None:
        if self._flooded is not None:
            self._flooded.cancel()
            self._flooded = None
            self._show()
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _after_a_second(self) -> None:
        self._flooded = None
        self._second_us = 0
        self._show()
        if self._size > PIECE_BYTES:
            self.begin()

    def _skip(self, data: bytes) -> None:
        """Leave output out: the screen that comes next shows it, but for a character that it ends within."""
        self._decoder.reset()
        self._decoder.decode(data[-_CHARACTER:])

    def _show(self) -> None:
        screen = self._screen()
        frame = screen.keyframe(scrollback="alternate_screen" in screen.modes)  # what is behind such a screen is shown again after it
        self._event("o", frame.decode(errors="ignore"))

    def _event(self, kind: str, text: str) -> None:
        if self._file is None:
            return
        at_ms = max(self._at_ms, self._clock.now_us() // 1_000)
        interval, self._at_ms = (at_ms - self._at_ms) / 1_000, at_ms
        self._line((interval, kind, text))

    def _line(self, content: Any) -> None:
        line = msgspec.json.encode(content)
        self._pending += line
        self._pending += b"\n"
        self._size += len(line) + 1
        if self._flushing is None:
            self._flushing = self._loop.call_later(FLUSH_S, self.flush)

    def _failed(self, error: OSError) -> None:
        _log.warning("what terminals show is not kept for %g s: %s", AGAIN_S, error)
        self._again_us = self._clock.now_us() + int(AGAIN_S * 1e6)
        if self._file is not None:
            self._file.close()
            self._file = None


class Tapes:
    """Recorders and past screens of this host's terminals, by the names of their lives."""

    def __init__(self, folder: Path, clock: Clock, limits: Limits) -> None:
        self._folder, self._clock, self._limits = folder / SCREENS, clock, limits
        self._live: dict[str, Tape] = {}

    def open(self, life: str, screen: Callable[[], Screen]) -> Tape | None:
        """Begin to keep what a terminal shows; None where nothing is kept."""
        if not self._limits.hours:
            return None
        tape = self._live[life] = Tape(self._folder / life, self._clock, screen)
        tape.begin()
        return tape

    def close(self, life: str) -> None:
        """Let go of a terminal; what it showed stays."""
        if (tape := self._live.pop(life, None)) is not None:
            tape.close()

    async def shown(self, life: str, at_ms: int) -> Shown:
        """Return the screen of a terminal at a time, ms since 1970. Raises `NOT_FOUND` where nothing of it is kept."""
        if (tape := self._live.get(life)) is not None:
            tape.flush()
        return await asyncio.to_thread(self._shown, life, at_ms)

    def _shown(self, life: str, at_ms: int) -> Shown:
        pieces = [*_pieces(self._folder / life)]
        piece = max((one for one in pieces if one.begun_ms <= at_ms), default=None)
        if piece is None:
            raise VoxbridgeError(Code.NOT_FOUND, self._nothing(bool(pieces)), field="at_ms" if pieces else "life")
        try:
            return _drawn(life, piece, at_ms)
        except (OSError, msgspec.MsgspecError, LookupError) as error:
            raise VoxbridgeError(Code.NOT_FOUND, f"What is kept of that time cannot be read: {error}.", field="at_ms") from error

    async def read(self, life: str, from_ms: int, offset: int) -> Taped:
        """Return a part of the first piece that was begun at a time or later, from an offset on. Raises `NOT_FOUND` where there is none."""
        if (tape := self._live.get(life)) is not None:
            tape.flush()
        return await asyncio.to_thread(self._part, life, from_ms, offset)

    def _part(self, life: str, from_ms: int, offset: int) -> Taped:
        found = sorted(piece for piece in _pieces(self._folder / life) if piece.begun_ms >= from_ms)
        if not found:
            raise VoxbridgeError(Code.NOT_FOUND, self._nothing(later=False), field="life")
        piece = found[0]
        offset = offset if piece.begun_ms == from_ms else 0
        try:
            with piece.path.open("rb") as file:
                file.seek(offset)
                data = file.read(PART_BYTES)
        except OSError as error:
            raise VoxbridgeError(Code.NOT_FOUND, f"What is kept of that time cannot be read: {error}.", field="from_ms") from error
        if len(data) == PART_BYTES:
            return Taped(begun_ms=piece.begun_ms, data=data, more=True, next_ms=piece.begun_ms, next_offset=offset + len(data))
        return Taped(begun_ms=piece.begun_ms, data=data, more=len(found) > 1, next_ms=found[1].begun_ms if len(found) > 1 else 0)

    def _nothing(self, later: bool) -> str:
        if not self._limits.hours:
            return "What terminals show is not kept: VOXBRIDGE_TERMINAL_SCREENS_HOURS is 0."
        what = "Nothing is kept of that time, only of later ones." if later else "Nothing of it is kept."
        size = self._limits.size // 1_000_000
        return f"{what} What terminals show is kept for {self._limits.hours} h, and {size} MB of all at most."

    def forget(self, life: str) -> None:
        """Remove everything that a closed terminal showed."""
        shutil.rmtree(self._folder / life, ignore_errors=True)

    async def keep(self) -> None:
        """Remove what is too old or too much, now and then. Runs until it is cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.sweep)
            except OSError as error:
                _log.warning("past screens of terminals are not looked through: %s", error)
            await asyncio.sleep(SWEEP_S)

    def sweep(self) -> None:
        """Remove what is too old, and the oldest of what is too much. The newest piece of a terminal that lives stays."""
        since_ms = self._clock.now_us() // 1_000 - self._limits.hours * 3_600_000
        kept: list[_Piece] = []
        for folder in [*self._folder.iterdir()] if self._folder.is_dir() else []:
            pieces = sorted(_pieces(folder))
            # A piece is over when the next one begins; the last one of a terminal that lives is not.
            over = [(piece, after.begun_ms) for piece, after in pairwise(pieces)]
            if pieces and folder.name not in self._live:
                over.append((pieces[-1], int(pieces[-1].path.stat().st_mtime * 1_000)))
            for piece, ended_ms in over:
                if ended_ms < since_ms:
                    piece.path.unlink(missing_ok=True)
                else:
                    kept.append(piece)
            if folder.name not in self._live and not any(_pieces(folder)):
                shutil.rmtree(folder, ignore_errors=True)
        kept.sort(reverse=True)
        size = 0
        for piece in kept:
            size += piece.path.stat().st_size
            if size > self._limits.size:
                piece.path.unlink(missing_ok=True)


class _Piece(NamedTuple):
    begun_ms: int
    path: Path


def _pieces(folder: Path) -> Iterator[_Piece]:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.suffix == _SUFFIX and path.stem.isdecimal():
                yield _Piece(int(path.stem), path)


def _drawn(life: str, piece: _Piece, at_ms: int) -> Shown:
    """Draw the screen at a time from the piece that has it. A last line that was not written to its end is left out."""
    lines = piece.path.read_bytes().split(b"\n")[:-1]
    terminal = msgspec.json.decode(lines[0])["term"]
    screen = Screen(terminal["cols"], terminal["rows"], lambda _: None)
    try:
        when = piece.begun_ms
        for line in lines[1:]:
            interval, kind, text = msgspec.json.decode(line, type=_Event)
            if when + round(interval * 1_000) > at_ms:
                break
            when += round(interval * 1_000)
            if kind == "o":
                screen.feed(text.encode())
            elif kind == "r":
                columns, _, rows = text.partition("x")
                screen.resize(int(columns), int(rows))
        columns, rows = screen.size
        return Shown(life=life, at_ms=when, columns=columns, rows=rows, title=screen.title, text="\n".join(screen.rows()))
    finally:
        screen.close()
