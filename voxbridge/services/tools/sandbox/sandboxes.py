"""The sandboxes of this process: which session has which process, spare ones made ahead, and the end of every call.

A process serves the calls of one session, one at a time, as long as none leaves anything behind in it; it never serves another session.
What does not end is killed from outside. Owns the numbers of processes and calls. Does not own the processes themselves
(`voxbridge.services.tools.sandbox.processes`) nor what a handler may ask for (`outside`). A crash here ends calls, which the executor
reports as interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from voxbridge.services.tools.sandbox import frames
from voxbridge.services.tools.sandbox.processes import Lost, Process, Zygote
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.platform.handlers import HandlerTool, source_digest
from voxbridge.shared.platform.problems import Problem, invalid

SPARE: Final = 2
"""Processes that are made ahead, for whichever session calls first."""

IDLE_LIMIT: Final = 128
"""Processes of sessions that wait for their next call; the one that has waited longest is ended when there is one more."""

IDLE_S: Final = 300.0
"""Seconds after which a process that waits is ended."""

RUNNING_LIMIT: Final = 32
"""Calls of handlers that run at a time."""

ACCOUNT_LIMIT: Final = 8
"""Calls of one account's handlers that run at a time."""

WAITING_LIMIT: Final = 16
"""Calls of one account that wait for one of these to end."""

WAIT_S: Final = 5.0
"""Seconds that a call waits for one of these to end."""

CALLS_LIMIT: Final = 200
"""Calls after which a process is replaced."""

OPEN_LIMIT: Final = 16
ASKS_LIMIT: Final = 64
"""Requests of a call to the outside, at a time and in all. The sandbox keeps both itself; a process that does not is ended."""

SETTLE_S: Final = 1.0
"""Seconds in which a process whose call is over must be at rest."""

SETTLING_S: Final = 0.05
"""Seconds for which a call waits for its session's own process to be at rest."""

CHECK_S: Final = 3.0
CHECKED_KEPT: Final = 1_024
"""Sources whose check is remembered."""

_log = logging.getLogger(__name__)

