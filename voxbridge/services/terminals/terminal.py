"""One terminal: what its program writes is read, kept, drawn and published, and what is typed is written.

Owns its ring, its screen, what is known of its state, and the ways in and out (`inlet`, `outlet`). Does not own the process (`holder`) nor
the list of all (`fleet`). Killed with the service, it is made again from the ring: the last keyframe and the bytes after it. A program that
does not read what is typed fills the queue of `inlet`; what does not fit is refused, and the terminal is shown as stale.
"""

from __future__ import annotations

import asyncio
import errno
import os
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.services.terminals.commands import Commands, Last
from voxbridge.services.terminals.core import state as states
from voxbridge.services.terminals.core.marks import Prompt, Query, Report, of_sequence
from voxbridge.services.terminals.core.screen_questions import dialog, look
from voxbridge.services.terminals.core.text import words
from voxbridge.services.terminals.inlet import Inlet
from voxbridge.services.terminals.outlet import Outlet
from voxbridge.services.terminals.ring import Keyframe, Ring
from voxbridge.services.terminals.screen import Screen
from voxbridge.services.terminals.tape import Tape
from voxbridge.shared.clock import Clock
from voxbridge.shared.terminals import peers
from voxbridge.shared.terminals.live import Output
from voxbridge.shared.terminals.model import Card, Kind, Said

LOOK_S: Final = 0.3
"""Time without output after which the screen is looked at for a question."""

SLOW_START_US: Final = 10_000_000
"""Silence after which a shell counts as idle though its integration has not spoken, and time from its start in which an agent may be
starting up."""

KEYFRAME_EVERY: Final = 786_432
"""Bytes of output between two keyframes in the ring."""

FRAME_LIMIT: Final = 524_288
"""Bytes of a screen with the lines above it; of a larger one viewers get the screen alone."""

VIEWS_LIMIT: Final = 64
"""Views of which the program in the foreground is known."""

MARKS_LIMIT: Final = 64
"""Sequences of one piece of output that are looked at; a flood of them sets no more states."""

_ANSWER: Final = b"\x1b]7501;?\x1b\\"


class Meta(msgspec.Struct, kw_only=True):
    """Record of a terminal, kept beside its bytes."""

    id: str
    name: str
    workspace: str
    definition: str
    kind: Kind
    directory: str
    manifest: str
    integration: str
    columns: int
    rows: int
    nonce: str
    boot: str = ""
    run: int = 1
    order: int = 0
    pid: int | None = None
    started: int = 0
    code: int | None = None
    ended: str = ""
    seen: bool = True
    active: bool = False
    resumable: bool = False
    left: tuple[str, ...] = ()
    known: states.Known | None = None
    last: Last = Last()
    at: int = 0
    """Bytes of output that `known` and `last` were made from."""

    submitted: int = 0
    """Bytes of output when a text was last submitted."""

    life: str = ""
    """Name of its life, under which its log is kept."""

    by: str = "unknown"
    """Account or call that decided its last start."""

    secret: str = ""
    """Secret with which its programs sign messages to the officer."""

    said: Said = Said()


