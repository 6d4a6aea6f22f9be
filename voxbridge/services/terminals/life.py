"""The logs of terminals: what is noticed of each is queued, journalled and appended, and holds up no program.

Owns the queue of each log with its bounds, how often a state is noted, and the order. Does not own what is news (`core.life`). While the
log is away programs run on: `QUEUE_LIMIT` happenings of a terminal wait, later ones are counted, and the log says how many it lacks. Killed
with what waits, the next process notes the states that it finds; what was sent in the last moments before may be missing. A log that can
never take what comes next, as one whose journal cannot be read, is left as it is: the service's log says so once, and programs run on.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec

from voxbridge.services.terminals.core import life as core
from voxbridge.services.terminals.core.state import Word
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.step.effects import Tasks
from voxbridge.shared.step.fold import Append, fold
from voxbridge.shared.step.journal import JournalBroken
from voxbridge.shared.step.runner import StepRunner
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Source

WRITER: Final = "terminals"
QUEUE_LIMIT: Final = 1_024
"""Happenings of a terminal that wait for the log."""

TOGETHER: Final = 64
"""Happenings that are written in one transaction."""

BURST: Final = 60
"""States of a terminal that are noted at once; after these one in `EVERY_S`, the newest, so that no program fills the log."""

EVERY_S: Final = 2.0
TYPED_S: Final = 2.0
"""Seconds of typing that are one event."""

_AGAIN_S: Final = (0.1, 0.5, 1.0, 2.0)
_log = logging.getLogger(__name__)
_Words = Mapping[Source, Word]
_Runner = StepRunner[core.Life, core.Input, Append]


class Lives:
    """The logs of this host's terminals, by the names of their lives. `stem` is unique among all processes that write them."""

    def __init__(self, log: Log, clock: Clock, stem: str) -> None:
        self._log, self._clock, self._stem = log, clock, stem
        self._lives: dict[str, _Life] = {}
        self._writing = Tasks[str]("the logs of terminals")
        self._ready = asyncio.Event()

    def open(self) -> None:
        """Begin to write: the streams are there."""
        self._ready.set()

    def waiting(self) -> int:
        """Return how many happenings wait for the log."""
        return sum(len(one.queue) for one in self._lives.values())

    def __len__(self) -> int:
        """Return how many logs are being written."""
        return len(self._lives)

    def started(self, life: str, noticed: core.Started) -> None:
        """Note that a program was started."""
        self._note(life, noticed)

    def heard(self, life: str, words: _Words) -> None:
        """Note what the sources say of a program's state, if it is something else than before."""
        one = self._of(life)
        said = {source: (word.phase, word.reason, word.words) for source, word in words.items()}
        if said == one.said:
            return
        one.said, one.words = said, words
        if one.later is None:
            wait_s = one.allowance.wait_s()
            if wait_s <= 0:
                self._flush_words(life, one)
            else:
                one.later = asyncio.get_running_loop().call_later(wait_s, self._flush_words, life, one)

    def sent(self, life: str, question: asked.Send | asked.SendKey, answer: asked.Sent) -> None:
        """Note what somebody sent, and what came of it. Of a text its length is kept, and its digest if it was typed."""
        key, size, digest = "", 0, ""
        if isinstance(question, asked.SendKey):
            key = question.key[:64]
        else:
            data = question.text.encode()
            size, digest = len(data), hashlib.sha256(data).hexdigest() if answer.outcome != "not_submitted" else ""
        noticed = core.Sent(
            at=self._clock.now_us(), by=question.by, outcome=answer.outcome, reason=answer.reason, proof=answer.proof, key=key, size=size,
            digest=digest,
        )  # fmt: skip
        self._note(life, noticed)

    def typed(self, life: str, connection: str, size: int) -> None:
        """Note that a person typed so many bytes."""
        one = self._of(life)
        one.typed += size
        one.typing.add(connection)
        if one.typed_timer is None:
            one.typed_timer = asyncio.get_running_loop().call_later(TYPED_S, self._flush_typed, life, one)

    def resized(self, life: str, columns: int, rows: int) -> None:
        """Note a size, the last of those that come while a window is drawn larger."""
        one = self._of(life)
        one.size = (columns, rows)
        if one.size_timer is None:
            one.size_timer = asyncio.get_running_loop().call_later(TYPED_S, self._flush_size, life, one)

    def renamed(self, life: str, by: str, name: str) -> None:
        """Note a name."""
        self._note(life, core.Renamed(at=self._clock.now_us(), by=by, name=name))

    def signalled(self, life: str, by: str, signal: str) -> None:
        """Note a signal."""
        self._note(life, core.Signalled(at=self._clock.now_us(), by=by, signal=signal))

    def ended(self, life: str, code: int | None, sentence: str) -> None:
        """Note the end of a program, behind its last words."""
        self._note(life, core.Ended(at=self._clock.now_us(), code=code, sentence=sentence))

    def closed(self, life: str, by: str, left: tuple[str, ...]) -> None:
        """Note that a terminal was closed; its log is written to its end and let go."""
        self._note(life, core.Closed(at=self._clock.now_us(), by=by, left=left))
        one = self._lives[life]
        one.over = True
        if one.refused:
            del self._lives[life]

    async def close(self, within_s: float) -> None:
        """Write what waits, for `within_s` at most."""
        for life, one in self._lives.items():
            self._before(life, one)
        if self._ready.is_set():
            await self._writing.idle(within_s)
        self._writing.cancel_all()
        await self._writing.idle(1.0)

    def _of(self, life: str) -> _Life:
        return self._lives.setdefault(life, _Life())

    def _note(self, life: str, noticed: core.Input) -> None:
        one = self._of(life)
        self._before(life, one)
        self._put(life, one, noticed)

    def _before(self, life: str, one: _Life) -> None:
        """Note what was held back, so that it stands before what comes now."""
        self._flush_typed(life, one)
        self._flush_size(life, one)
        if one.later is not None:
            self._flush_words(life, one)

    def _flush_words(self, life: str, one: _Life) -> None:
        if one.later is not None:
            one.later.cancel()
            one.later = None
        one.allowance.take()
        self._put(life, one, core.Heard(at=self._clock.now_us(), words=one.words))

    def _flush_typed(self, life: str, one: _Life) -> None:
        if one.typed_timer is not None:
            one.typed_timer.cancel()
            one.typed_timer = None
            self._put(life, one, core.Typed(at=self._clock.now_us(), size=one.typed, connections=len(one.typing)))
            one.typed, one.typing = 0, set()

    def _flush_size(self, life: str, one: _Life) -> None:
        if one.size_timer is not None:
            one.size_timer.cancel()
            one.size_timer = None
            self._put(life, one, core.Resized(at=self._clock.now_us(), columns=one.size[0], rows=one.size[1]))

    def _put(self, life: str, one: _Life, noticed: core.Input) -> None:
        if one.refused:
            return
        if len(one.queue) >= QUEUE_LIMIT:
            if not one.lost:
                _log.warning("the log of terminal %s is behind: later happenings are counted.", life)
            one.lost += 1
            return
        one.queue.append(noticed)
        if not one.writing:
            one.writing = True
            self._writing.start(life, self._write(life, one))

    async def _write(self, life: str, one: _Life) -> None:
        try:
            await self._ready.wait()
            while one.queue:
                batch = list(islice(one.queue, TOGETHER))
                await self._written(life, one, batch)
                if one.refused:
                    one.queue.clear()
                    break
                for _ in batch:
                    one.queue.popleft()
                if one.lost and len(one.queue) < QUEUE_LIMIT:
                    lost, one.lost = one.lost, 0
                    one.queue.append(core.Lost(at=self._clock.now_us(), count=lost))
        finally:
            one.writing = False  # at once: what is noticed before the task counts as ended begins another one
        if one.over:
            self._lives.pop(life, None)

    async def _written(self, life: str, one: _Life, batch: list[core.Input]) -> None:
        """Write inputs, each once: after a failure the log says which of them it has. A log that takes none of them is `refused`."""
        first: int | None = None
        failures = 0
        while True:
            try:
                if one.runner is None:
                    one.runner = await self._opened(life, one)
                first = one.runner.taken if first is None else first
                left = batch[one.runner.taken - first :]
                if left:
                    with one.runner.together():
                        for noticed in left:
                            one.runner.take(noticed)
                    await one.runner.close()
            except VoxbridgeError as error:
                one.runner = None
                if isinstance(error, Conflict):  # another process wrote: where these would begin is not known any more
                    first = None
                elif isinstance(error, JournalBroken) or error.code is Code.TOO_LARGE:
                    _log.error("the log of terminal %s is not written any more: %s", life, error.message)
                    one.refused = True
                    return
                if failures == 0:
                    _log.warning("the log of terminal %s waits: %s", life, error.message)
                await asyncio.sleep(_AGAIN_S[min(failures, len(_AGAIN_S) - 1)])
                failures += 1
            else:
                return

    async def _opened(self, life: str, one: _Life) -> _Runner:
        """Fold a log, write the events that a crash left missing, and go on behind them."""
        log_id = subjects.terminal_log(life)
        found = fold(core.step, core.initial(log_id), core.Input, WRITER, await read(self._log, life))
        one.folds += 1
        end = End(found.number, found.last_seq)
        writer = SessionWriter(self._log, log_id, WRITER, stem=f"{self._stem}-{one.folds}", end=end)
        for due in found.missing:
            writer.submit(due.event, ts=due.ts, cause=due.cause)
        await writer.flushed()
        return StepRunner(core.step, found.state, writer=writer, clock=self._clock, perform=_nothing, taken=found.taken)


