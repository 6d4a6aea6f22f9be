"""An account has so many tasks open in all its sessions, whichever executor runs them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.core_driver import T0, Told, accepted, called, log_input
from tests.tools.replaced import replaced
from tests.tools.test_account_calls import Asking
from tests.tools.test_approvals import clicked
from tests.tools.test_service import MakeCaller, lines, release
from voxbridge.services.tools.core.calls import TASKS_LIMIT
from voxbridge.services.tools.core.inputs import Counted, TaskOpened, TaskOver
from voxbridge.services.tools.core.outputs import Count, Done, Release
from voxbridge.services.tools.core.tasks import ACCOUNT_LIMIT, COUNTED_US, TIMERS_KEPT
from voxbridge.services.tools.service import ToolService
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import ApprovalClicked, TaskCancelRequested
from voxbridge.shared.events.tools import (
    ApprovalRequested,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
)
from voxbridge.shared.events.voice import SessionEnded
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

_asked = count()


def tasks(service: ToolService) -> int:
    return len(service.session("@local").state.tasks)


async def test_beyond_the_tasks_of_an_account_a_call_is_refused_and_after_an_end_taken(
    executors: Executors, callers: MakeCaller, tmp_path: Path
) -> None:
    assert ACCOUNT_LIMIT % TASKS_LIMIT == 0
    sessions = [await callers() for _ in range(ACCOUNT_LIMIT // TASKS_LIMIT)]
    late = await callers()
    files = [tmp_path / f"{number}" for number in range(ACCOUNT_LIMIT + 1)]
    async with executors.running():
        for number in range(ACCOUNT_LIMIT):
            caller = sessions[number // TASKS_LIMIT]
            await caller.call("work", f"c{number}", file=str(files[number]))
            await caller.next(TaskStarted, f"c{number}")
        await late.call("work", "late", file=str(files[-1]))
        refused, _ = await late.next(ToolFailed, "late")
        assert (refused.error.code, refused.error.retryable) == (Code.OVERLOADED, True)
        assert f"{ACCOUNT_LIMIT} tasks of this account" in refused.error.message
        await late.call("work", "alien", account="other", file=str(files[0]))
        await late.next(TaskStarted, "alien")
        await late.call("echo", "plain", text="hello")
        await late.next(ToolCompleted, "plain")
        release(files[0])
        await sessions[0].next(TaskCompleted, "c0")
        await late.call("work", "later", file=str(files[-1]))
        await late.next(TaskStarted, "later")
        for file in files:
            release(file)
        await late.next(TaskCompleted, "later")


async def test_a_task_that_was_refused_or_has_ended_counts_no_more(executors: Executors, callers: MakeCaller, tmp_path: Path) -> None:
    caller, file = await callers(), tmp_path / "runs"
    async with executors.running() as service:
        await caller.call("work", "c1", file=str(file))
        await lines(file, 1)
        await caller.call("work", "c2", file=str(file))
        await caller.next(ToolCompleted, "c2")
        await eventually(lambda: tasks(service) == 1)
        await caller.call("work", "c3", wrong=1)
        await caller.next(ToolFailed, "c3")
        release(file)
        await caller.next(TaskCompleted, "c1")
        await eventually(lambda: tasks(service) == 0)


def test_a_task_counts_once_and_for_a_day_at_most() -> None:
    account = Told()
    for number in range(ACCOUNT_LIMIT):
        account.take(TaskOpened(task=f"s c{number}"), TaskOpened(task=f"s c{number}"))
    account.take(TaskOpened(task="s more"))
    assert "s more" not in account.state.tasks
    account.take(TaskOver(task="s c0"), TaskOver(task="s c0"), TaskOpened(task="s more"))
    assert len(account.state.tasks) == ACCOUNT_LIMIT
    account.take(TaskOpened(task="s next"), after_ms=COUNTED_US // 1_000)
    assert list(account.state.tasks) == ["s next"]
    assert account.now > T0


async def test_tasks_of_other_calls_are_listed_and_cancelled_wherever_they_run(executors: Executors, callers: MakeCaller, log: Log) -> None:
    packs = "built-in"
    earlier, stranger, later, client = await callers(), await callers(), await callers(), Asking(log)
    async with executors.running(packs), executors.running(packs):
        await earlier.call("set_timer", "t1", seconds=600, label="tea")
        await stranger.call("set_timer", "t2", account="other", seconds=600, label="pasta")
        for caller, call_id in ((earlier, "t1"), (stranger, "t2")):
            await caller.next(TaskStarted, call_id)
        await earlier.say(SessionEnded(reason="client"))
        await client.start()
        await says(later, "There is the tea timer with 10 minutes left.")
        await says(client, "There is the tea timer with 10 minutes left.")
        await client.call("set_timer", "r2", seconds=1200, label="rice")
        await client.next(TaskStarted, "r2")
        await says(later, "the tea timer with 10 minutes left and the rice timer with 20 minutes left")
        await later.call("cancel_task", "x1", task="the tea timer")
        await later.next(ToolCompleted, "x1")
        gone, _ = await earlier.next(TaskCancelled, "t1")
        assert gone.reason == "the user cancelled it"
        await client.call("cancel_task", "x2", task="rice")
        await client.next(TaskCancelled, "r2")
        await says(later, "Nothing is under way.")
        await client.stop()


async def test_a_task_that_runs_in_another_process_is_stopped_there(executors: Executors, callers: MakeCaller, tmp_path: Path) -> None:
    packs, (running, other) = "tests.tools.pack,voxbridge.services.tools.packs.catalogue.functions", [await callers() for _ in range(2)]
    async with executors.running(packs) as first:
        await running.call("work", "w1", file=str(tmp_path / "runs"))
        await lines(tmp_path / "runs", 1)
        async with executors.running(packs) as second:
            assert len(second._effects) == 0
            await second._unwanted.cancel("local", running.sid, "task-w1")
            await running.next(TaskCancelled, "w1")
            await eventually(lambda: len(first._effects) == 0)
            await second._unwanted.cancel("local", running.sid, "task-w1")
            await other.call("list_tasks", "l1")
            listed, _ = await other.next(ToolCompleted, "l1")
            assert listed.result["count"] == 0


@pytest.mark.parametrize("after", range(2, 9))
async def test_an_alarm_is_listed_in_later_calls_after_its_executor_died_at_any_of_its_writes(
    config: Config, callers: MakeCaller, after: int
) -> None:
    earlier, later = await callers(), await callers()
    async with replaced(config, "tests.tools.dying,voxbridge.services.tools.packs.catalogue.functions", after):
        await earlier.call("later", "t1", ms=600_000)
        await earlier.next(TaskStarted, "t1")
        await says(later, "the later with 10 minutes left")


async def says(caller: Caller, expected: str) -> None:
    """Ask for the tasks until these words are among what is said: a start is told before the account counts it."""

    async def is_said() -> bool:
        call_id = f"list-{next(_asked)}"
        await caller.call("list_tasks", call_id)
        listed, _ = await caller.next(ToolCompleted, call_id)
        return expected in listed.result["spoken"]

    await eventually(is_said)


async def filled(callers: MakeCaller, tmp_path: Path, number_of: int = ACCOUNT_LIMIT) -> list[Path]:
    """Begin so many tasks of the account; return the files that end them."""
    files = [tmp_path / f"{number}" for number in range(number_of)]
    sessions = [await callers() for _ in range(-(-number_of // TASKS_LIMIT))]
    for number, file in enumerate(files):
        caller = sessions[number // TASKS_LIMIT]
        await caller.call("work", f"c{number}", file=str(file))
        await caller.next(TaskStarted, f"c{number}")
    return files


async def yes(caller: Caller, call_id: str) -> None:
    gateway = SessionWriter(caller.log, caller.sid, "gateway", stem=call_id, fenced=False)
    await gateway.append(ApprovalClicked(approval_id=f"approval-{call_id}", answer="approved"), ts=caller.now(), cause=None)


async def test_a_call_that_is_approved_counts_among_the_tasks_of_its_account_and_is_refused_beyond_them(
    executors: Executors, caller: Caller, callers: MakeCaller, tmp_path: Path
) -> None:
    async with executors.running("tests.tools.pack") as service:
        files = await filled(callers, tmp_path, ACCOUNT_LIMIT - 1)
        for call_id in ("a1", "a2"):
            await caller.call("destroy", call_id, file=str(tmp_path / call_id))
            await caller.next(ApprovalRequested, call_id)
        await yes(caller, "a1")
        await caller.next(TaskStarted, "a1")
        assert tasks(service) == ACCOUNT_LIMIT
        await yes(caller, "a2")
        refused, _ = await caller.next(TaskFailed, "a2")
        assert (refused.error.code, refused.error.field, refused.error.retryable) == (Code.OVERLOADED, "tasks", True)
        assert f"{ACCOUNT_LIMIT} tasks of this account" in refused.error.message
        assert not (tmp_path / "a2").exists(), "it did not run"
        release(tmp_path / "a1")
        await caller.next(TaskCompleted, "a1")
        await eventually(lambda: tasks(service) == ACCOUNT_LIMIT - 1)
        for file in files:
            release(file)


async def test_a_call_that_goes_on_after_an_interruption_counts_and_is_not_refused(
    executors: Executors, caller: Caller, callers: MakeCaller, tmp_path: Path
) -> None:
    async with executors.running("tests.tools.pack") as service:
        files = await filled(callers, tmp_path)
        await caller.call("change", "s1", file=str(tmp_path / "saved"))
        await lines(tmp_path / "saved", 1)
        await caller.cancel("s1")
        await caller.next(TaskStarted, "s1")
        await eventually(lambda: tasks(service) == ACCOUNT_LIMIT + 1)
        release(files[0])
        await eventually(lambda: tasks(service) == ACCOUNT_LIMIT)
        await caller.call("work", "late", file=str(tmp_path / "late"))
        refused, _ = await caller.next(ToolFailed, "late")
        assert refused.error.field == "tasks"
        release(tmp_path / "saved")
        await caller.next(TaskCompleted, "s1")
        await caller.call("work", "now", file=str(tmp_path / "late"))
        await caller.next(TaskStarted, "now")
        for file in (*files, tmp_path / "late"):
            release(file)


def test_a_task_that_cannot_be_refused_is_counted_beyond_the_limit_and_a_timer_takes_up_no_room() -> None:
    account = Told()
    account.take(*(TaskOpened(task=f"s c{number}") for number in range(ACCOUNT_LIMIT)))
    account.take(TaskOpened(task="s on", forced=True), *(TaskOpened(task=f"s t{number}", listed=True) for number in range(TIMERS_KEPT + 1)))
    assert len(account.state.tasks) == ACCOUNT_LIMIT + 1
    assert len(account.state.timers) == TIMERS_KEPT
    assert "s t0" not in account.state.timers, "the oldest"
    account.take(TaskOver(task="s on"), TaskOver(task="s t1"))
    assert len(account.state.tasks) == ACCOUNT_LIMIT
    assert "s t1" not in account.state.timers


def test_an_approved_call_waits_for_room_and_one_that_was_cancelled_meanwhile_gives_it_back() -> None:
    told = Told(room=None)
    told.take(called(), accepted(effect="destructive", approval="always"), clicked())
    asked = Count("me", "c1")
    assert told.outputs[-2:] == [asked, Done(3)]
    assert told.take(clicked()) == [asked, Done(3)], "the process died before the account was asked"
    assert told.take(called()) == [asked]
    told.take(log_input(TaskCancelRequested(task_id="task-c1"), 4))
    assert told.take(Counted(call_id="c1", account="me", room=True)) == [Release("me", "c1")]
    assert told.take(Counted(call_id="c1", account="me", room=False)) == []
