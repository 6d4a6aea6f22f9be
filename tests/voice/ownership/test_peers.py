"""The death of a worker is detected at once, a stalled or slow one is not taken for dead, and false news does no harm."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from tests.eventually import BOUND_S
from tests.voice.conftest import Page, Workers, becomes
from tests.voice.ownership.fleet import name, owner, serves
from voxbridge.services.voice.ownership import orphans, peers
from voxbridge.services.voice.ownership.peers import ALIVE, Peers
from voxbridge.services.voice.service import VoiceService
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Store

LONG_MS = 600_000
"""Milliseconds of a lease that outlasts the test."""


async def held_by(store: Store, sid: str) -> str:
    """Return the worker that holds the lease of a session."""
    found = await store.redis.get(f"vx:lease:{{{sid}}}")
    return found.decode() if isinstance(found, bytes) else str(found)


async def asks(worker: VoiceService, times: int) -> None:
    """Wait until a worker has asked its peers so many times from now on."""
    until = worker._peers._asked + times

    async def asked() -> bool:
        return worker._peers._asked >= until

    await becomes(asked)


async def test_a_killed_worker_is_followed_before_its_lease_runs_out_and_one_that_stands_still_is_not(
    workers: Workers, page: Page, store: Store
) -> None:
    async with workers.process() as process:
        await page.open("echo")
        await page.until(ev.SessionStarted)
        async with workers.running() as second:
            await serves(second)
            process.send_signal(signal.SIGSTOP)
            await store.redis.pexpire(f"vx:lease:{{{page.sid}}}", LONG_MS)
            await asks(second, 20)
            assert await held_by(store, page.sid) != name(second), "it stands still, and its lease has not run out"
            process.kill()
            await page.until(ev.SessionRestored)
            assert page.sid in second._sessions
            await page.ends()


async def test_word_of_a_death_has_the_others_ask_at_once(
    workers: Workers, page: Page, store: Store, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "ASK_S", 600.0)
    async with workers.process() as process:
        await page.open("echo")
        await page.until(ev.SessionStarted)
        async with workers.running() as second:

            async def known() -> bool:
                return bool(second._orphans.owners())

            await becomes(known)
            process.send_signal(signal.SIGSTOP)
            await store.redis.pexpire(f"vx:lease:{{{page.sid}}}", LONG_MS)
            process.kill()
            await process.wait()
            await connection.publish(subjects.GONE, b"")
            await page.until(ev.SessionRestored)
            await page.ends()


async def test_word_of_a_death_has_a_worker_at_rest_look_for_the_first_session_of_all(
    workers: Workers, page: Page, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "REST_LOOK_S", 600.0)
    async with workers.running() as second:
        await serves(second)
        async with workers.process() as process:
            with monkeypatch.context() as full:
                full.setattr(second, "room", lambda: 0)
                await page.open("echo")
                await page.until(ev.SessionStarted)
            assert not second._orphans.owners(), "it has not looked since"
            process.kill()
            await process.wait()
            await connection.publish(subjects.GONE, b"")
            await page.until(ev.SessionRestored)
            assert owner(page, second)
            await page.ends()


async def test_the_calls_of_a_dead_worker_are_taken_from_nobody_else(store: Store) -> None:
    one, other = "ab" * 16, "cd" * 16
    for sid in (one, other):
        await store.session_opened(sid, 1)
    assert await store.acquire_lease(one, "voice-dead") == 1
    assert await store.acquire_lease(other, "voice-alive") == 1
    assert await store.held_by("voice-dead") == [one]
    assert await store.seize_lease(one, "voice-dead", "voice-next") == 2
    assert await store.seize_lease(one, "voice-dead", "voice-late") is None, "it is the dead one's no more"
    assert await store.seize_lease(other, "voice-dead", "voice-next") is None
    assert await store.renew_leases([one], "voice-dead") == [one]


@asynccontextmanager
async def cut_off(client: FastClient, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Cut this connection, without a reconnection inside the block."""
    back = asyncio.Event()
    select: Callable[[], Awaitable[None]] = client._select_next_server

    async def wait() -> None:
        await back.wait()
        await select()

    transport: Any = client._transport
    with monkeypatch.context() as patch:
        patch.setattr(client, "_select_next_server", wait)
        transport._io_writer.transport.abort()
        yield
    back.set()


async def test_a_worker_that_lost_its_connection_loses_its_call_and_nothing_else(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers.running() as first:
        await serves(first)
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running() as second:
            await serves(second)
            async with cut_off(first._place.log.nc, monkeypatch):  # type: ignore[arg-type]  # made by `connect_nats`
                await page.until(ev.SessionRestored)
                assert owner(page, second)
            await page.says(gateway.TextReceived(text="Are you there?"))
            await page.until(ev.AgentSaid)

            async def given_up() -> bool:
                return page.sid not in first._sessions

            await becomes(given_up)
            log = await page.everything()
            assert [one.event.worker for one in log if isinstance(one.event, ev.SessionOwned)] == [name(first), name(second)]
            assert len([one for one in log if isinstance(one.event, ev.AgentSaid)]) == 1
            assert first.room() == first._place.config.max_sessions, "it takes the next one"
            await page.ends()


class Deaths:
    """Workers that a `Peers` has reported dead."""

    def __init__(self, nc: Client, *owners: str) -> None:
        self.told: list[str] = []
        self.came = asyncio.Event()
        self.peers = Peers(nc, "voice-me", lambda: owners, self._dead, _nothing)

    async def _dead(self, worker: str) -> None:
        self.told.append(worker)
        self.came.set()


async def test_who_never_listened_or_ceased_is_told_and_who_listens_is_not(nats_url: str, connection: Client) -> None:
    there = await nats.connect(nats_url)
    await there.subscribe(f"{ALIVE}.voice-there")
    await there.flush()
    found = Deaths(connection, "voice-me", "voice-there", "voice-gone", "no name.>")
    await found.peers.listen()
    watching = asyncio.create_task(found.peers.watch())
    await asyncio.wait_for(found.came.wait(), BOUND_S)
    assert found.told == ["voice-gone"]
    found.came.clear()
    await there.close()
    while "voice-there" not in found.told:
        await asyncio.wait_for(found.came.wait(), BOUND_S)
        found.came.clear()
    watching.cancel()
    await found.peers.leave()
    assert set(found.told) == {"voice-gone", "voice-there"}


async def test_after_a_cut_of_its_own_nothing_is_concluded_until_the_others_had_time_to_come_back(connection: Client) -> None:
    found = Deaths(connection, "voice-gone")
    await found.peers.listen()
    await found.peers.catch_up()
    before = asyncio.get_running_loop().time()
    watching = asyncio.create_task(found.peers.watch())
    await asyncio.wait_for(found.came.wait(), BOUND_S)
    assert asyncio.get_running_loop().time() - before >= peers.QUIET_S
    watching.cancel()
    await found.peers.leave()


def test_of_many_workers_each_asks_the_four_that_follow_it(connection_less: Client) -> None:
    names = [f"voice-{number}" for number in range(9)]
    asked = {one: Peers(connection_less, one, lambda: names, _nobody, _nothing).watched() for one in names}
    assert asked["voice-2"] == ["voice-3", "voice-4", "voice-5", "voice-6"]
    assert asked["voice-8"] == ["voice-0", "voice-1", "voice-2", "voice-3"]
    assert {other for watched in asked.values() for other in watched} == set(names), "each is asked by somebody"


@pytest.fixture
def connection_less() -> Client:
    return Client()


def _nothing() -> None:
    """Ignore word of a death."""


async def _nobody(_: str) -> None:
    raise AssertionError("nobody died")
