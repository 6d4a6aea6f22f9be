"""`voxbridge doctor` with late answers: a busy machine is slow, which is neither dead nor healthy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.ports import free_port
from voxbridge.doctor import eventlog, machine, parts
from voxbridge.doctor.finding import Finding
from voxbridge.doctor.parts import NEEDED, SLOW_S, Told
from voxbridge.doctor.place import Place
from voxbridge.services.models.processes import busy
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Unavailable

HERE = Place(here=True)
STATS = [{"endpoints": [{"data": {"sessions": 3}}]}] * 2
ALMOST_S = 0.05
"""Limit in seconds for the timeouts of services that never answer."""


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


async def said(nc: Client, name: str) -> Finding:
    (found,) = [one for one in await parts.on_the_bus(nc, HERE) if one.name == name]
    return found


async def plays(nc: Client, name: str, *, processes: int) -> None:
    """Answer as so many processes of a service."""

    async def stats(message: Msg) -> None:
        for _ in range(processes):
            await message.respond(json.dumps(STATS[0]).encode())

    async def health(message: Msg) -> None:
        await message.respond(json.dumps({"process": f"{name}-1"}).encode())

    await nc.subscribe(f"$SRV.STATS.voxbridge-{name}", cb=stats)
    await nc.subscribe(f"vx.svc.{name}.health", cb=health)


@pytest.mark.parametrize(("took_s", "level"), [(SLOW_S, "OK"), (2.34, "WARN"), (parts.ANSWER_S, "WARN")])
def test_a_late_answer_works_and_its_time_is_said(took_s: float, level: str) -> None:
    service = parts._service("voice", Told({"process": "voice-1"}, took_s), STATS, HERE)
    gateway = parts._gateway(Config(), Told({}, took_s, status=200), HERE)
    models = parts._models(Config(), Told({"models": {"a": "ready"}}, took_s, status=200), HERE)
    for found in (service, gateway, models):
        assert (found.level, f"took {took_s:.1f} s" in found.says) == (level, level == "WARN")


def test_what_is_broken_goes_before_what_is_late() -> None:
    waits = Told({"process": "voice-1", "dependencies": {"nats": False}}, 2.0)
    assert parts._service("voice", waits, STATS, HERE).level == "FAIL"
    assert parts._gateway(Config(), Told({"dependencies": {"nats": {"ok": False}}}, 2.0, status=503), HERE).level == "FAIL"
    assert parts._models(Config(), Told({"models": {"a": "loading"}}, 2.0, status=503), HERE).level == "FAIL"


async def test_nobody_who_hears_the_question_is_known_at_once(nc: Client) -> None:
    async with asyncio.timeout(parts.ANSWER_S / 2):
        findings = await parts.on_the_bus(nc, HERE)
    assert [(one.name, one.level, one.says) for one in findings] == [(name, "FAIL", "is not running.") for name in NEEDED]


async def test_a_service_that_is_there_and_silent_is_not_said_to_be_dead(nc: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(_: Msg) -> None:
        """Answer nothing."""

    monkeypatch.setattr(parts, "ANSWER_S", ALMOST_S)
    for subject in ("$SRV.STATS.voxbridge-tools", "vx.svc.tools.health"):
        await nc.subscribe(subject, cb=silent)
    found = await said(nc, "tools")
    assert found.level == "FAIL"
    assert found.says == "did not answer within 0.05 s. It is stuck, or its machine is busy."
    assert "overloaded" in found.do


@pytest.mark.parametrize(("heard", "says"), [(True, "runs and did not tell its health within 1 s."), (False, "runs and is not ready yet.")])
async def test_a_service_whose_health_is_not_told_runs(nc: Client, monkeypatch: pytest.MonkeyPatch, heard: bool, says: str) -> None:
    async def silent(_: Msg) -> None:
        """Answer nothing."""

    async def stats(message: Msg) -> None:
        await message.respond(json.dumps(STATS[0]).encode())

    monkeypatch.setattr(parts, "ANSWER_S", 1.0)
    await nc.subscribe("$SRV.STATS.voxbridge-tools", cb=stats)
    if heard:
        await nc.subscribe("vx.svc.tools.health", cb=silent)
    assert (await said(nc, "tools")).says == says


async def test_both_voice_workers_are_waited_for_however_late_they_are(nc: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LISTEN_S", 0.0)
    await plays(nc, "voice", processes=2)
    found = await said(nc, "voice")
    assert (found.level, found.says) == ("OK", "2 processes: 3 sessions")


async def test_a_lone_voice_worker_is_said_to_be_alone_once_no_other_answers(nc: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ANSWER_S", 1.0)
    monkeypatch.setattr(parts, "LISTEN_S", 0.0)
    await plays(nc, "voice", processes=1)
    found = await said(nc, "voice")
    assert (found.level, "without another one" in found.says) == ("WARN", True)


async def test_a_port_that_takes_connections_and_says_nothing_is_not_said_to_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    monkeypatch.setattr(parts, "ANSWER_S", ALMOST_S)
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        gateway, models = await parts.over_http(Config(port=port, models_port=free_port()), HERE)
        over.set()
    assert gateway.says == f"http://127.0.0.1:{port} did not answer within 0.05 s."
    assert "overloaded" in gateway.do
    assert "does not answer:" in models.says


def test_nobody_is_told_to_restart_a_log_that_is_late() -> None:
    page = Unavailable("The event log does not answer; it is asked again.")
    page.__cause__ = TimeoutError()
    for late in (TimeoutError(), nats.errors.TimeoutError(), page):
        found = eventlog._unanswered(late)
        assert (found.says, "estart" in found.do) == (f"JetStream did not answer within {eventlog._ASK_S:g} s.", False)
    assert "estart" in eventlog._unanswered(nats.errors.NoRespondersError()).do


@pytest.mark.parametrize(("why", "level"), [("the machine is busy (load 6.1 on 2 cores)", "WARN"), ("", "OK")])
def test_a_busy_machine_is_said_to_be_busy(monkeypatch: pytest.MonkeyPatch, why: str, level: str) -> None:
    monkeypatch.setattr(busy, "why", lambda: why)
    found = machine._processors()
    assert (found.level, found.says.startswith("The machine is busy")) == (level, bool(why))
