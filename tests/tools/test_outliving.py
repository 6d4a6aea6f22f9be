"""Tasks that outlive their session, on real servers: what became of them reaches one later session of the account, also over kills."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.replaced import replaced
from tests.tools.test_service import MakeCaller, acknowledged
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import TaskCompleted, TaskStarted, TasksUnheard
from voxbridge.shared.events.voice import SessionEnded, TasksWanted
from voxbridge.shared.log.reader import Log

PACKS = "tests.tools.dying"
TASK = "task-c1"


async def unheard(log: Log, account: str = "local") -> list[list[str]]:
    """Return each list of unheard tasks that the log of an account has."""
    found = log.read_all(subjects.account_log(account), writer="tools", visibility="i", topic="tasks.unheard")
    return [[one.task_id for one in recorded.event.tasks] async for recorded in found if isinstance(recorded.event, TasksUnheard)]


async def until_unheard(log: Log, *tasks: str, account: str = "local") -> None:
    async def is_so() -> bool:
        return (await unheard(log, account))[-1:] == [list(tasks)]

    await eventually(is_so)


async def left(caller: Caller, *told: str) -> None:
    """End a session that told these ends."""
    await caller.say(SessionEnded(reason="client", told=told))


async def outlived(caller: Caller, ms: int = 1) -> None:
    """Set an alarm, and end its session."""
    await caller.call("later", ms=ms)
    await caller.next(TaskStarted)
    await left(caller)


def recalled(*callers: Caller) -> list[str]:
    """Return the sessions that were given the end."""
    return [one.sid for one in callers for event in one.told(TaskCompleted) if isinstance(event, TaskCompleted) and event.ended_ts]


async def test_the_end_of_a_task_is_given_to_one_later_session(
    executors: Executors, callers: MakeCaller, connection: Client, log: Log
) -> None:
    first, *others = [await callers() for _ in range(4)]
    async with executors.running(PACKS), executors.running(PACKS):
        await outlived(first)
        await until_unheard(log, TASK)
        await asyncio.gather(*(one.say(TasksWanted(task_ids=(TASK,), account="local")) for one in others))
        await until_unheard(log)
        await acknowledged(connection)
        await eventually(lambda: recalled(*others))
    assert len(recalled(*others)) == 1
    done, _ = await first.next(TaskCompleted)
    assert (done.announce, done.ended_ts) == ("It is time.", None)


async def test_what_the_second_session_does_not_tell_is_given_to_the_third(
    executors: Executors, callers: MakeCaller, connection: Client, log: Log
) -> None:
    first, second, third = [await callers() for _ in range(3)]
    async with executors.running(PACKS):
        await outlived(first)
        await until_unheard(log, TASK)
        await second.say(TasksWanted(task_ids=(TASK,), account="local"))
        await second.next(TaskCompleted)
        await left(second)
        await until_unheard(log, TASK)
        await third.say(TasksWanted(task_ids=(TASK,), account="local"))
        await third.next(TaskCompleted)
        await left(third, TASK)
        await acknowledged(connection)
    assert await unheard(log) == [[TASK], [], [TASK], []]


async def test_an_account_is_told_nothing_of_what_a_session_told_or_of_another_account(
    executors: Executors, caller: Caller, callers: MakeCaller, connection: Client, log: Log
) -> None:
    stranger = await callers()
    async with executors.running(PACKS):
        await caller.call("later", ms=1)
        await caller.next(TaskCompleted)
        await left(caller, TASK)
        await stranger.call("later", ms=1, account="other")
        await stranger.next(TaskStarted)
        await left(stranger)
        await until_unheard(log, TASK, account="other")
        await caller.say(TasksWanted(task_ids=(TASK,), account="local"))
        await acknowledged(connection)
    assert await unheard(log) == []
    assert recalled(caller) == []


@pytest.mark.parametrize("after", range(1, 11))
async def test_an_executor_killed_at_any_of_its_writes_has_the_end_told_once(
    config: Config, callers: MakeCaller, connection: Client, log: Log, after: int
) -> None:
    first, second = await callers(), await callers()
    async with replaced(config, PACKS, after) as first_died:
        await outlived(first)
        await until_unheard(log, TASK)
        await second.say(TasksWanted(task_ids=(TASK,), account="local"))
        await second.next(TaskCompleted)
        await acknowledged(connection)
        died = first_died()
    assert died or after > 8, "the process was killed in the middle"
    assert recalled(second) == [second.sid]
    assert len(first.told(TaskCompleted)) == 1
    assert await unheard(log) == [[TASK], []]
    for sid in (first.sid, second.sid, "@local"):
        assert refold([event async for event in log.read_all(sid)]).missing == ()
