"""The client's view of outages of NATS, Valkey, the voice worker and the gateway itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running, Serve
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.core import session as gateway_session
from voxbridge.shared import events
from voxbridge.shared.bus.connection import EVENTS_PENDING, connect_nats
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events.gateway import ClientDisconnected, SessionEndRequested


async def logged(running: Running, sid: str, *kinds: type[events.Event]) -> list[Any]:
    """Wait for the gateway's events of these kinds, and return them."""

    async def found() -> list[Any]:
        return [one.event async for one in running.gateway.log.read_all(sid, writer="gateway") if isinstance(one.event, kinds)]

    return await eventually(found)


async def test_nats_is_killed_and_started_under_an_open_socket_which_then_hears_exactly_what_it_missed(
    serve: Serve, own_nats: Callable[[], NatsServer], redis_url: str
) -> None:
    server = own_nats()
    running = await serve(server.url, redis_url)
    nc = await connect_nats(server.url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, running.gateway.store) as voice, running.client() as client:
        await client.started()
        session = await voice.session()
        told: list[int] = []
        for round in range(3):
            told += [await session.says(events.voice.UserSaid(text=f"{round}.{n}", turn=n, source="text")) for n in range(5)]
            server.kill()
            saying = asyncio.gather(
                *(session.says(events.voice.UserSaid(text=f"{round}.{n}", turn=n, source="text")) for n in range(5, 10)),
            )
            await asyncio.sleep(0)
            server.start()
            told += await asyncio.wait_for(saying, BOUND_S)
        heard = [(await client.until("transcript"))["seq"] for _ in told]
        assert heard == told
        await client.say({"type": "text", "text": "still here"})
        assert await logged(running, session.sid, events.gateway.TextReceived)
    await nc.close()


async def test_a_socket_that_is_lost_is_written_with_the_last_position_it_was_told(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        seq = await session.says(events.voice.UserSaid(text="bye", turn=1, source="text"))
        assert (await client.until("transcript"))["seq"] == seq
        client.socket.transport.abort()
    (gone,) = await logged(running, session.sid, ClientDisconnected)
    assert gone.last_seq == seq
    async with asyncio.timeout(BOUND_S):
        await running.gateway.idle()
    assert not running.gateway.connections


async def test_a_session_that_no_worker_takes_is_given_up_and_its_end_asked_for(
    running: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_session, "START_TIMEOUT_MS", 500)
    voice.silent = True
    async with running.client() as client:
        await client.say({"type": "start", "mode": "local"})
        assert (await client.until("error"))["code"] == "OVERLOADED"
        assert await client.close_code() == 1013
    session = await voice.session()
    assert await logged(running, session.sid, SessionEndRequested)


async def test_a_refused_start_says_why(running: Running, voice: StandIn) -> None:
    voice.refusal = events.voice.Failure(code="PROVIDER_UNAVAILABLE", message="Gemini is not configured.")
    async with running.client(v1=False) as client:
        await client.say({"type": "start", "mode": "gemini"})
        error = await client.until("error")
        assert (error["code"], error["message"]) == ("PROVIDER_UNAVAILABLE", "Gemini is not configured.")
        assert await client.close_code() == 1000


async def test_a_worker_whose_lease_is_gone_shows_as_restoring_and_is_given_up_at_last(
    running: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_session, "OWNER_TIMEOUT_MS", 3_000)
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await running.gateway.store.release_lease(session.sid, "voice-stand-in")
        state = await client.until("state")
        assert state["state"] == "restoring"
        assert state["reason"]
        assert (await client.until("error"))["code"] == "UNAVAILABLE"
        assert await client.close_code() == 1013


async def test_a_session_goes_on_while_valkey_is_away(serve: Serve, nats_url: str, own_valkey: Callable[[], ValkeyServer]) -> None:
    server = own_valkey()
    running = await serve(nats_url, server.url)
    nc = await connect_nats(nats_url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, running.gateway.store) as voice, running.client() as client:
        await client.started()
        session = await voice.session()
        server.kill()
        await running.gateway._look_after()
        seq = await session.says(events.voice.UserSaid(text="hello", turn=1, source="text"))
        assert (await client.until("transcript"))["seq"] == seq
        assert (await running.get("/api/sessions")).status_code == 503
    await nc.close()


@pytest.mark.parametrize("v1", [True, False])
async def test_a_gateway_that_stops_says_go_away_and_closes_with_1012(running: Running, voice: StandIn, v1: bool) -> None:
    async with running.client(v1=v1) as client, running.client(v1=v1) as silent:
        await client.started()
        session = await voice.session()
        drained = asyncio.create_task(running.gateway.drain())
        token = (await client.until("go_away"))["session_token"]
        assert token == session.sid if v1 else token.startswith(f"{session.sid}.")
        assert await client.close_code() == 1012
        assert await silent.close_code() == 1012
        await asyncio.wait_for(drained, BOUND_S)
        (gone,) = await logged(running, session.sid, ClientDisconnected)
        assert gone.reason == "the gateway is restarting"


async def test_a_client_that_asks_for_a_session_and_leaves_at_once_leaves_no_session_behind(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.say({"type": "start", "mode": "local"})
        client.socket.transport.abort()
    session = await voice.session()
    assert await logged(running, session.sid, events.gateway.ClientDisconnected, SessionEndRequested)
