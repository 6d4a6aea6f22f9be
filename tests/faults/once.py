"""Calls, tasks and runs that are held before and after each of their appends and effects, all at the same time, and what then happens to
their executors: what the log tells of each, and what it did in a folder outside, must agree."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple

from tests.eventually import BOUND_S, eventually
from tests.faults import deeds
from tests.faults.wire import Stop, Wire
from tests.tools.conftest import Caller
from voxbridge.services.tools.session.session import refold
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    ApprovalRequested,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

PACKS: Final = "tests.faults.deeds,voxbridge.services.tools.packs.macros.functions"
KINDS: Final = {
    "read": "look",
    "write": "charge",
    "idempotent": "book",
    "destructive": "wipe",
    "task": "report",
    "alarm": "ring",
    "run": "run_macro",
    "child": "press",
}
"""The function of each kind of call."""

REPEATED: Final = ("read", "idempotent", "alarm")
"""Kinds that are begun again when their process died."""

ACCOUNT_CASES: Final = 12
"""Cases that share an account: even when each call is made twice, these are fewer tasks than it may have open."""

STEPS: Final = ("1", "2", "3")
MACRO: Final[dict[str, Any]] = {
    "name": "three",
    "inputs": {"folder": {}},
    "steps": [
        {"call": function, "arguments": {"folder": f"${{input.folder}}/{step}"}}
        for step, function in zip(STEPS, ("charge", "book", "charge"), strict=True)
    ],
}
ANSWERS: Final = (ToolCompleted, ToolFailed, ToolInterrupted)
TASK_ENDS: Final = (TaskCompleted, TaskFailed, TaskCancelled, TaskInterrupted)


class Deed(NamedTuple):
    """A place at an effect: `before` or `after` it, in this part of the case's folder."""

    when: str
    part: str = ""


Place = Stop | Deed | None
"""Place at which a case is held; None: nowhere."""


class Case:
    """A call in a session of its own, and the place at which it is held."""

    def __init__(self, kind: str, place: Place, caller: Caller, account: str, folder: Path) -> None:
        self.kind = kind
        self.place = place
        self.caller = caller
        self.account = account
        self.folder = folder
        self.asked: list[str] = []
        self.kept = -1
        """Events of the executor in the log when it was killed."""

        self._gateway = SessionWriter(caller.log, caller.sid, "gateway")
        for part in self.parts:
            (folder / part).mkdir(parents=True, exist_ok=True)
        if isinstance(place, Deed):
            (folder / place.part / place.when).touch()

    def __str__(self) -> str:
        return f"{self.kind} held at {self.place}: {[type(event).__name__ for event in self.caller.told()]}, {self.effects}"

    @property
    def parts(self) -> Sequence[str]:
        return STEPS if self.kind == "run" else ("",)

    @property
    def effects(self) -> list[int]:
        """Return how often each effect happened."""
        return [len(deeds.effects(self.folder / part)) for part in self.parts]

    async def call(self, call_id: str = "c1") -> None:
        """Make the call; a new id makes the same call again."""
        self.asked.append(call_id)
        arguments: dict[str, Any] = {"folder": str(self.folder)}
        if self.kind == "run":
            arguments = {"name": MACRO["name"], "inputs": arguments}
        await self.caller.call(KINDS[self.kind], call_id, deadline_ms=45_000, account=self.account, **arguments)

    async def click(self) -> None:
        """Approve the call once it asks for it."""
        asked, _ = await self.caller.next(ApprovalRequested)
        await self._gateway.append(ApprovalClicked(approval_id=asked.approval_id, answer="approved"), ts=SystemClock().now_us(), cause=None)

    def release(self) -> None:
        """Let its effects go on, in whatever process."""
        for part in self.parts:
            (self.folder / part / deeds.GO).touch()

    def is_held(self, wire: Wire) -> bool:
        """Tell whether it is where it is to be held, or over before."""
        if isinstance(self.place, Deed):
            return (self.folder / self.place.part / f"{self.place.when}.reached").exists() or self.is_over()
        return self.is_over() if self.place is None else wire.holds(self.caller.sid) or self.is_over()

    def is_over(self) -> bool:
        """Tell whether every call was answered, and every task has ended."""
        return all(self.outcome(call_id) for call_id in self.asked)

    def outcome(self, call_id: str) -> str:
        """Return how a call ended: completed, failed, cancelled, interrupted or declined; empty while it is open."""
        for event in self._of(call_id, *ANSWERS):
            if not isinstance(event, ToolCompleted):
                return _word(event)
            later = event.result.get("status")
            task = event.result.get("task_id", "") or f"task-{event.result.get('approval_id', '').removeprefix('approval-')}"
            if event.result.get("repeated"):
                return "repeated"
            if later is None:
                return "completed"
            for end in self.caller.told(*TASK_ENDS, ApprovalEnded):
                if isinstance(end, ApprovalEnded) and f"task-{end.call_id}" == task and end.outcome != "approved":
                    return "declined"
                if getattr(end, "task_id", "") == task:
                    return _word(end)
        for end in self.caller.told(*TASK_ENDS):
            if getattr(end, "task_id", "") == f"task-{call_id}" and self._of(call_id, TaskStarted):
                return _word(end)
        return ""

    def _of(self, call_id: str, *types: type[events.Event]) -> list[Any]:
        return [event for event in self.caller.told(*types) if getattr(event, "call_id", "") == call_id]