class Terminal:
    """A terminal of this host. `publish` sends output to viewers, `changed` is called after everything that its card shows."""

    def __init__(
        self, meta: Meta, folder: Path, clock: Clock, publish: Callable[[Output], None], changed: Callable[[Terminal], None]
    ) -> None:
        self.meta = meta
        self.known = meta.known or states.begun(meta.kind, meta.started)
        self.commands = Commands(meta.last)
        self.held_by = self.held_connection = ""
        self.typed_at = 0
        self.tape: Tape | None = None
        """Recorder of what it shows, if that is kept."""

        self.stale = False
        self._viewed: dict[int, int] = {}
        self.news = asyncio.Event()
        """Set, and replaced, whenever something was written or the state changed."""

        self._folder, self._clock = folder, clock
        self._publish, self._changed = publish, changed
        self._loop = asyncio.get_running_loop()
        self._master: int | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._look_at = 0.0
        self._inlet = Inlet()
        self._marks = 0
        self._silent = False
        self._drawing = self._deaf = False
        self.ring = Ring(self._ring_path, meta.run)
        self.screen = Screen(meta.columns, meta.rows, self._told)
        self._outlet = Outlet(meta.run, publish, self._frame)
        self._kept_at = 0
        self._drawn()

    @property
    def _ring_path(self) -> Path:
        return self._folder / f"{self.meta.id}.ring"

    @property
    def alive(self) -> bool:
        """Tell whether the program runs."""
        return self.meta.code is None and not self.meta.ended

    @property
    def master(self) -> int | None:
        """Return the descriptor of the terminal; None once nothing can come from it."""
        return self._master

    @property
    def last(self) -> Output:
        """Return the screen now, with as much above it as a message holds. What was written before it has been sent."""
        self._outlet.flush()
        return Output(run=self.meta.run, offset=self.ring.count, data=self._frame(True), keyframe=True)

    def _frame(self, scrollback: bool) -> bytes:
        frame = self.screen.keyframe(scrollback=scrollback)
        return frame if len(frame) <= FRAME_LIMIT else self.screen.keyframe(scrollback=False)

    def connect(self, master: int) -> None:
        """Take the descriptor, and read."""
        os.set_blocking(master, False)
        self._master = master
        self._inlet.open(master)
        self._loop.add_reader(master, self._readable)
        self._look_in(LOOK_S)

    def restarted(self, meta: Meta) -> None:
        """Go on with another start of the program."""
        self.disconnect()
        self.ring.close()
        self.screen.close()
        self.meta, self.known, self.commands = meta, states.begun(meta.kind, self._clock.now_us()), Commands()
        self.stale, self._kept_at, self._viewed = False, 0, {}
        self.ring = Ring(self._ring_path, meta.run)
        self.screen = Screen(meta.columns, meta.rows, self._told)
        self._outlet.close()
        self._outlet = Outlet(meta.run, self._publish, self._frame)
        self._outlet.show(0)
        if self.tape is not None:
            self.tape.close()
            self.tape.begin()

    def disconnect(self) -> None:
        """Read no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._inlet.close()
        if self._master is not None:
            self._loop.remove_reader(self._master)
            os.close(self._master)
            self._master = None

    def close(self, *, keep: bool) -> None:
        """Let go of everything; with `keep` a successor finds the ring."""
        self.disconnect()
        self._outlet.close()
        if self.tape is not None:
            self.tape.close()
        if keep:
            self.keep()
        self.ring.close()
        self.screen.close()
        if not keep:
            self._ring_path.unlink(missing_ok=True)

    def keep(self) -> None:
        """Keep the screen in the ring, from which a successor goes on."""
        columns, rows = self.screen.size
        if self.ring.keep(Keyframe(self.ring.count, columns, rows, self.screen.keyframe(scrollback=True))):
            self._kept_at = self.ring.count

    def resize(self, columns: int, rows: int) -> None:
        """Give screen and record another size; the holder gives it to the program."""
        self.screen.resize(columns, rows)
        self.meta.columns, self.meta.rows = columns, rows
        self.keep()  # the bytes before were drawn at the other size
        self._outlet.show(self.ring.count)
        if self.tape is not None:
            self.tape.resized(columns, rows)
        self.tell()

    def write(self, data: bytes) -> bool:
        """Write to the program; return false if it does not take it."""
        return self._inlet.write(data)

    def typed(self, data: bytes) -> bool:
        """Write what a person or an agent typed."""
        taken = self.write(data)
        self.typed_at = self._clock.now_us()
        before = self.stale, states.state(self.known)
        self.stale = not taken and self.alive
        self.known = states.typed(self.known, self.typed_at)
        if before != (self.stale, states.state(self.known)):  # most keys change nothing that a card shows
            self.tell()
        return taken

    def echo_off(self) -> bool:
        """Tell whether the program reads a line without showing it, as a password is read."""
        local = self._local_modes()
        return bool(local & termios.ICANON) and not local & termios.ECHO

    def has_started(self) -> bool:
        """Tell whether an agent has begun to read its terminal: it speaks, takes pastes, or reads keys and no lines. Sooner, it may throw
        away what is typed. One that does none of these has started after `SLOW_START_US`, and any other program at once."""
        if self.meta.kind != "agent" or "program" in self.known.words or self.screen.mode("bracketed_paste"):
            return True
        return not self._local_modes() & termios.ICANON or self._clock.now_us() - self.known.started >= SLOW_START_US

    def _local_modes(self) -> int:
        if self._master is None:
            return 0
        try:
            return int(termios.tcgetattr(self._master)[3])
        except termios.error:
            return 0

    def foreground(self) -> int:
        """Return the process group in the foreground; 0 where there is none."""
        if self._master is None:
            return 0
        try:
            return os.tcgetpgrp(self._master)
        except OSError:
            return 0

    def hold(self, by: str, connection: str, *, take: bool) -> None:
        """Give the keys to a connection, or take them back from it."""
        if take:
            self.held_by, self.held_connection = by, connection
        elif self.held_connection == connection:
            self.held_by = self.held_connection = ""

    def viewed(self) -> int:
        """Take that somebody reads the screen; return the sequence of this view."""
        seq = self.ring.count
        self._viewed.pop(seq, None)
        self._viewed[seq] = self.foreground()
        if len(self._viewed) > VIEWS_LIMIT:
            del self._viewed[next(iter(self._viewed))]
        return seq

    def changed_since(self, seq: int) -> str:
        """Return how the program in the foreground is another one than at a view; empty if it is the same."""
        before = self._viewed.get(seq)
        if before is None:
            return "That view of the screen is too old, or of the program before its restart. Read the screen again."
        last = self.commands.last  # a shell says that it begins a command before that has the foreground
        begins = last.begun is not None and last.begun >= seq and last.ended is None
        if before == self.foreground() and not begins:
            return ""
        return "Another program is in the foreground since the screen was read. Read it again."

    def looked(self) -> None:
        """Take that somebody looked."""
        self.known = states.looked(self.known, self._clock.now_us())
        self.meta.seen = True
        self.tell()

    def ended(self, code: int | None, sentence: str) -> None:
        """Take that the program ended, after all that it wrote."""
        while self._master is not None and self._readable():
            pass
        self.meta.code, self.meta.ended = code, sentence
        self.known = states.ended(self.known, 0 if code is None else code, self._clock.now_us())
        self._outlet.flush()
        self.tell()

    def card(self, *, active: bool, isolation: str) -> Card:
        """Return the terminal as lists show it."""
        state = states.state(self.known)
        meta = self.meta
        return Card(
            host="local", id=meta.id, name=meta.name, workspace=meta.workspace, definition=meta.definition, kind=meta.kind,
            title=self.screen.title, directory=self.screen.directory or meta.directory, state=state, columns=meta.columns, rows=meta.rows,
            seen=meta.seen, needs_you=state.phase == "blocked", stale=self.stale, active=active, run=meta.run, pid=meta.pid,
            exit_code=meta.code, ended=meta.ended, resumable=meta.resumable, isolation=isolation, left=meta.left, held_by=self.held_by,
            held_connection=self.held_connection, offset=self.ring.count, started=meta.started, said=meta.said, life=meta.life,
        )  # fmt: skip

    def tell(self) -> None:
        """Say that something changed."""
        state = states.state(self.known)
        if state.phase == "done" and self.meta.known is not None and states.state(self.meta.known).phase != "done":
            self.meta.seen = False
        self.meta.known, self.meta.last, self.meta.at = self.known, self.commands.last, self.ring.count
        news, self.news = self.news, asyncio.Event()
        news.set()
        self._changed(self)

    def _readable(self) -> bool:
        """Read once; return whether there was anything."""
        if self._master is None:
            return False
        before = self.ring.count
        try:
            data = self.ring.read_from(self._master)
        except OSError as error:
            if error.errno not in (None, errno.EIO):
                raise
            self.disconnect()
            self._outlet.flush()
            self.tell()
            return False
        if data:
            self._took(data, before)
        return bool(data)

    def _took(self, data: bytes, offset: int) -> None:
        self._marks = 0
        phase, said = states.state(self.known).phase, self.meta.said
        replies = self.screen.feed(data)
        self._inlet.write(replies, answer=True)
        for prompt in self.commands.feed(data, offset):
            if not self.meta.integration:
                self._marked(prompt)
        self.known = states.wrote(self.known, self._clock.now_us())
        self._silent = False
        if self.ring.count - self._kept_at > KEYFRAME_EVERY:
            self.keep()
        self._outlet.take(data, self.ring.count)
        if self.tape is not None:
            self.tape.wrote(data)
        self._look_in(LOOK_S)
        if states.state(self.known).phase != phase or self.meta.said != said:
            self.tell()
        else:
            news, self.news = self.news, asyncio.Event()
            news.set()

    def look(self) -> None:
        """Look at the screen for what its program asks."""
        rows = self.screen.rows()
        phase, reason, said = look(self.meta.manifest, rows) or (None, "", "")
        if phase is None and states.asks_without_words(self.known) and (question := dialog(rows)):
            phase, reason, said = "blocked", "question", question
        if self.echo_off():  # the terminal itself says so
            phase, reason, said = "blocked", "auth", rows[-1] if rows else ""
        before = states.state(self.known)
        self.known = states.shows(self.known, phase, reason, words(said), self._clock.now_us())
        if states.state(self.known) != before:
            self.tell()

    def _look_in(self, after_s: float) -> None:
        """Look after this time, unless it is sooner already."""
        at = self._loop.time() + after_s
        if self._looking is not None:
            if self._look_at <= at:
                return
            self._looking.cancel()
        self._look_at = at
        self._looking = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        """Look at the screen once nothing was written for a while, and say that it is silent after longer."""
        self._looking = None
        if not self.alive:
            return
        now = self._clock.now_us()
        quiet = now - max(self.known.output_at, self.known.started)
        if quiet < LOOK_S * 900_000:
            self._look_in(LOOK_S)
            return
        self.look()
        # A shell that has signed no mark yet reads its user's files.
        starts = (self.meta.integration and "shell" not in self.known.words) or not self.has_started()
        needed = SLOW_START_US if starts else states.QUIET_US
        if quiet < needed:
            self._look_in((needed - quiet) / 1e6 + 0.01)
        elif not self._silent:
            self._silent = True
            before = states.state(self.known)
            self.known = states.fell_silent(self.known, now)
            if states.state(self.known) != before:
                self.tell()

    def _told(self, content: bytes) -> None:
        """Take a sequence that the emulator does not know."""
        if self._deaf:
            return
        self._marks += 1
        mark = of_sequence(content, self.meta.nonce, self.meta.secret) if self._marks <= MARKS_LIMIT else None
        if isinstance(mark, Query):
            if not self._drawing:
                self._inlet.write(_ANSWER, answer=True)
        elif isinstance(mark, Report):
            self.known = states.reported(self.known, mark, self._clock.now_us())
        elif isinstance(mark, Prompt):
            self._marked(mark)
        elif isinstance(mark, peers.Message) and peers.taken(mark, last=self.meta.said.at, now=self._clock.now_us()):
            self.meta.said = Said(at=mark.at, by=mark.name, text=mark.text)

    def _marked(self, prompt: Prompt) -> None:
        if prompt.mark == "D":
            self.screen.drop_answers()
            self._inlet.drop_answers()
        self.known = states.prompted(self.known, prompt, self._clock.now_us())

    def _drawn(self) -> None:
        """Draw the screen from the ring. The program had its answers from the process before."""
        self._drawing = True
        frame = self.ring.keyframe()
        if frame is not None:
            self.screen.resize(frame.columns, frame.rows)
            self.screen.feed(frame.data)
        start = frame.after if frame is not None else 0
        missed = self.ring.since(start)
        if missed is None:  # no keyframe reaches so far back; the last bytes draw what they can
            start = max(0, self.ring.count - 262_144)
            missed = self.ring.since(start) or b""
        known = max(0, min(self.meta.at - start, len(missed)))
        self._deaf = True  # what these bytes say is known already
        self.screen.feed(missed[:known])
        self._deaf = False
        self.screen.feed(missed[known:])
        self.commands.feed(missed[known:], start + known)
        if self.screen.size != (self.meta.columns, self.meta.rows):
            self.screen.resize(self.meta.columns, self.meta.rows)
        self._kept_at = start
        self._drawing = False
