"""kill -9 of executors before and after every append and effect of a call, a task and a run: each effect happens once at most, and what was
told of it is true and told once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from tests.faults import once, successors
from tests.faults.once import KINDS, Case, Stage
from tests.tools.test_service import acknowledged
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log

FAULTS = ("its executor", "another executor", "both", "barge-in", "barge-in and its executor", "repetition", "repetition and its executor")


@pytest.fixture
def here(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@pytest.fixture
async def connection(here: Config) -> AsyncIterator[Client]:
    client = await nats.connect(here.nats_url)
    yield client
    await client.close()


@pytest.fixture
async def log(connection: Client) -> Log:
    log = Log(connection)
    await log.ensure_streams(retention_days=1)
    return log


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_effect_is_once_and_each_end_is_told_once_and_is_true(
    fault: str, here: Config, log: Log, connection: Client, tmp_path: Path
) -> None:
    places = await once.places_of(log, here, tmp_path / "free")
    assert len(places) > 10 * len(KINDS)
    async with AsyncExitStack() as open_things:
        stage = await open_things.enter_async_context(Stage(log, tmp_path / "held"))
        own = await open_things.enter_async_context(once.executor(here))
        cases = await stage.begin(own.wire, places)
        assert sum(not case.is_over() for case in cases) > 0.9 * len(cases)
        if fault.startswith("barge-in"):
            for case in cases:
                await case.caller.cancel()
        elif fault.startswith("repetition"):
            for case in cases:
                await case.call("c2")
        if fault != "both" and fault not in ("barge-in", "repetition"):
            other = await open_things.enter_async_context(once.executor(here))
        if fault == "another executor":
            await other.kill()
        elif fault not in ("barge-in", "repetition"):
            await own.kill()
            await once.note_kept(log, cases)
        if fault == "both":
            await open_things.enter_async_context(once.executor(here))
        for case in cases:
            case.release()
            own.wire.release(case.caller.sid)
        await stage.until(cases, Case.is_over)
        await acknowledged(connection)
    for case in cases:
        await once.check(log, case, once.allowed(case, fault))


async def test_a_successor_that_dies_at_its_own_appends_leaves_each_effect_once(
    here: Config, log: Log, connection: Client, tmp_path: Path
) -> None:
    chosen = successors.some(await once.places_of(log, here, tmp_path / "free"), 96, appends=4)
    assert {deaths.kind for deaths in chosen} == set(KINDS)
    assert sum(await successors.die(here, connection, tmp_path / "held", chosen)) > len(chosen) // 2