def _word(event: events.Event) -> str:
    if isinstance(event, ToolFailed | TaskFailed):
        return {"INTERRUPTED": "interrupted", "CANCELLED": "cancelled"}.get(event.error.code, "failed")
    words = {"Completed": "completed", "Cancelled": "cancelled", "Interrupted": "interrupted"}
    return next(word for end, word in words.items() if type(event).__name__.endswith(end))


class Executor:
    """A real process of the executor, behind a wire."""

    def __init__(self, process: asyncio.subprocess.Process, wire: Wire) -> None:
        self.wire = wire
        self._process = process

    async def kill(self) -> None:
        """Send SIGKILL; what it had not sent is lost."""
        self._process.kill()
        await self._process.wait()
        self.wire.cut()


@asynccontextmanager
async def executor(config: Config) -> AsyncIterator[Executor]:
    """Run an executor, killed in the end; returns when it takes calls."""
    async with Wire(config.nats_url) as wire:
        env = {
            "VOXBRIDGE_NATS_URL": wire.url,
            "VOXBRIDGE_REDIS_URL": config.redis_url,
            "VOXBRIDGE_TOOL_PACKS": PACKS,
            "PATH": "/usr/bin:/bin",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "voxbridge.services.tools",
            cwd=Path(__file__).parents[2],
            env=env,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        assert process.stderr is not None
        draining = None
        try:
            async with asyncio.timeout(BOUND_S):
                while b"tools serves" not in (line := await process.stderr.readline()):
                    assert line, "the executor ended as it started"
            draining = asyncio.create_task(_drain(process.stderr))
            yield Executor(process, wire)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if draining is not None:
                await draining


async def _drain(stderr: asyncio.StreamReader) -> None:
    while await stderr.readline():
        pass


class Stage:
    """The sessions of a test. `begin` makes the calls of all cases, and returns when each is held where it is to be held."""

    def __init__(self, log: Log, folder: Path) -> None:
        self._log = log
        self._folder = folder
        self._open = AsyncExitStack()
        self._clicking: list[asyncio.Task[None]] = []
        self._accounts = token_hex(4)
        self._with_macro: set[str] = set()

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(self, *_: object) -> None:
        for clicking in self._clicking:
            clicking.cancel()
        await asyncio.gather(*self._clicking, return_exceptions=True)
        await self._open.aclose()

    async def begin(self, wire: Wire, places: Sequence[tuple[str, Place]]) -> list[Case]:
        """Make a call of each kind, each in its own session."""
        cases = [
            await self._case(kind, place, f"{self._accounts}-{number // ACCOUNT_CASES}") for number, (kind, place) in enumerate(places)
        ]
        for account in {case.account for case in cases if case.kind == "run"} - self._with_macro:
            await self._save_macro(account)
        for case in cases:
            if isinstance(case.place, Stop):
                wire.stop_at(case.caller.sid, case.place)
            await case.call()
            if case.kind == "destructive":
                self._clicking.append(asyncio.create_task(case.click()))
        await self.until(cases, lambda case: case.is_held(wire))
        return cases

    async def until(self, cases: Sequence[Case], holds: Callable[[Case], bool]) -> None:
        """Wait until something holds for each case."""
        left = list(cases)

        def none_left() -> bool:
            left[:] = [case for case in left if not holds(case)]
            return not left

        try:
            await eventually(none_left)
        except AssertionError:
            raise AssertionError("\n".join(str(case) for case in left[:8])) from None

    async def _case(self, kind: str, place: Place, account: str) -> Case:
        caller = await self._caller()
        return Case(kind, place, caller, account, self._folder / caller.sid)

    async def _save_macro(self, account: str) -> None:
        """Have an account keep the macro that the runs are of."""
        caller = await self._caller()
        await caller.call("create_macro", "make", account=account, **MACRO)
        await caller.next(ToolCompleted, "make")
        self._with_macro.add(account)

    async def _caller(self) -> Caller:
        caller = Caller(self._log, new_session_id())
        await caller.start()
        self._open.push_async_callback(caller.stop)
        return caller


async def places_of(log: Log, config: Config, folder: Path, kinds: Sequence[str] = tuple(KINDS)) -> list[tuple[str, Place]]:
    """Return every place at which calls of these kinds can be held, found by calls that are not held."""
    async with Stage(log, folder) as stage, executor(config) as one:
        cases = await stage.begin(one.wire, [(kind, None) for kind in kinds])
        found: list[tuple[str, Place]] = []
        for case in cases:
            found += [(case.kind, Stop("before", number)) for number in range(one.wire.sent[case.caller.sid])]
            found += [(case.kind, Stop("after", number)) for number in range(one.wire.answered[case.caller.sid])]
            if case.kind != "alarm":
                found += [(case.kind, Deed(when, part)) for part in case.parts for when in (deeds.BEFORE, deeds.AFTER)]
    return found


async def note_kept(log: Log, cases: Sequence[Case]) -> None:
    """Remember how much of each case the log had when its executor was killed."""
    for case in cases:
        case.kept = len([one async for one in log.read_all(case.caller.sid, writer="tools")])


def allowed(case: Case, fault: str) -> tuple[str, ...]:
    """Return how a case may end."""
    dies = "its executor" in fault or fault == "both"
    ends = ["completed"]
    if dies and case.kind not in REPEATED:
        ends.append("interrupted")
    if "barge-in" in fault:
        ends.append("cancelled")
    if "repetition" in fault and dies:
        ends += ["repeated", "failed"] if case.kind == "run" else ["repeated"]  # whichever comes first, the other one repeats it
    return tuple(ends)


async def check(log: Log, case: Case, allowed: Sequence[str]) -> None:
    """Check that each end was told once, that what was told agrees with the effects, and that the state is the log's."""
    told = case.caller.told()
    answers = Counter(event.call_id for event in told if isinstance(event, ANSWERS))
    detached = {event.call_id for event in told if isinstance(event, TaskStarted)} - set(answers)  # nobody waited for its answer any more
    assert answers + Counter(detached) == Counter(case.asked), str(case)
    begun = Counter((event.call_id, event.attempt) for event in told if isinstance(event, ToolStarted))
    assert set(begun.values()) <= {1}, str(case)
    tasks = Counter(event.task_id for event in told if isinstance(event, TaskStarted))
    assert tasks == Counter(event.task_id for event in told if isinstance(event, TASK_ENDS)), str(case)
    assert set(tasks.values()) <= {1}, str(case)
    outcomes = {call_id: case.outcome(call_id) for call_id in case.asked}
    assert outcomes["c1"] in allowed, (outcomes, str(case))
    _agrees(case, outcomes)
    folded = refold([one async for one in log.read_all(case.caller.sid)])
    assert (folded.missing, folded.state.open) == ((), {}), str(case)


def _agrees(case: Case, outcomes: dict[str, str]) -> None:
    """Check the effects of a case against what was told of its calls."""
    if case.kind == "alarm":
        rings = [event.announce for event in case.caller.told(TaskCompleted) if isinstance(event, TaskCompleted)]
        assert rings == ["It rings."] * len(case.caller.told(TaskStarted)), str(case)
        assert len(rings) <= len(case.asked), (outcomes, str(case))
        return
    if case.kind == "run" and outcomes["c1"] == "completed" and outcomes.get("c2", "repeated") != "repeated":
        most = 2 if outcomes["c2"] == "completed" else 1
        assert all(most <= effects <= 2 for effects in case.effects), f"a macro that has ended may be started again: {case}"
    elif case.kind != "read":
        assert max(case.effects) <= 1, (outcomes, str(case))
    if "completed" in outcomes.values():
        assert min(case.effects) >= 1, (outcomes, str(case))
    theirs = case.kind == "run" and outcomes.get("c2") == "completed"  # of the second call, which was taken first: the other was refused
    if any(case.effects) and case.kind != "read" and not theirs:
        assert outcomes["c1"] not in ("failed", "declined", "cancelled"), (outcomes, str(case))
    if not case.kept:
        assert outcomes["c1"] != "interrupted", f"it had not begun: {case}"
