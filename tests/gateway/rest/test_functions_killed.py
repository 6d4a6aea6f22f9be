"""Functions over REST whose gateway or executor is killed as each event of the call appears in the log: one effect, one outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx
import nats
import pytest
from nats.aio.msg import Msg

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Address, Running, Serve
from tests.gateway.processes import Processes
from tests.gateway.rest.test_functions import LOCAL, PACKS, call, ready
from tests.tools.conftest import Executors
from tests.tools.test_service import process, release
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed, ToolInterrupted
from voxbridge.shared.log.reader import type_of

ANSWERED = {"name": "change", "result": {"success": True, "spoken": "Changed."}}


@pytest.fixture
def config(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@asynccontextmanager
async def killed_at(url: str, event_type: str, nth: int, kill: Callable[[], None]) -> AsyncIterator[asyncio.Event]:
    """Kill as soon as the log has the `nth` event of a type; the event is set when that happened."""
    connection = await nats.connect(url)
    seen, done = 0, asyncio.Event()

    async def hear(message: Msg) -> None:
        nonlocal seen
        seen += type_of(message) == event_type
        if seen == nth and not done.is_set():
            kill()
            done.set()

    await connection.subscribe(subjects.live_subject(LOCAL), cb=hear)
    await connection.flush()
    yield done
    await connection.close()


def effects(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize(
    ("event_type", "nth"), [("tool.requested", 1), ("tools.journal", 1), ("tool.started", 1), ("tools.journal", 2), ("tool.completed", 1)]
)
async def test_a_gateway_killed_at_each_event_leaves_one_effect_that_is_told_whoever_asks(
    config: Config, tmp_path: Path, event_type: str, nth: int
) -> None:
    file = tmp_path / "runs"
    release(file)
    async with Executors(config).running(PACKS), Processes(tmp_path, config.nats_url, config.redis_url) as doors:
        doomed, other = await doors.gateway(), await doors.gateway()
        async with killed_at(config.nats_url, event_type, nth, doomed.kill) as died:
            with suppress(httpx.TransportError):
                await call(doomed, "change", key="k", file=str(file))
            await asyncio.wait_for(died.wait(), BOUND_S)
        answers = await asyncio.gather(*(call(other, "change", key="k", file=str(file)) for _ in range(5)))
    assert [one.json() for one in answers] == [ANSWERED] * 5
    assert effects(file) == 1


async def test_a_gateway_killed_before_its_append_leaves_nothing_and_the_next_one_asks_once(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    release(file)
    async with Executors(config).running(PACKS), Processes(tmp_path, config.nats_url, config.redis_url) as doors:
        doomed, other = await doors.gateway(), await doors.gateway()
        doomed.kill()
        with pytest.raises(httpx.TransportError):
            await call(doomed, "change", key="k", file=str(file))
        assert (await call(other, "change", key="k", file=str(file))).json() == ANSWERED
    assert effects(file) == 1


async def asked_again(door: Address, file: Path) -> httpx.Response:
    return await call(door, "change", key="k", file=str(file))


@pytest.mark.parametrize(
    ("event_type", "nth"), [("tool.requested", 1), ("tools.journal", 1), ("tool.started", 1), ("tools.journal", 2), ("tool.completed", 1)]
)
@pytest.mark.parametrize("beside", [False, True])
async def test_an_executor_killed_at_each_event_leaves_at_most_one_effect_and_never_a_false_word(
    running: Running, config: Config, tmp_path: Path, event_type: str, nth: int, beside: bool
) -> None:
    """`beside`: another executor runs beside the killed one, otherwise it starts afterwards."""
    file, log = tmp_path / "runs", running.gateway.log
    release(file)
    async with AsyncExitStack() as others, process(config) as doomed:
        await eventually(lambda: ready(running))
        if beside:
            await others.enter_async_context(Executors(config).running(PACKS))
        async with killed_at(config.nats_url, event_type, nth, doomed.kill) as died:
            asked = asyncio.create_task(asked_again(running, file))
            await asyncio.wait_for(died.wait(), BOUND_S)
        if not beside:
            await others.enter_async_context(Executors(config).running(PACKS))
        first = await asked
        again = await asyncio.gather(*(asked_again(running, file) for _ in range(3)))
    assert {one.text for one in again} == {first.text}
    if first.status_code == 200:
        assert (first.json(), effects(file)) == (ANSWERED, 1)
    else:
        assert (first.status_code, first.json()["code"]) == (502, "INTERRUPTED")
        assert effects(file) <= 1
    ends = [
        one.event
        async for one in log.read_all(LOCAL, writer="tools")
        if isinstance(one.event, ToolCompleted | ToolFailed | ToolInterrupted)
    ]
    assert len([one for one in ends if one.name == "change"]) == 1


async def test_with_two_executors_one_is_killed_at_each_start_and_the_other_goes_on(serve: Serve, config: Config, tmp_path: Path) -> None:
    door = await serve(config.nats_url, config.redis_url)
    async with Executors(config).running(PACKS), process(config) as doomed:
        await eventually(lambda: ready(door))
        files = [tmp_path / f"runs-{number}" for number in range(20)]
        for file in files:
            release(file)
        async with killed_at(config.nats_url, "tool.started", 6, doomed.kill):
            answers = await asyncio.gather(*(call(door, "change", key=f"k{n}", file=str(file)) for n, file in enumerate(files)))
    for answer, file in zip(answers, files, strict=True):
        if answer.status_code == 200:
            assert (answer.json(), effects(file)) == (ANSWERED, 1)
        else:
            assert (answer.json()["code"], effects(file) <= 1) == ("INTERRUPTED", True)
    assert sum(answer.status_code == 200 for answer in answers) >= 8