class _Allowance:
    """A bucket of `BURST` states that one drips into each `EVERY_S`."""

    def __init__(self) -> None:
        self._left, self._at = float(BURST), asyncio.get_running_loop().time()

    def wait_s(self) -> float:
        """Return the seconds until the next one may be noted."""
        self._drip()
        return 0.0 if self._left >= 1 else (1 - self._left) * EVERY_S

    def take(self) -> None:
        """Take one."""
        self._drip()
        self._left = max(0.0, self._left - 1)

    def _drip(self) -> None:
        now = asyncio.get_running_loop().time()
        self._left, self._at = min(float(BURST), self._left + (now - self._at) / EVERY_S), now


class _Life(msgspec.Struct):
    """The log of one terminal, and what is held back for it."""

    queue: deque[core.Input] = msgspec.field(default_factory=deque)
    lost: int = 0
    said: Mapping[Source, tuple[str, str, str]] | None = None
    words: _Words = {}
    later: asyncio.TimerHandle | None = None
    allowance: _Allowance = msgspec.field(default_factory=_Allowance)
    typed: int = 0
    typing: set[str] = msgspec.field(default_factory=set)
    typed_timer: asyncio.TimerHandle | None = None
    size: tuple[int, int] = (0, 0)
    size_timer: asyncio.TimerHandle | None = None
    runner: _Runner | None = None
    folds: int = 0
    writing: bool = False
    refused: bool = False
    over: bool = False


async def read(log: Log, life: str) -> list[events.Recorded]:
    """Return everything that the log has of a terminal's life. Raises `UNAVAILABLE`."""
    return [one async for one in log.read_all(subjects.terminal_log(life))]


def _nothing(_: Append) -> None:
    """Perform nothing: every output of a life is an event."""
