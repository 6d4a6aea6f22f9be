"""Macros, projects and standing approvals outlive retention, processes and Valkey; a run that waits outlives its process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.test_macros import PACKS as MACROS
from tests.tools.test_macros import call, click, process, release, save
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ApprovalClicked, RunAnswerReceived
from voxbridge.shared.events.tools import ApprovalRequested, RunWaiting, TaskCompleted, ToolCompleted
from voxbridge.shared.log.reader import Log

PACKS = f"{MACROS},voxbridge.services.tools.packs.projects.functions,voxbridge.services.tools.packs.catalogue.functions"
AGED_S = 1.0


async def age_out(log: Log, sid: str) -> None:
    """Let the retention of the sessions' log pass, and set it back."""
    stream = (await log.js.stream_info(subjects.EVENT_STREAM)).config
    await log.js.update_stream(stream.evolve(max_age=AGED_S, duplicate_window=AGED_S))

    async def gone() -> bool:
        return not await log.read(sid)

    await eventually(gone)
    await log.js.update_stream(stream)


async def test_macros_projects_and_standing_approvals_outlive_retention_and_valkey(
    executors: Executors, config: Config, callers: Callable[[], Awaitable[Caller]], log: Log, tmp_path: Any
) -> None:
    first, files = await callers(), [tmp_path / "one", tmp_path / "two"]
    release(*files)
    async with executors.running(PACKS):
        await save(first, "night", [{"call": "echo", "arguments": {"text": "sleep well"}}], trigger="good night")
        await call(first, "create_project", "project", name="Garden")
        await first.next(ToolCompleted, "project")
        await call(first, "destroy", "destroy", file=str(files[0]))
        asked, _ = await first.next(ApprovalRequested, "destroy")
        await click(first, ApprovalClicked(approval_id=asked.approval_id, answer="approved", scope="function"))
        await first.next(TaskCompleted, "destroy")
    await age_out(log, first.sid)
    async with Redis.from_url(config.redis_url) as redis:
        await redis.flushall()
    second = await callers()
    async with executors.running(PACKS):
        for function in ("list_macros", "list_projects", "list_approvals"):
            await call(second, function, function)
        assert [one["name"] for one in (await second.next(ToolCompleted, "list_macros"))[0].result["macros"]] == ["night"]
        assert [one["name"] for one in (await second.next(ToolCompleted, "list_projects"))[0].result["projects"]] == ["Garden"]
        assert "destroy" in str((await second.next(ToolCompleted, "list_approvals"))[0].result)
        await call(second, "run_macro", "run", name="night")
        assert (await second.next(TaskCompleted, "run"))[0].result["text"] == "sleep well"
        await call(second, "destroy", "again", file=str(files[1]))
        await second.next(ToolCompleted, "again")
    assert not second.told(ApprovalRequested), "it is approved for good"
    assert files[1].read_text()


async def test_a_flush_of_valkey_between_two_steps_costs_a_run_nothing(
    executors: Executors, config: Config, caller: Caller, tmp_path: Any
) -> None:
    file = tmp_path / "held"
    async with executors.running(PACKS), Redis.from_url(config.redis_url) as redis:
        await save(caller, "two", [{"call": "change", "arguments": {"file": str(file)}}, {"call": "echo", "arguments": {"text": "done"}}])
        await call(caller, "run_macro", "run", name="two")
        await eventually(file.exists)
        await redis.flushall()
        release(file)
        assert (await caller.next(TaskCompleted, "run"))[0].result["text"] == "done"


async def test_a_run_that_asks_is_answered_after_its_process_was_killed(executors: Executors, config: Config, caller: Caller) -> None:
    steps = [{"id": "where", "ask": "Which city?"}, {"call": "echo", "arguments": {"text": "${steps.where.result.text}"}}]
    async with process(replace(config)) as killed:
        await save(caller, "trip", steps)
        await call(caller, "run_macro", "run", name="trip")
        await eventually(lambda: bool(caller.told(RunWaiting)))
        killed.kill()
        await killed.wait()
    await click(caller, RunAnswerReceived(run_id="run", text="Lisbon", step="where"))
    async with executors.running(MACROS):
        assert (await caller.next(TaskCompleted, "run"))[0].result["text"] == "Lisbon"
    assert len(caller.told(RunWaiting)) == 1, "it is not asked again"
    assert refold([event async for event in caller.log.read_all(caller.sid)]).missing == ()
