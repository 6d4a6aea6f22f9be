from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import nats
import pytest

from tests.eventually import BOUND_S, eventually
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer


async def _until(ask: Callable[[], bool]) -> None:
    await eventually(ask)


async def test_the_admin_makes_again_what_a_restarted_server_forgot_until_it_is_stopped(
    own_nats: Callable[[], NatsServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, ready = own_nats(), tmp_path / "ready"
    for name, value in Config(nats_url=server.url).as_env().items():
        monkeypatch.setenv(name, value)
    command = ("-m", "voxbridge", "admin", "streams", "--keep", "--ready", str(ready))
    admin = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _until(ready.exists)
        server.kill()
        server.start()
        connection = await nats.connect(server.url)
        js = connection.jetstream()

        async def holds() -> bool:
            return subjects.REPLY_STREAM in {str(stream.config.name) for stream in await js.streams_info()}

        await eventually(holds)
        assert {consumer.name for consumer in await js.consumers_info(subjects.EVENT_STREAM)} == {"voice", "tools", "awareness"}
        await connection.close()
        admin.send_signal(signal.SIGTERM)
        async with asyncio.timeout(BOUND_S):
            assert await admin.wait() == 0
        assert not ready.exists(), "what does not run is not ready"
    finally:
        if admin.returncode is None:
            admin.kill()
            await admin.wait()
