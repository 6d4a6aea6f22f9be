"""Servers that misbehave: each is contained, and neither the executor nor another server's calls wait for it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.eventually import eventually
from tests.tools.mcp.conftest import Running, hostile, modern, serving
from voxbridge.services.tools.mcp.client import CALLS_LIMIT
from voxbridge.shared.errors import Code, VoxbridgeError

pytestmark = pytest.mark.timeout(90)
STALL_S: Final = 0.5
"""Seconds that this process's event loop may be held up beyond what the machine holds up a thread that does nothing."""


@asynccontextmanager
async def unharmed(running: Running, name: str = "good") -> AsyncIterator[None]:
    """Call another server all the while, and watch that the event loop of this process goes on."""
    worst = idle = 0.0
    answers = 0
    over = threading.Event()

    async def watch() -> None:
        nonlocal worst
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.01)
            worst = max(worst, time.monotonic() - begun - 0.01)

    def compare() -> None:
        nonlocal idle
        while not over.is_set():
            begun = time.monotonic()
            over.wait(0.01)
            idle = max(idle, time.monotonic() - begun - 0.01)

    async def call() -> None:
        nonlocal answers
        while True:
            assert (await running.call(name, "add", a=answers, b=1))["structured"] == {"sum": answers + 1}
            answers += 1

    await running.ready(name)
    comparing = asyncio.create_task(asyncio.to_thread(compare))
    tasks = [asyncio.create_task(watch()), asyncio.create_task(call())]
    try:
        yield
        await eventually(lambda: answers > 3)
        assert not tasks[1].done(), tasks[1]
        assert worst < STALL_S + idle
    finally:
        over.set()
        await comparing
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_server_that_never_starts_delays_no_other_and_is_said() -> None:
    async with serving({"mute": hostile("mute", start_s=0.5), "good": modern("stdio")}) as running, unharmed(running):
        await eventually(lambda: "did not answer within 0.5 s" in running.view("mute").why)


async def test_a_call_that_hangs_ends_with_its_caller_and_not_the_connection() -> None:
    async with serving({"bad": hostile("usual"), "good": modern("stdio")}) as running, unharmed(running):
        await running.ready("bad")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.call("bad", "hang"), 0.3)
        assert (await running.call("bad", "work"))["text"] == "work done"


@pytest.mark.parametrize("tool", ["cut", "flood"])
async def test_an_answer_that_is_too_long_fails_its_own_call(tool: str) -> None:
    async with serving({"bad": hostile("usual"), "good": modern("stdio")}) as running, unharmed(running):
        await running.ready("bad")
        with pytest.raises(VoxbridgeError) as refused:
            await running.call("bad", tool)
        assert refused.value.code == Code.TOO_LARGE
        assert (await running.call("bad", "work"))["text"] == "work done"


async def test_ten_thousand_tools_are_refused_in_a_sentence_and_some_can_be_chosen() -> None:
    servers = {"many": hostile("many"), "some": hostile("many", only=["tool_1?"]), "good": modern("stdio")}
    async with serving(servers) as running, unharmed(running):
        await eventually(lambda: running.view("many").state == "down")
        assert not any(name.startswith("many__") for name in running.catalogue)
        assert "more than 256 tools" in running.view("many").why or "1048576" in running.view("many").why
        await running.ready("some")
        assert len(running.catalogue) == 10 + running.view("good").tools


async def test_a_server_that_dies_in_a_call_interrupts_it_and_comes_back() -> None:
    async with serving({"bad": hostile("usual"), "good": modern("stdio")}) as running, unharmed(running):
        await running.ready("bad")
        waiting = asyncio.create_task(running.call("bad", "hang"))
        await running.call("bad", "work")  # answered behind it, so that one is with the server
        with pytest.raises(VoxbridgeError) as died:
            await running.call("bad", "die")
        assert died.value.code == Code.INTERRUPTED
        with pytest.raises(VoxbridgeError) as lost:
            await waiting
        assert lost.value.code == Code.INTERRUPTED
        await eventually(lambda: running.view("bad").state == "down")
        assert "status 3" in running.view("bad").why
        assert "bad__work" in running.catalogue
        await running.ready("bad")
        assert (await running.call("bad", "work"))["text"] == "work done"


async def test_a_host_that_is_killed_interrupts_its_calls_and_leaves_no_server(tmp_path: Path) -> None:
    async with serving({"bad": hostile("usual", tmp_path / "pids"), "good": modern("stdio")}) as running:
        await running.ready("bad", "good")
        waiting = asyncio.create_task(running.call("bad", "hang"))
        await running.call("good", "add", a=1, b=2)
        first = running.servers.pid
        groups = list(running.servers._groups.values())
        os.kill(first, signal.SIGKILL)
        with pytest.raises(VoxbridgeError) as lost:
            await waiting
        assert lost.value.code == Code.INTERRUPTED
        with pytest.raises(VoxbridgeError) as away:
            await running.call("good", "add", a=1, b=2)
        assert away.value.code == Code.UNAVAILABLE
        await eventually(lambda: running.servers.pid not in (0, first))
        await running.ready("good")
        assert (await running.call("good", "add", a=1, b=2))["structured"] == {"sum": 3}
        await eventually(lambda: not any(alive(group) for group in groups))


@pytest.mark.parametrize(("tool", "limit"), [("grow", {"memory_mb": 256}), ("fork", {"processes": 4})])
async def test_a_server_with_too_much_memory_or_too_many_processes_is_ended(tmp_path: Path, tool: str, limit: dict[str, int]) -> None:
    file = tmp_path / "pids"
    async with serving({"bad": hostile("usual", file, **limit), "good": modern("stdio")}) as running, unharmed(running):
        await running.ready("bad")
        with pytest.raises(VoxbridgeError) as died:
            await running.call("bad", tool)
        assert died.value.code == Code.INTERRUPTED
        await running.ready("bad")
        if tool == "fork":
            pids = [int(pid) for pid in file.read_text().split()]
            await eventually(lambda: not any(alive(pid) for pid in pids))


async def test_more_calls_than_a_server_may_have_are_refused() -> None:
    async with serving({"bad": hostile("usual")}) as running:
        await running.ready("bad")
        open_calls = [asyncio.create_task(running.call("bad", "hang")) for _ in range(CALLS_LIMIT)]
        await eventually(lambda: len(running.servers._calls) == CALLS_LIMIT)
        with pytest.raises(VoxbridgeError) as refused:
            await running.call("bad", "work")
        assert refused.value.code == Code.OVERLOADED
        for call in open_calls:
            call.cancel()
        await asyncio.gather(*open_calls, return_exceptions=True)
        assert (await running.call("bad", "work"))["text"] == "work done"


async def test_what_is_no_message_is_passed_over_and_unseen_characters_are_taken_out() -> None:
    async with serving({"bad": hostile("chatty")}) as running:
        await running.ready("bad")
        assert running.catalogue["bad__unseen"].description == "Read the time."
        assert (running.catalogue["bad__hinted"].effect, running.catalogue["bad__hinted"].approval) == ("write", "first")
        assert (running.catalogue["bad__harmful"].effect, running.catalogue["bad__harmful"].approval) == ("destructive", "always")


async def test_two_tools_of_one_name_are_both_refused() -> None:
    async with serving({"bad": hostile("twins")}) as running:
        await running.ready("bad")
        assert list(running.catalogue) == ["bad__two"]
        assert "ONE and one" in running.view("bad").refused[0]


def alive(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
