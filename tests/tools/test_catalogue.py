"""The functions about functions, and approval and repetition, on a real executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools.packs.catalogue.functions import OVERVIEW_SHOWN, list_tools
from voxbridge.services.tools.packs.catalogue.spoken import listed, match
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import ApprovalClicked, TaskCancelRequested
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    ApprovalRequested,
    ApprovalStanding,
    TaskCancelled,
    TaskCompleted,
    ToolCompleted,
    ToolFailed,
    ToolJoined,
)
from voxbridge.shared.events.voice import ApprovalAnswered
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

pytestmark = pytest.mark.timeout(60)
MakeCaller = Callable[[], Awaitable[Caller]]
PACKS = (
    "voxbridge.services.tools.packs.catalogue.functions,voxbridge.services.tools.packs.everyday.timer,"
    "voxbridge.services.tools.packs.everyday.calculator,tests.tools.pack"
)


class Listing:
    """A context that has nothing but these functions."""

    def __init__(self, tools: Sequence[Function]) -> None:
        self._tools = tools

    def catalogue(self) -> Sequence[Function]:
        return self._tools


async def test_the_tools_are_listed_by_category_and_never_all_read_aloud(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await caller.call("list_tools")
        overview, _ = await caller.next(ToolCompleted)
        assert overview.result["categories"]["everyday"] == 2
        assert overview.result["count"] == sum(overview.result["categories"].values())
        assert {"id": "set_timer", "name": "set timer", "category": "everyday"} in overview.result["tools"]
        assert len(overview.result["spoken"]) < 200
        await caller.call("list_tools", "c2", category="Every day")
        chosen, _ = await caller.next(ToolCompleted, "c2")
        assert [tool["id"] for tool in chosen.result["tools"]] == ["calculate", "set_timer"]
        await caller.call("list_tools", "c3", category="cooking")
        refused, _ = await caller.next(ToolFailed, "c3")
        assert refused.error.code == Code.NOT_FOUND
        assert "everyday" in refused.error.message


async def test_an_overview_of_many_tools_has_some_of_each_category() -> None:
    tools = [
        Function(name=f"{category}_{number}", description="", parameters={}, category=category)
        for category in "abc"
        for number in range(30)
    ]
    told = await list_tools(Listing(tools))  # type: ignore[arg-type]  # nothing else of a context is asked
    assert (len(told["tools"]), told["more"], told["count"]) == (OVERVIEW_SHOWN, 66, 90)
    assert Counter(one["category"] for one in told["tools"]) == {"a": 8, "b": 8, "c": 8}


@pytest.mark.parametrize("named", ["calculate", "Calculate", " CALCULATE "])
async def test_a_tool_that_is_run_by_name_answers_as_if_it_was_called(executors: Executors, caller: Caller, named: str) -> None:
    async with executors.running(PACKS):
        await caller.call("run_tool", tool_id=named, params={"expression": "6 * 7"})
        answer, _ = await caller.next(ToolCompleted)
        assert (answer.name, answer.result["value"]) == ("run_tool", 42)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ({"tool_id": "calculat", "params": {}}, Code.NOT_FOUND, "Did you mean calculate"),
        ({"tool_id": "nothing_like_it", "params": {}}, Code.NOT_FOUND, "list_tools says"),
        ({"tool_id": "calculate", "params": {}}, Code.INVALID_ARGUMENT, "expression"),
        ({"tool_id": "calculate", "params": {"expression": "3", "more": 1}}, Code.INVALID_ARGUMENT, "more"),
        ({"tool_id": "run_tool", "params": {"tool_id": "calculate", "params": {}}}, Code.INVALID_ARGUMENT, "not itself"),
        ({"tool_id": "calculate"}, Code.INVALID_ARGUMENT, "params"),
        ({"tool_id": "x" * 65, "params": {}}, Code.INVALID_ARGUMENT, "64"),
    ],
)
async def test_a_wrong_tool_or_a_wrong_argument_is_said(
    executors: Executors, caller: Caller, arguments: dict[str, Any], code: Code, told: str
) -> None:
    async with executors.running(PACKS):
        await caller.call("run_tool", **arguments)
        refused, _ = await caller.next(ToolFailed)
        assert refused.error.code == code
        assert told in refused.error.message


async def test_tasks_are_listed_and_cancelled_in_the_users_words(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await caller.call("list_tasks", "none")
        nothing, _ = await caller.next(ToolCompleted, "none")
        assert nothing.result == {"count": 0, "tasks": [], "spoken": "Nothing is under way."}
        for call_id, label in (("t1", "tea"), ("t2", "pasta")):
            await caller.call("set_timer", call_id, seconds=600, label=label)
            await caller.next(ToolCompleted, call_id)
        await caller.call("list_tasks", "l")
        open_tasks, _ = await caller.next(ToolCompleted, "l")
        assert [task["label"] for task in open_tasks.result["tasks"]] == ["tea", "pasta"]
        assert "the tea timer with 10 minutes left" in open_tasks.result["spoken"]
        await caller.call("cancel_task", "c1")
        which, _ = await caller.next(ToolFailed, "c1")
        assert "the tea timer and the pasta timer" in which.error.message
        await caller.call("cancel_task", "c2", task="pasta timer")
        cancelled, _ = await caller.next(TaskCancelled, "t2")
        assert cancelled.reason == "the user cancelled it"
        await caller.call("cancel_task", "c4", task="the rice timer")
        none, _ = await caller.next(ToolFailed, "c4")
        assert none.error.message == "Nothing like that is under way. There is the tea timer."
        await caller.call("cancel_task", "c3", task="task-t1")  # a model may have kept the id
        await caller.next(TaskCancelled, "t1")


async def test_all_timers_are_cancelled_and_nothing_else(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        for call_id, length in (("t1", 300), ("t2", 600)):
            await caller.call("set_timer", call_id, seconds=length)
            await caller.next(ToolCompleted, call_id)
        await caller.call("cancel_task", "c1", task="the five minute timer")
        one, _ = await caller.next(ToolCompleted, "c1")
        assert one.result == {"cancelled": 1, "task_id": "task-t1", "spoken": "I cancelled the 5 minute timer."}
        await caller.call("set_timer", "t3", seconds=300)
        await caller.next(ToolCompleted, "t3")
        await caller.call("cancel_task", "c2", task="all timers")
        every, _ = await caller.next(ToolCompleted, "c2")
        assert every.result == {
            "cancelled": 2,
            "task_ids": ["task-t2", "task-t3"],
            "spoken": "I cancelled the 10 minute timer and the 5 minute timer.",
        }


async def test_a_client_cancels_a_task(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await caller.call("set_timer", "t1", seconds=600)
        await caller.next(ToolCompleted, "t1")
        gateway = SessionWriter(caller.log, caller.sid, "gateway")
        await gateway.append(TaskCancelRequested(task_id="task-t1"), ts=1, cause=None)
        await caller.next(TaskCancelled, "t1")


@pytest.mark.parametrize("by", ["voice", "click"])
async def test_what_destroys_runs_after_a_yes_and_once(executors: Executors, caller: Caller, tmp_path: Path, by: str) -> None:
    file = tmp_path / "ran"
    Path(f"{file}.go").touch()  # noqa: ASYNC240
    async with executors.running(PACKS), executors.running(PACKS):
        await caller.call("destroy", file=str(file))
        asked, _ = await caller.next(ApprovalRequested)
        answer, _ = await caller.next(ToolCompleted)
        assert answer.result["status"] == "needs_approval"
        assert not file.exists()
        if by == "voice":
            await caller.say(ApprovalAnswered(approval_id=asked.approval_id, answer="approved", words="yes"))
        else:
            gateway = SessionWriter(caller.log, caller.sid, "gateway")
            for _ in range(2):
                await gateway.append(ApprovalClicked(approval_id=asked.approval_id, answer="approved"), ts=1, cause=None)
        ended, _ = await caller.next(ApprovalEnded)
        assert (ended.outcome, ended.by) == ("approved", by)
        await caller.next(TaskCompleted)
        assert len(file.read_text().splitlines()) == 1


async def test_an_approval_for_good_is_kept_by_the_account_listed_and_taken_back(
    executors: Executors, callers: MakeCaller, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "ran"
    Path(f"{file}.go").touch()  # noqa: ASYNC240
    first, second, third, other = [await callers() for _ in range(4)]
    async with executors.running(PACKS) as service:
        await first.call("destroy", file=str(file))
        asked, _ = await first.next(ApprovalRequested)
        gateway = SessionWriter(log, first.sid, "gateway")
        await gateway.append(ApprovalClicked(approval_id=asked.approval_id, answer="approved", scope="function"), ts=1, cause=None)
        await first.next(TaskCompleted)
        await eventually(lambda: not service.session("@local").busy)
    async with executors.running(PACKS):
        await second.call("list_approvals", "l")
        listed_, _ = await second.next(ToolCompleted, "l")
        assert listed_.result["approvals"] == [{"function": "destroy"}]
        await second.call("run_tool", "c2", tool_id="destroy", params={"file": str(file)})
        done, _ = await second.next(ToolCompleted, "c2")
        assert done.result["spoken"] == "Gone."
        await other.call("destroy", account="other", file=str(file))
        await other.next(ApprovalRequested)
        await second.call("revoke_approval", "r", approval="destroy")
        await second.next(ToolCompleted, "r")
        await second.call("revoke_approval", "r2", approval="the same again")
        nothing, _ = await second.next(ToolFailed, "r2")
        assert "Nothing is approved" in nothing.error.message
        await third.call("destroy", file=str(file))
        await third.next(ApprovalRequested)
    assert len(file.read_text().splitlines()) == 2


async def test_an_approval_for_these_arguments_covers_no_others(
    executors: Executors, callers: MakeCaller, log: Log, tmp_path: Path
) -> None:
    file, other = tmp_path / "ran", tmp_path / "other"
    for one in (file, other):
        Path(f"{one}.go").touch()  # noqa: ASYNC240
    first, second = await callers(), await callers()
    async with executors.running(PACKS) as service:
        await first.call("destroy", file=str(file))
        asked, _ = await first.next(ApprovalRequested)
        gateway = SessionWriter(log, first.sid, "gateway")
        await gateway.append(ApprovalClicked(approval_id=asked.approval_id, answer="approved", scope="arguments"), ts=1, cause=None)
        await first.next(TaskCompleted)
        await eventually(lambda: not service.session("@local").busy)
        await second.call("destroy", "c1", file=str(file))
        await second.next(ToolCompleted, "c1")
        await second.call("destroy", "c2", file=str(other))
        await second.next(ApprovalRequested, "c2")


async def test_a_function_that_changed_since_is_asked_about_again(
    executors: Executors, callers: MakeCaller, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "ran"
    Path(f"{file}.go").touch()  # noqa: ASYNC240
    writer = SessionWriter(log, "@local", "tools", stem="before")
    await writer.append(ApprovalStanding(name="destroy", definition="that of another time"), ts=1, cause=None)
    caller = await callers()
    async with executors.running(PACKS):
        await caller.call("destroy", file=str(file))
        await caller.next(ApprovalRequested)


async def test_a_write_under_a_second_id_runs_once_in_two_executors(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    file = tmp_path / "ran"
    async with executors.running(PACKS), executors.running(PACKS):
        await caller.call("change", "c1", file=str(file))
        await eventually(file.exists)
        await caller.call("change", "c2", file=str(file))
        joined, _ = await caller.next(ToolJoined, "c2")
        assert joined.first == "c1"
        Path(f"{file}.go").touch()  # noqa: ASYNC240
        first, _ = await caller.next(ToolCompleted, "c1")
        second, _ = await caller.next(ToolCompleted, "c2")
        assert second.result == {**first.result, "repeated": True}
        assert len(file.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("said", "found"),
    [("tea", "the tea timer"), ("the pasta timer", "the pasta timer"), ("timer", None), ("the paste timr", "the pasta timer"), ("", None)],
)
def test_names_are_matched_as_people_say_them(said: str, found: str | None) -> None:
    assert match(said, ["the tea timer", "the pasta timer"]) == found


def test_lists_are_said_in_words() -> None:
    assert listed([]) == "nothing"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"