Answers = Callable[[frames.AskFrame], Awaitable[frames.AnswerFrame]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call of a handler. `arguments` is JSON, `secrets` are the stand-ins by name."""

    account: str
    sid: str
    name: str
    source: str
    arguments: str
    secrets: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a call: `value` is JSON, or `error` says why there is none. `console` has level and text of what it wrote."""

    value: str = ""
    error: VoxbridgeError | None = None
    console: tuple[tuple[str, str], ...] = ()
    lines: int = 0


@dataclass(slots=True)
class _Idle:
    process: Process
    calls: int
    since: float


class Sandboxes:
    """The sandboxes of this process."""

    def __init__(self, zygote: Zygote | None = None) -> None:
        self._zygote = zygote or Zygote()
        self._idle: OrderedDict[tuple[str, str], _Idle] = OrderedDict()
        self._settling: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._spare: list[Process] = []
        self._running: Counter[str] = Counter()
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._checked: OrderedDict[str, str] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._zygote)

    @property
    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return self._zygote.pids

    async def check(self, tools: tuple[HandlerTool, ...]) -> None:
        """Check that handlers can run. Raises `Problem` for the first that cannot, and `UNAVAILABLE`."""
        unknown = [tool for tool in tools if source_digest(tool.source) not in self._checked]
        if unknown:
            await self._read(unknown)
        for tool in tools:
            found = self._checked.get(source_digest(tool.source), "")
            if found:
                told = msgspec.json.decode(found, type=dict[str, str])
                raise invalid(tool.name, f"tools.{tool.name}.handler", told["why"], identifier=told["identifier"])
        self._fill()

    async def call(self, wanted: Wanted, answers: Answers) -> Outcome:
        """Run a handler to its end. Raises `OVERLOADED` and `UNAVAILABLE`; cancelling it kills the process before it returns."""
        await self._enter(wanted.account)
        try:
            return await self._call(wanted, answers)
        finally:
            self._leave(wanted.account)

    def release(self, sid: str) -> None:
        """End the processes of a session that is over."""
        for key in [key for key in self._idle if key[1] == sid]:
            self._idle.pop(key).process.kill()

    async def close(self) -> None:
        """End all processes."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._idle.clear()
        self._spare.clear()
        await self._zygote.close()

    # --- calls ---

    async def _enter(self, account: str) -> None:
        """Take a place for a call of an account; where there is none, wait for one behind those that wait already. Raises `OVERLOADED`."""
        full = self._full(account)
        if not full:
            self._running[account] += 1
            return
        if sum(one == account for one in self._waiting.values()) >= WAITING_LIMIT:
            raise self._overloaded(full)
        place = asyncio.get_running_loop().create_future()
        self._waiting[place] = account
        try:
            async with asyncio.timeout(WAIT_S):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self._leave(account)  # it was given away at the same moment
            if isinstance(error, TimeoutError):
                raise self._overloaded(full) from None
            raise
        finally:
            self._waiting.pop(place, None)

    def _leave(self, account: str) -> None:
        """Give the place of a call to the one that has waited longest of those that may run now."""
        self._running[account] -= 1
        if not self._running[account]:
            del self._running[account]
        for place, waiting in self._waiting.items():
            if not place.done() and not self._full(waiting):
                self._running[waiting] += 1
                place.set_result(None)
                return

    def _full(self, account: str) -> int:
        """Return the limit that keeps a call of an account from running; 0 if none does."""
        if self._running[account] >= ACCOUNT_LIMIT:
            return ACCOUNT_LIMIT
        return RUNNING_LIMIT if self._running.total() >= RUNNING_LIMIT else 0

    @staticmethod
    def _overloaded(limit: int) -> VoxbridgeError:
        return VoxbridgeError(Code.OVERLOADED, f"{limit} handlers run already; try again in a moment.", limit=limit)

    async def _call(self, wanted: Wanted, answers: Answers) -> Outcome:
        key = (wanted.account, wanted.sid)
        process, calls = await self._process(key)
        over = False
        try:
            process.send(frames.CallFrame(source=wanted.source, arguments=wanted.arguments, secrets=dict(wanted.secrets)))
            done = await _talk(process, answers)
            over = True
        except Lost as error:
            return Outcome(error=VoxbridgeError(error.code, f"{wanted.name} did not end: {error.why}.", retryable=False))
        finally:
            if not over:
                await _killed(process)
                self._fill()
        self._settling[key] = self._background(self._settle(key, process, calls + 1))
        return _outcome(wanted.name, done)

    async def _process(self, key: tuple[str, str]) -> tuple[Process, int]:
        settling = self._settling.get(key)
        if settling is not None and key not in self._idle:
            await asyncio.wait((settling,), timeout=SETTLING_S)
        idle = self._idle.pop(key, None)
        if idle is not None and idle.process.lives:
            return idle.process, idle.calls
        while self._spare:
            spare = self._spare.pop()
            self._fill()
            if spare.lives:
                return spare, 0
        process = await self._zygote.fork()
        self._fill()
        return process, 0

    async def _settle(self, key: tuple[str, str], process: Process, calls: int) -> None:
        """Keep a process for its session's next call, if the last one left nothing behind."""
        clean = False
        try:
            async with asyncio.timeout(SETTLE_S):
                rest = await process.receive()
                clean = isinstance(rest, frames.RestFrame) and rest.clean
        except (TimeoutError, Lost):
            pass
        finally:
            self._settling.pop(key, None)
            if not clean or calls >= CALLS_LIMIT or self._closed or key in self._idle:
                await _killed(process)
        if process.lives:
            self._idle[key] = _Idle(process, calls, asyncio.get_running_loop().time())
            self._sweep()

    def _sweep(self) -> None:
        """End what has waited too long, and the oldest beyond the limit."""
        now = asyncio.get_running_loop().time()
        while self._idle and (len(self._idle) > IDLE_LIMIT or next(iter(self._idle.values())).since < now - IDLE_S):
            self._idle.popitem(last=False)[1].process.kill()

    def _fill(self) -> None:
        """Make processes ahead, in the background."""
        if not self._closed and not any(task.get_name() == "spare" for task in self._tasks) and len(self._spare) < SPARE:
            self._background(self._make_spare()).set_name("spare")

    async def _make_spare(self) -> None:
        try:
            while len(self._spare) < SPARE:
                self._spare.append(await self._zygote.fork())
        except VoxbridgeError as error:
            _log.warning("no sandbox is made ahead: %s", error.message)

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- checks ---

    async def _read(self, tools: list[HandlerTool]) -> None:
        process = await self._zygote.fork()
        try:
            async with asyncio.timeout(CHECK_S):
                for tool in tools:
                    self._remember(source_digest(tool.source), await process.check(tool.source))
        except (TimeoutError, Lost):
            raise _unread(tool) from None
        finally:
            await _killed(process)

    def _remember(self, digest: str, problem: str) -> None:
        self._checked[digest] = problem
        while len(self._checked) > CHECKED_KEPT:
            self._checked.popitem(last=False)


async def _talk(process: Process, answers: Answers) -> frames.DoneFrame:
    """Answer what a handler asks until it is over. Raises `Lost`."""
    asked = 0
    open_asks: set[asyncio.Task[None]] = set()

    async def answer(ask: frames.AskFrame) -> None:
        process.send(await answers(ask))

    try:
        while not isinstance(told := await process.receive(), frames.DoneFrame):
            asked += 1
            if not isinstance(told, frames.AskFrame) or asked > ASKS_LIMIT or len(open_asks) >= OPEN_LIMIT:
                raise Lost("it asked more than it may")
            task = asyncio.get_running_loop().create_task(answer(told))
            open_asks.add(task)
            task.add_done_callback(open_asks.discard)
        return told
    finally:
        for task in list(open_asks):
            task.cancel()
        await asyncio.gather(*open_asks, return_exceptions=True)


async def _killed(process: Process) -> None:
    process.kill()
    with contextlib.suppress(asyncio.CancelledError):
        await process.gone()


def _outcome(name: str, done: frames.DoneFrame) -> Outcome:
    console = tuple((level[:16], text) for level, text in done.console)
    if not done.kind:
        return Outcome(value=done.value, console=console, lines=done.lines)
    code = Code.TOO_LARGE if done.kind == "too_large" or "out of memory" in done.message else Code.INTERNAL
    verb = "failed" if done.kind in ("thrown", "engine") else "did not end well"
    error = VoxbridgeError(code, f"{name} {verb}: {done.message}", retryable=False)
    return Outcome(error=error, console=console, lines=done.lines)


def _unread(tool: HandlerTool) -> Problem:
    return invalid(tool.name, f"tools.{tool.name}.handler", f"its handler could not be read within {CHECK_S:g} s; make it simpler")
