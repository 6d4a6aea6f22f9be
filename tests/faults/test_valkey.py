"""A call during faults of Valkey: it continues, its lease is acquired again, and lost keys are written again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from tests.eventually import BOUND_S, eventually
from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.service import health
from voxbridge.shared.service.health import valkey_condition
from voxbridge.shared.store.store import Store


class Call:
    """A live call, and its installation's health and keys."""

    def __init__(self, person: Talker, config: Config, redis: Redis) -> None:
        self.person = person
        self.redis = redis
        self.store = Store(redis)
        self.config = config
        self._turns = 0

    async def goes_on(self) -> None:
        """Have another complete turn."""
        self._turns += 1
        text = f"Turn {self._turns}."
        await self.person.say(text)
        await self.person.until("transcript", role="user", text=text, final=True)
        await self.person.until("turn_complete", self._turns)

    async def readyz(self) -> dict[str, Any]:
        """Return the answer of `/readyz` without a token."""
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            found: dict[str, Any] = (await client.get(f"http://127.0.0.1:{self.config.port}/readyz")).json()
        return found

    async def says(self, words: str, *, state: str) -> None:
        """Wait until `/readyz` reports this state of Valkey."""
        async with asyncio.timeout(BOUND_S):
            while (found := (await self.readyz())["dependencies"]["valkey"])["state"] != state or words not in found["detail"]:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def is_held(self) -> None:
        """Wait until a worker holds the lease."""

        async def holds() -> bool:
            return bool((await self.store.held([self.person.sid]))[0])

        await eventually(holds)

    def was_undisturbed(self) -> None:
        """Check that the client received no error and no notice of a new owner."""
        assert [one for one in self.person.told if one["type"] in ("error", "session_ended", "restored", "go_away")] == []


@asynccontextmanager
async def calling(config: Config, valkey: ValkeyServer) -> AsyncIterator[Call]:
    whole = replace(config, redis_url=valkey.url, port=free_port(), models_port=free_port(), tool_packs="tests.tools.pack")
    async with stack(whole), talker(whole) as person, Redis.from_url(valkey.url, decode_responses=True) as redis:
        await person.start()
        call = Call(person, whole, redis)
        await call.goes_on()
        await call.is_held()
        yield call


async def test_a_call_goes_on_over_a_killed_valkey(config: Config, own_valkey: Callable[[], ValkeyServer]) -> None:
    valkey = own_valkey()
    async with calling(config, valkey) as call:
        valkey.kill()
        await call.goes_on()
        await call.says("Valkey does not answer", state="down")
        await call.goes_on()
        valkey.start()
        await call.says("answers", state="ok")
        await call.is_held()
        await call.goes_on()
        assert call.person.sid in await call.store.live_sessions()
        call.was_undisturbed()


async def test_a_call_goes_on_over_a_valkey_that_forgot_everything(config: Config, own_valkey: Callable[[], ValkeyServer]) -> None:
    async with calling(config, own_valkey()) as call:
        await call.redis.flushall()
        await call.goes_on()
        await call.is_held()
        async with asyncio.timeout(BOUND_S):
            while not await call.store.index_is_whole() or not await call.store.functions():
                await asyncio.sleep(0.1)
                async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
                    await client.get(f"http://127.0.0.1:{call.config.port}/api/sessions")
        assert call.person.sid in await call.store.live_sessions()
        await call.goes_on()
        call.was_undisturbed()


async def test_a_call_goes_on_over_a_full_valkey(config: Config, own_valkey: Callable[[], ValkeyServer]) -> None:
    async with calling(config, own_valkey()) as call:
        await call.redis.config_set("maxmemory", "1")
        await call.says("full", state="down")
        await call.goes_on()
        await call.is_held()
        async with talker(call.config) as refused:
            await refused.open()
            assert "Valkey" in (await refused.until("error"))["message"]
        await call.redis.config_set("maxmemory", "0")
        await call.says("answers", state="ok")
        await call.is_held()
        await call.goes_on()
        async with talker(call.config) as taken:
            await taken.start()
        call.was_undisturbed()


async def test_a_call_goes_on_over_a_slow_valkey(config: Config, own_valkey: Callable[[], ValkeyServer]) -> None:
    valkey = own_valkey()
    async with calling(config, valkey) as call:
        async with Redis.from_url(valkey.url) as slow:
            pausing = asyncio.create_task(_pauses(slow))
            try:
                for _ in range(3):
                    await call.goes_on()
                await call.is_held()
            finally:
                pausing.cancel()
                await asyncio.wait({pausing})
        await call.says("answers", state="ok")
        call.was_undisturbed()


async def _pauses(redis: Redis) -> None:
    """Have Valkey answer nobody most of the time, but never for as long as a lease: it ends each pause itself, on a busy machine too."""
    while True:
        await redis.client_pause(300)
        await redis.ping()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(("config_set", "state", "words"), [({"maxmemory": "1"}, "down", "full"), ({}, "ok", "answers")])
async def test_the_condition_of_valkey_is_said(
    own_valkey: Callable[[], ValkeyServer], config_set: dict[str, str], state: str, words: str
) -> None:
    async with Redis.from_url(own_valkey().url, decode_responses=True) as redis:
        for name, value in config_set.items():
            await redis.config_set(name, value)
        condition = await valkey_condition(redis)
    assert (condition.state, words in condition.detail) == (state, True)


async def test_a_valkey_that_is_almost_full_is_degraded(own_valkey: Callable[[], ValkeyServer]) -> None:
    async with Redis.from_url(own_valkey().url, decode_responses=True) as redis:
        used = int((await redis.info("memory"))["used_memory"])
        await redis.config_set("maxmemory", str(round(used * 1.05)))
        condition = await valkey_condition(redis)
    assert (condition.state, "almost full" in condition.detail) == ("degraded", True)


async def test_a_valkey_that_takes_its_time_is_degraded(own_valkey: Callable[[], ValkeyServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SLOW_MS", 0)
    async with Redis.from_url(own_valkey().url, decode_responses=True) as redis:
        condition = await health.valkey_condition(redis)
    assert (condition.state, "slow" in condition.detail) == ("degraded", True)
