"""Recording and erasing as a client and Studio see them: the option of a session, and the traces of an erased one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.conftest import Running
from tests.gateway.core.driver import recorded as fact
from tests.gateway.rest.test_app import STARTED_US, held
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.core import messages, outbound
from voxbridge.services.gateway.service import Gateway
from voxbridge.sessions.erase import erase
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError


async def requested(running: Running, sid: str) -> events.gateway.SessionRequested:
    (found,) = await running.gateway.log.last([subjects.event_subject(sid, "gateway", visible=False, event_type="session.requested")])
    assert isinstance(found.event, events.gateway.SessionRequested)
    return found.event


@pytest.mark.parametrize("asked", [None, False])
async def test_what_a_client_says_of_recording_is_in_its_request(running: Running, voice: StandIn, asked: bool | None) -> None:
    async with running.client() as client:
        option: dict[str, Any] = {} if asked is None else {"record": asked}
        ready = await client.started(**option)
    assert (await requested(running, ready["sessionId"])).record is asked


async def test_where_nothing_is_recorded_a_client_that_wants_it_is_told_so(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.say({"type": "start", "mode": "echo", "record": True})
        refused = await client.until("error")
        assert (refused["code"], refused["field"], refused["retryable"]) == ("PERMISSION_DENIED", "record", False)
        await client.close_code()
    assert await running.gateway.sessions.live() == 0


async def test_where_it_is_allowed_a_client_may_ask_for_it(running: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    config: Config = replace(running.gateway.resources.config, recording="allow")
    allowed = replace(running.gateway.resources, config=config)
    monkeypatch.setattr(running.gateway, "resources", allowed)
    assert isinstance(running.gateway, Gateway)
    async with running.client() as client:
        ready = await client.started(record=True)
    assert (await requested(running, ready["sessionId"])).record is True
    assert (await running.get("/api/vox/status")).json()["recording"] == "allow"


def test_a_client_is_told_that_its_session_is_recorded() -> None:
    for recorded in (True, False):
        event = events.voice.SessionStarted(mode="echo", model="", voice="", output="audio", recorded=recorded)
        told = outbound.of_event(fact(event, 1), outbound.Reader("a" * 32, True, "token"))
        assert told is not None
        assert told.get("recorded", False) is recorded


def test_anything_but_yes_and_no_is_refused() -> None:
    with pytest.raises(VoxbridgeError) as refused:
        messages.read(b'{"type": "start", "mode": "echo", "record": "yes"}')
    assert refused.value.field == "record"


async def test_an_erased_session_stays_in_the_list_and_has_nothing_to_show(running: Running) -> None:
    sid = await held(running, 3, ended=True)
    now = SystemClock().now_us()
    gateway = running.gateway
    assert (await running.get(f"/api/sessions/{sid}")).json()["transcript"]
    await erase(gateway.log, gateway.resources.redis, sid, by="ada", now=now)
    shown = {"id": sid, "mode": "local", "started_at_ms": STARTED_US // 1_000 + 3_000, "state": "ended", "turns": 0}
    shown |= {"ended_at_ms": now // 1_000, "ended_reason": "erased"}
    assert (await running.get("/api/sessions")).json()["sessions"] == [shown]
    assert (await running.get(f"/api/sessions/{sid}")).json() == {**shown, "transcript": []}
    (event,) = (await running.get(f"/api/sessions/{sid}/events")).json()["events"]
    assert (event["type"], event["data"]["by"]) == ("session.erased", "ada")
    for what in ("state", "waveform?channel=in"):
        answer = await running.get(f"/api/sessions/{sid}/{what}")
        assert (answer.status_code, answer.json()["message"]) == (404, "This session was erased.")


async def test_a_list_that_is_built_again_from_the_log_has_the_erased_ones(running: Running) -> None:
    sids = [await held(running, number, ended=True) for number in (1, 2)]
    await erase(running.gateway.log, running.gateway.resources.redis, sids[0], by="ada", now=SystemClock().now_us())
    await running.gateway.resources.redis.flushall()
    listed = (await running.get("/api/sessions")).json()["sessions"]
    assert [one["id"] for one in listed] == sids[::-1]
    assert [one["ended_reason"] for one in listed] == ["client", "erased"]
