"""The process of the awareness service, killed at each event that it writes: nothing is lost, and nothing is taken twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.awareness.serving import error, recorder, visit
from tests.eventually import eventually
from voxbridge.shared.awareness_client import AskRebuild, AskView, Known, ask
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.events.tools import ToolFailed
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

pytestmark = pytest.mark.timeout(240)
EVENTS = 9
"""Kills: at the first, the second … event that the service writes in a run of reports, ends of calls and a switch."""


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    connection = await connect_nats(nats_url, "asks", pending=1 << 20, timeout_s=5)
    yield connection
    await connection.close()


@contextmanager
def process(nats_url: str, redis_url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service as a process of its own."""
    env = os.environ | {"VOXBRIDGE_NATS_URL": nats_url, "VOXBRIDGE_REDIS_URL": redis_url}
    command = [sys.executable, "-m", "voxbridge.services.awareness"]
    started = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children
    try:
        yield started
    finally:
        started.kill()
        started.wait()


async def known(nc: Client, account: str) -> Known | None:
    with suppress(VoxbridgeError):
        return await ask(nc, AskView(account=account), within_s=5)
    return None


async def run(log: Log, account: str, number: int) -> str:
    """Report pages and errors, have a function fail, and switch the pages off; return the session."""
    writes = recorder(log)
    sid, clock = new_session_id(), SystemClock()
    for page in range(3):
        await writes.report(account, visit(f"/planted-{number}-{page}"), client="c")
    await writes.report(account, error("broken"), client="c")
    gateway, tools = SessionWriter(log, sid, "gateway", stem="t", fenced=False), SessionWriter(log, sid, "tools")
    await gateway.append(SessionRequested(mode="local", account=account), ts=clock.now_us(), cause=None)
    failed = ToolFailed(call_id="c1", name="scan", error=Failure(code="INTERNAL", message="It broke."), ms=3)
    await tools.append(failed, ts=clock.now_us(), cause=None)
    await writes.report(account, error("broken"), client="c")
    await writes.switch(account, "pages", on=False)
    return sid


async def test_killed_at_each_event_it_loses_nothing_and_takes_nothing_twice(nats_url: str, redis_url: str, nc: Client) -> None:
    log, killed = Log(nc), 0
    for number in range(EVENTS):
        account = f"killed-{number}"
        log_id = subjects.awareness_log(account)
        with process(nats_url, redis_url) as running:
            assert await eventually(lambda: known(nc, "local"))
            written = 0

            async def count(_: Msg, of: subprocess.Popen[bytes] = running, at: int = number) -> None:
                nonlocal written
                written += 1
                if written == at + 1:
                    os.kill(of.pid, signal.SIGKILL)

            follows = await nc.subscribe(subjects.live_subject(log_id, "awareness"), cb=count)
            sid = await run(log, account, number)
            await asyncio.to_thread(_ends_or_is_done, running)
            await follows.unsubscribe()
            killed += running.poll() == -signal.SIGKILL
        with process(nats_url, redis_url):

            async def all_is_there(account: str = account, sid: str = sid) -> bool:
                found = await known(nc, account)
                if found is None:
                    return False
                assert not found.view.pages, "the switch came last"
                errors = {(one.message, one.count, one.session) for one in found.view.errors}
                return errors == {("broken", 2, ""), ("It broke.", 1, sid)}

            await eventually(all_is_there)
            assert (await ask(nc, AskRebuild(account=account))).equal

            async def is_erased(number: int = number, log_id: str = log_id) -> bool:
                stored = [message.data async for page in log.pages(log_id) for message in page.messages]
                return not any(f"planted-{number}".encode() in data for data in stored)

            await eventually(is_erased)
    assert killed >= EVENTS // 2, "it wrote fewer events than that, and was not killed"


def _ends_or_is_done(running: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):  # it wrote fewer events than that: it took more of them together
        running.wait(8)
