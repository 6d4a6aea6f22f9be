"""The process of the knowledge service, killed while documents go into a graph."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import Asks, Ingest, ListGraphs, Question, Replay, Search, asking

pytestmark = pytest.mark.timeout(120)
KILLS = 4
AT_ONCE = 6


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    connection = await connect_nats(nats_url, "asks", pending=1 << 20, timeout_s=5)
    yield connection
    await connection.close()


@contextmanager
def process(nats_url: str, redis_url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service as a process of its own."""
    env = os.environ | {"VOXBRIDGE_NATS_URL": nats_url, "VOXBRIDGE_REDIS_URL": redis_url, "VOXBRIDGE_KNOWLEDGE_DIR": str(folder)}
    command = [sys.executable, "-m", "voxbridge.services.knowledge"]
    started = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children
    try:
        yield started
    finally:
        started.kill()
        started.wait()


async def answers(asks: Asks) -> bool:
    """Tell whether the service answers."""
    try:
        await asks(ListGraphs(account="local"))
    except VoxbridgeError as error:
        if error.code != Code.UNAVAILABLE:
            raise
        return False
    return True


async def put(asks: Asks, number: int) -> bool:
    """Put a document into the graph; tell whether that was answered."""
    text = f"# Part {number}\nHere number{number} stands. " + "The rest of it is long. " * 200
    try:
        await asks(Ingest(account="local", graph="g", source=f"d{number}", title=f"d{number}", text=text, at=1))
    except VoxbridgeError as error:
        if error.code != Code.UNAVAILABLE:
            raise
        return False
    return True


async def test_what_was_answered_is_there_and_what_was_not_is_taken_once(
    nats_url: str, redis_url: str, nc: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, answered, number = asking(nc), set[int](), 0
    for kill in range(KILLS):
        with monkeypatch.context() as impatient, process(nats_url, redis_url, tmp_path) as running:
            impatient.setattr(Question, "answer_s", 2.0)
            await eventually(lambda: answers(asks))
            some = [asyncio.create_task(put(asks, number + each)) for each in range(AT_ONCE)]
            await asyncio.wait(some[kill : kill + 1])  # it dies with the others open
            os.kill(running.pid, signal.SIGKILL)
            for each, took in enumerate(await asyncio.gather(*some)):
                answered |= {number + each} if took else set()
        number += AT_ONCE
    with process(nats_url, redis_url, tmp_path):
        await eventually(lambda: answers(asks))
        for each in sorted(answered):
            found = await asks(Search(account="local", query=f"number{each}"))
            assert [one.source for one in found.passages] == [f"d{each}"]
        assert all([await put(asks, each) for each in range(number)])
        (graph,) = (await asks(ListGraphs(account="local"))).graphs
        assert graph.documents == number
        assert (await asks(Replay(account="local"))).differences == ()
