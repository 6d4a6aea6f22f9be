"""`voxbridge erase @account` leaves nothing of what was known of its screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.awareness.serving import error, fact, recorder, serving, visit
from voxbridge.sessions.erase import erase
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import connected

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)


async def left(log: Log) -> list[bytes]:
    return [message.data async for page in log.pages(subjects.AWARENESS_OF_ALL) for message in page.messages]


async def report_all(log: Log) -> None:
    for event in (visit("/planted"), error("planted"), fact("k", "planted")):
        await recorder(log).report("ada", event, client="c")
    await recorder(log).switch("ada", "context", on=False)


@pytest.mark.parametrize("running", [True, False], ids=["beside the service", "without it"])
async def test_nothing_is_left_and_what_comes_later_is_known_again(config: Config, running: bool) -> None:
    async with connected(config, "admin", "admin-test", SystemClock()) as admin:
        if running:
            async with serving(config) as there:
                await report_all(there.log)
                assert (await there.known("ada")).view
                erased = await erase(admin.log, admin.redis, "@ada", by="a test", now=SystemClock().now_us())
                assert erased.events
                assert await left(there.log) == []
                assert not (await there.known("ada")).view
        else:
            await admin.log.ensure_streams(retention_days=1)
            await report_all(admin.log)
            await erase(admin.log, admin.redis, "@ada", by="a test", now=SystemClock().now_us())
            assert await left(admin.log) == []
    async with serving(config) as there:
        await recorder(there.log).report("ada", fact("k", "later"), client="c")
        known = await there.known("ada")
        assert [one.value for one in known.view.context] == ["later"]
        assert known.off == ()
