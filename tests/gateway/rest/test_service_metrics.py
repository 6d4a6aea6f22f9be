"""Figures of voice, tools and knowledge, collected over the bus for Prometheus."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from voxbridge.services.gateway import service_metrics
from voxbridge.services.gateway.metrics import Metrics
from voxbridge.shared.service.process import Figures, figures_subject


@pytest.fixture
async def nc(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(service_metrics, "ANSWERS_S", 2.0)
    client = await nats.connect(nats_url)
    yield client
    await client.close()


async def process(nc: Client, service: str, *answers: object) -> None:
    """Run a process of a service that gives these answers."""

    async def asked(message: Msg) -> None:
        for answer in answers:
            await message.respond(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    await nc.subscribe(figures_subject(service), cb=asked)
    await nc.flush()


async def test_each_process_of_each_service_tells_its_figures(nc: Client) -> None:
    await process(nc, "voice", {"process": "voice-1", "figures": {"sessions": 3, "room": 7}})
    await process(nc, "voice", {"process": "voice-2", "figures": {"sessions": 1, "events_appended": 50}})
    await process(nc, "tools", {"process": "tools-1", "figures": {"taken": 9, "Not a name": 1}})
    text = Metrics().text(service_metrics.families(await service_metrics.ask(nc))).decode()
    for line in (
        'voxbridge_voice_sessions{process="voice-1"} 3.0',
        'voxbridge_voice_sessions{process="voice-2"} 1.0',
        'voxbridge_voice_room{process="voice-1"} 7.0',
        'voxbridge_voice_events_appended_total{process="voice-2"} 50.0',
        'voxbridge_tools_taken_total{process="tools-1"} 9.0',
        "voxbridge_gateway_sockets 0.0",
    ):
        assert line in text.splitlines()
    assert "Not a name" not in text


async def test_what_is_no_figures_is_passed_over(nc: Client) -> None:
    await process(nc, "voice", b"junk", {"process": "voice-1"}, {"process": "voice-1", "figures": {"sessions": 3}})
    found = await service_metrics.ask(nc)
    assert found == {
        "voice": [Figures(process="voice-1", figures={"sessions": 3})],
        "tools": [],
        "knowledge": [],
        "awareness": [],
        "terminals": [],
    }


async def test_so_many_processes_and_figures_are_told_and_no_more(nc: Client) -> None:
    some = [{"process": f"voice-{n}", "figures": {"sessions": 1}} for n in range(service_metrics.PROCESSES_LIMIT + 1)]
    await process(nc, "voice", *some)
    assert len((await service_metrics.ask(nc))["voice"]) == service_metrics.PROCESSES_LIMIT
    many = Figures(process="p", figures={f"f{n:03}": 1 for n in range(service_metrics.FIGURES_LIMIT + 1)})
    assert len(list(service_metrics.families({"voice": [many]}))) == service_metrics.FIGURES_LIMIT


async def test_without_a_bus_there_are_the_gateways_own_figures(nats_url: str) -> None:
    client = await nats.connect(nats_url)
    await client.close()
    assert await service_metrics.ask(client) == {"voice": [], "tools": [], "knowledge": [], "awareness": [], "terminals": []}
