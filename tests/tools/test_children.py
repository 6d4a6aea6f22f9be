"""Isolated functions in real child processes: limits, ends, and the number of processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.tools.test_service import lines
from voxbridge.services.tools.isolation.children import CHILDREN_LIMIT, WAITING_LIMIT, Children
from voxbridge.services.tools.registry import Tool, load
from voxbridge.shared.errors import Code, VoxbridgeError


@pytest.fixture
def tools() -> dict[str, Tool]:
    return dict(load(["tests.tools.pack"], timeout_s=20))


@pytest.fixture
async def children(tools: dict[str, Tool]) -> AsyncIterator[Children]:
    made = Children(tools)
    yield made
    pids = made.pids
    await made.stop()
    assert all(is_gone(pid) for pid in pids)


def is_gone(pid: int) -> bool:
    """Return whether no process runs under this id; a zombie counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def gone(pid: int) -> None:
    await eventually(lambda: is_gone(pid))


async def refusal(children: Children, tool: Tool, **arguments: object) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as caught:
        await children.run(tool, arguments)
    return caught.value


async def test_a_call_runs_in_another_process_which_is_kept_for_the_next(children: Children, tools: dict[str, Tool]) -> None:
    first = await children.run(tools["double"], {"number": "4"})
    second = await children.run(tools["double"], {"number": 5})
    assert (first["doubled"], second["doubled"]) == (8, 10)
    assert first["pid"] == second["pid"] != os.getpid()
    assert len(children) == 1


async def test_a_cancelled_call_has_its_process_killed_and_the_next_call_another(
    children: Children, tools: dict[str, Tool], tmp_path: Path
) -> None:
    running = asyncio.create_task(children.run(tools["spin"], {"file": str(tmp_path / "ran")}))
    (pid,) = await lines(tmp_path / "ran", 1)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await gone(int(pid))
    assert (await children.run(tools["double"], {"number": 1}))["pid"] != int(pid)


async def test_more_memory_than_declared_is_refused_and_the_process_goes_on(children: Children, tools: dict[str, Tool]) -> None:
    assert await children.run(tools["hoard"], {"mebibytes": 16}) == {"bytes": 16 * 1024 * 1024}
    error = await refusal(children, tools["hoard"], mebibytes=4_000)
    assert (error.code, "32 MiB" in error.message) == (Code.TOO_LARGE, True)
    assert await children.run(tools["hoard"], {"mebibytes": 1}) == {"bytes": 1024 * 1024}
    assert len(children) == 1


async def test_more_processor_time_than_declared_ends_the_process(children: Children, tools: dict[str, Tool]) -> None:
    error = await refusal(children, tools["burn"])
    assert (error.code, error.limit) == (Code.TIMED_OUT, 1)


async def test_a_killed_child_fails_its_call_and_no_other(children: Children, tools: dict[str, Tool], tmp_path: Path) -> None:
    running = asyncio.create_task(children.run(tools["spin"], {"file": str(tmp_path / "ran")}))
    (pid,) = await lines(tmp_path / "ran", 1)
    os.kill(int(pid), signal.SIGKILL)
    with pytest.raises(VoxbridgeError, match="SIGKILL") as caught:
        await running
    assert caught.value.code == Code.INTERRUPTED
    assert (await children.run(tools["double"], {"number": 2}))["doubled"] == 4


async def test_a_child_that_was_killed_while_it_rested_costs_nobody_a_call(children: Children, tools: dict[str, Tool]) -> None:
    resting = (await children.run(tools["double"], {"number": 1}))["pid"]
    os.kill(resting, signal.SIGKILL)
    with suppress(ChildProcessError):  # a thread of asyncio's may have collected it
        os.waitid(os.P_PID, resting, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the event loop must stand still, unaware of the end
    answer = await children.run(tools["double"], {"number": 3})
    assert (answer["doubled"], answer["pid"] == resting) == (6, False)


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("raise", Code.INTERNAL, "RuntimeError"),
        ("exit", Code.INTERNAL, "SystemExit"),
        ("vanish", Code.INTERRUPTED, "status 3"),
        ("large", Code.TOO_LARGE, "65536"),
    ],
)
async def test_what_a_function_does_wrong_is_a_failure_of_its_call(
    children: Children, tools: dict[str, Tool], how: str, code: Code, says: str
) -> None:
    error = await refusal(children, tools["misbehaves"], how=how)
    assert (error.code, says in error.message, "secret" in error.message) == (code, True, False)
    assert (await children.run(tools["double"], {"number": 2}))["doubled"] == 4


async def test_a_child_has_no_settings_of_the_executor_and_may_print(
    children: Children, tools: dict[str, Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", "nats://secret@nowhere")
    assert await children.run(tools["misbehaves"], {"how": "print"}) == {"environment": []}


async def test_what_a_call_leaves_running_ends_with_its_process(children: Children, tools: dict[str, Tool], tmp_path: Path) -> None:
    file = tmp_path / "left"
    pid = (await children.run(tools["leaves"], {"file": str(file)}))["pid"]
    await gone(pid)
    await gone(int(file.read_text()))
    assert (await children.run(tools["double"], {"number": 1}))["pid"] != pid


async def test_there_are_never_more_children_than_the_limit_and_calls_wait_in_turn(children: Children, tools: dict[str, Tool]) -> None:
    answers = await asyncio.gather(*(children.run(tools["double"], {"number": number}) for number in range(3 * CHILDREN_LIMIT)))
    assert [answer["doubled"] for answer in answers] == [2 * number for number in range(3 * CHILDREN_LIMIT)]
    assert len({answer["pid"] for answer in answers}) <= CHILDREN_LIMIT
    assert len(children) <= CHILDREN_LIMIT


async def test_more_calls_than_may_wait_are_refused(children: Children, tools: dict[str, Tool], tmp_path: Path) -> None:
    running = [asyncio.create_task(children.run(tools["spin"], {"file": str(tmp_path / "ran")})) for _ in range(CHILDREN_LIMIT)]
    await lines(tmp_path / "ran", CHILDREN_LIMIT)
    waiting = [asyncio.create_task(children.run(tools["double"], {"number": 1})) for _ in range(WAITING_LIMIT)]
    await asyncio.sleep(0)
    error = await refusal(children, tools["double"], number=1)
    assert (error.code, error.limit) == (Code.OVERLOADED, WAITING_LIMIT)
    for task in (*running, *waiting):
        task.cancel()
    await asyncio.gather(*running, *waiting, return_exceptions=True)


async def test_a_child_can_be_ready_before_the_first_call(children: Children, tools: dict[str, Tool]) -> None:
    await children.warm_up()
    (pid,) = children.pids
    assert (await children.run(tools["double"], {"number": 1}))["pid"] == pid


async def test_after_the_close_nothing_runs_and_nothing_is_started(tools: dict[str, Tool]) -> None:
    children = Children(tools)
    await children.warm_up()
    (pid,) = children.pids
    await children.stop()
    assert is_gone(pid)
    assert (await refusal(children, tools["double"], number=1)).code == Code.UNAVAILABLE
    assert len(children) == 0
