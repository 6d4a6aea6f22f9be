"""The data of Studio's session page: events without journals, the state at a moment, and the waveforms of a recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats.micro
import pytest
from nats.aio.client import Client
from nats.js.api import RePublish
from nats.micro.request import Request

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running, drawing, listening
from tests.gateway.rest.test_app import held
from tests.long_call import Call
from tests.ports import free_port
from voxbridge.services.gateway.service import Gateway
from voxbridge.services.voice.audio.waveforms import KEPT, Waveforms
from voxbridge.services.voice.inspection import SUBJECT, Inspector
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import BINS_LIMIT, LONGEST_MS, DataKeys, Waveform
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.connection import AUDIO_PENDING, connect_nats
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config, Recording
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import connected

BEGAN_US = 1_790_000_000_000_000


@asynccontextmanager
async def recording(nats_url: str, redis_url: str, folder: Path) -> AsyncIterator[Running]:
    """Run a gateway of an installation that records."""
    config = Config(port=free_port(), nats_url=nats_url, redis_url=redis_url, models_port=free_port(), recording="on", data_dir=folder)
    async with connected(config, "gateway", "gateway-test", SystemClock()) as resources:
        gateway = Gateway(resources)
        serving = asyncio.create_task(gateway.serve())
        running = Running(gateway, config.port)
        await listening(running)
        try:
            async with drawing(running):
                yield running
        finally:
            await gateway.drain()
            await asyncio.wait_for(serving, BOUND_S)


@pytest.fixture
async def recorder(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with recording(nats_url, redis_url, tmp_path) as running:
        yield running


def keys_of(running: Running) -> DataKeys:
    return DataKeys.of(running.gateway.resources.config, running.gateway.resources.redis)


@pytest.fixture
async def drawn(running: Running) -> AsyncIterator[Waveforms]:
    async with drawing(running) as waveforms:
        yield waveforms


@pytest.fixture
async def call(running: Running) -> Call:
    """A call of two minutes in the log."""
    return await written(running)


async def written(running: Running, turns: int = 12) -> Call:
    log = running.gateway.log
    first = (await log.js.stream_info(subjects.EVENT_STREAM)).state.last_seq + 1
    call = Call(f"{first:032x}", turns=turns, began_us=BEGAN_US, first=first)
    await call.write(log)
    await running.gateway.store.session_opened(call.sid, BEGAN_US)
    return call


@pytest.fixture
async def inspecting(running: Running, nats_url: str) -> AsyncIterator[Client]:
    """The part of the voice service that folds states."""
    nc = await connect_nats(nats_url, "voice-test", pending=AUDIO_PENDING)
    micro = await nats.micro.add_service(nc, name="voxbridge-voice", version="0.0.0")
    await micro.add_endpoint(name="state", subject=SUBJECT, handler=Inspector(Log(nc)).serve)
    await nc.flush()
    yield nc
    await micro.stop()
    await nc.close()


async def test_facts_are_read_without_the_journals_and_none_is_left_out(running: Running, call: Call) -> None:
    whole = [fact for fact in call.facts if not type(fact.event).__name__.endswith("Journal")]
    assert len(whole) < len(call.facts)
    seen: list[int] = []
    after: int | None = 0
    pages = 0
    while after is not None:
        page = (await running.get(f"/api/sessions/{call.sid}/events?after={after}&limit=40&journals=false")).json()
        seen += [event["seq"] for event in page["events"]]
        assert page["more"] == ("next_after" in page)
        after = page.get("next_after")
        pages += 1
    assert seen == [fact.seq for fact in whole]
    assert pages == -(-len(call.facts) // 40)


async def test_the_state_at_each_moment_is_what_the_session_was_then(running: Running, call: Call, inspecting: Client) -> None:
    async def at(ms: int) -> dict[str, Any]:
        found: dict[str, Any] = (await running.get(f"/api/sessions/{call.sid}/state?at={BEGAN_US + ms * 1_000}")).json()
        return found

    before = await at(0)
    assert (before["state"], before["worker"], before["term"], before["history"]) == ("listening", "voice-1", 1, [])
    assert [timer["name"] for timer in before["timers"]] == ["idle"]
    assert before["timers"][0]["due"] == BEGAN_US + 600_000_000
    speaking = await at(1_500)
    assert speaking["state"] == "user_speaking"
    assert speaking["speech"]["to_ms"] is None
    calling = await at(3_150)
    assert calling["state"] == "calling_tool"
    assert [one["name"] for one in calling["reply"]["calls"]] == ["current_time"]
    replying = await at(5_000)
    assert replying["state"] == "speaking"
    assert replying["reply"]["text"].startswith("It is a quarter past nine")
    over = await at(9_000)
    assert [line["role"] for line in over["history"]] == ["user", "assistant", "tool", "assistant"]
    assert over["history"][1]["calls"] == ['current_time({"place":"Tokyo"})']
    killed = next(one for one in call.facts if type(one.event).__name__ == "SessionRestored")
    taken = await at((killed.ts - BEGAN_US) // 1_000 + 1)
    assert (taken["worker"], taken["term"]) == ("voice-2", 2)
    assert (await at(10**9))["state"] == "ended"


async def test_the_state_at_a_position_is_that_of_its_event(running: Running, call: Call, inspecting: Client) -> None:
    called = next(fact for fact in call.facts if type(fact.event).__name__ == "ToolCalled")
    at = (await running.get(f"/api/sessions/{call.sid}/state?seq={called.seq}")).json()
    assert (at["state"], at["at"]) == ("calling_tool", called.ts)
    before = (await running.get(f"/api/sessions/{call.sid}/state?seq={call.facts[0].seq}&at={called.ts}")).json()
    assert (before["state"], before["inputs"]) == ("connecting", 0)
    newest = (await running.get(f"/api/sessions/{call.sid}/state")).json()
    assert newest["state"] == "ended"


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ("state?at=-1", 422, "INVALID_ARGUMENT", "at"),
        ("state?at=soon", 422, "INVALID_ARGUMENT", "at"),
        ("waveform", 422, "INVALID_ARGUMENT", "channel"),
        ("waveform?channel=both", 422, "INVALID_ARGUMENT", "channel"),
        ("waveform?channel=in&bins=0", 422, "INVALID_ARGUMENT", "bins"),
        (f"waveform?channel=in&bins={BINS_LIMIT + 1}", 422, "INVALID_ARGUMENT", "bins"),
        (f"waveform?channel=in&to_ms={LONGEST_MS + 1}", 422, "INVALID_ARGUMENT", "to_ms"),
    ],
)
async def test_a_wrong_question_is_answered_with_what_is_wrong(
    running: Running, call: Call, query: str, status: int, code: str, field: str
) -> None:
    answer = await running.get(f"/api/sessions/{call.sid}/{query}")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (status, code, field)


async def test_an_unknown_session_has_neither_state_nor_waveform(running: Running) -> None:
    for what in ("state", "waveform?channel=out"):
        answer = await running.get(f"/api/sessions/{'e' * 32}/{what}")
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_without_a_voice_worker_the_state_is_said_to_be_unavailable(running: Running, call: Call) -> None:
    answer = await running.get(f"/api/sessions/{call.sid}/state")
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "UNAVAILABLE", "1")


async def test_what_the_voice_service_refuses_is_told_with_its_reason(running: Running, call: Call, nats_url: str) -> None:
    nc = await connect_nats(nats_url, "voice-test", pending=AUDIO_PENDING)
    micro = await nats.micro.add_service(nc, name="voxbridge-voice", version="0.0.0")

    async def refuse(request: Request) -> None:
        await request.respond_error("TOO_LARGE", "Long.", data=b'{"code":"TOO_LARGE","message":"Long.","retryable":false,"limit":7}')

    try:
        await micro.add_endpoint(name="state", subject=SUBJECT, handler=refuse)
        await nc.flush()
        answer = await running.get(f"/api/sessions/{call.sid}/state")
        assert (answer.status_code, answer.json()) == (422, {"code": "TOO_LARGE", "message": "Long.", "retryable": False, "limit": 7})
    finally:
        await micro.stop()
        await nc.close()


async def test_a_recording_is_given_as_peaks_that_lie_where_somebody_spoke(recorder: Running) -> None:
    call = await written(recorder)
    await call.record(recorder.gateway.log, keys_of(recorder))
    for channel in ("in", "out"):
        found = await waveform(recorder, call.sid, channel, bins=min(BINS_LIMIT, call.at_ms() // 20))
        assert (found["recorded"], found["source"], found["channel"]) == (True, "record", channel)
        width = (found["to_ms"] - found["from_ms"]) / len(found["high"])
        loud = [(at + 0.5) * width for at, level in enumerate(found["high"]) if level is not None and level > 25]
        spoken = [(began, ended) for which, began, ended in call.speech if which == channel]
        assert loud
        outside = [at for at in loud if not any(began - 60 <= at <= ended + 60 for began, ended in spoken)]
        assert outside == []
        for began, ended in spoken:
            assert any(began <= at <= ended for at in loud)


async def test_a_stretch_of_a_waveform_is_finer_than_the_whole(recorder: Running) -> None:
    call = await written(recorder, turns=2)
    await call.record(recorder.gateway.log, keys_of(recorder))
    whole = await waveform(recorder, call.sid, "in", bins=10)
    close = (await recorder.get(f"/api/sessions/{call.sid}/waveform?channel=in&bins=100&from_ms=500&to_ms=2500")).json()
    assert (close["from_ms"], close["to_ms"], len(close["high"]), len(whole["high"])) == (500, 2_500, 100, 10)
    assert max(close["high"]) <= max(whole["high"])
    backwards = (await recorder.get(f"/api/sessions/{call.sid}/waveform?channel=in&from_ms=5&to_ms=4")).json()
    assert (backwards["low"], backwards["high"]) == ([], [])
    behind = (await recorder.get(f"/api/sessions/{call.sid}/waveform?channel=in&from_ms={10**7}")).json()
    assert (behind["low"], behind["high"]) == ([], [])


async def test_while_recording_is_off_nothing_is_kept_and_the_last_seconds_of_a_live_session_are_shown(
    running: Running, drawn: Waveforms
) -> None:
    began_us = SystemClock().now_us()
    sid = await held(running, 7, at_us=began_us)
    nothing = (await running.get(f"/api/sessions/{sid}/waveform?channel=in")).json()
    assert (nothing["recorded"], nothing["source"], nothing["low"]) == (False, "none", [])
    nc = running.gateway.resources.audio_nc
    for number in range(10):
        frame = frames.pack(frames.PCM16, 0, number, began_us // 1_000 + 20 * (number + 1), b"\xff\x3f" * 320)
        await nc.publish(subjects.audio_in(sid), frame)
    await nc.flush()
    live = await waveform(running, sid, "in", bins=10)
    assert (live["recorded"], live["source"], live["to_ms"], live["high"]) == (False, "live", 200, [63] * 10)
    names = {info.config.name for info in await running.gateway.log.js.streams_info()}
    assert subjects.RECORD_STREAM not in names
    assert (await running.get("/api/vox/status")).json()["recording"] == "off"


async def test_an_installation_that_records_says_so_and_what_passes_is_copied_nowhere(recorder: Running) -> None:
    assert (await recorder.get("/api/vox/status")).json()["recording"] == "on"
    sid = "c" * 32
    nc = recorder.gateway.resources.audio_nc
    await nc.publish(subjects.audio_in(sid), frames.pack(frames.PCM16, 1, 0, 0, b"ab"))
    log = recorder.gateway.log
    async with asyncio.timeout(BOUND_S):
        while (await log.js.stream_info(subjects.MICROPHONE_STREAM)).state.messages < 1:  # it is stored a moment after it is accepted
            await nc.flush()
    assert (await log.js.stream_info(subjects.RECORD_STREAM)).state.messages == 0


async def test_the_streams_of_an_earlier_release_are_brought_to_what_they_should_be(recorder: Running) -> None:
    log = recorder.gateway.log
    audio = (await log.js.stream_info(subjects.MICROPHONE_STREAM)).config
    await log.js.update_stream(audio.evolve(republish=RePublish(src="vx.s.*.audio.*", dest="vxr.{{wildcard(1)}}.{{wildcard(2)}}")))
    record = (await log.js.stream_info(subjects.RECORD_STREAM)).config
    await log.js.update_stream(record.evolve(no_ack=True))
    await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=20_000_000))
    assert (await log.js.stream_info(subjects.MICROPHONE_STREAM)).config.republish is None
    assert not (await log.js.stream_info(subjects.RECORD_STREAM)).config.no_ack


async def test_the_peaks_of_a_recording_are_gone_with_its_key(recorder: Running) -> None:
    call = await written(recorder, turns=2)
    await call.record(recorder.gateway.log, keys_of(recorder))
    assert (await waveform(recorder, call.sid, "in", bins=10))["recorded"] is True
    await recorder.gateway.resources.redis.delete(recordings.name(call.sid))
    found = (await recorder.get(f"/api/sessions/{call.sid}/waveform?channel=in")).json()
    assert (found["recorded"], found["source"], found["low"], found["complete"]) == (False, "none", [], True)


async def test_the_record_is_bounded_in_age_and_bytes(recorder: Running) -> None:
    log = recorder.gateway.log
    await log.ensure_streams(retention_days=1, recording=Recording(hours=2, max_bytes=20_000_000))
    config = (await log.js.stream_info(subjects.RECORD_STREAM)).config
    assert (config.max_age, config.max_bytes, config.persist_mode) == (7_200, 20_000_000, "async")
    settings = replace(Config(), recording="on", recording_hours=3, recording_mb=16)
    assert settings.record == Recording(hours=3, max_bytes=16_000_000)
    assert Config().record is None


async def test_only_so_many_waveforms_are_kept(recorder: Running) -> None:
    resources = recorder.gateway.resources
    waveforms = Waveforms(recorder.gateway.log, DataKeys.of(resources.config, resources.redis))
    for number in range(KEPT + 5):
        await waveforms.waveform(Waveform(sid=f"{number:032x}", channel="in", began_ms=0, live=False, bins=1))
    assert len(waveforms._kept) == KEPT


async def test_without_a_voice_worker_there_is_no_waveform_and_that_is_said(running: Running) -> None:
    sid = await held(running, 3)
    answer = await running.get(f"/api/sessions/{sid}/waveform?channel=in")
    assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
    assert answer.json()["message"] == "No voice worker is there to draw the session's audio."


@pytest.mark.parametrize("asked", [b"", b"{}", b'{"sid": "x", "channel": "in", "began_ms": 0, "live": false, "bins": 1}', None])
async def test_what_nobody_should_ask_for_is_refused(running: Running, drawn: Waveforms, asked: bytes | None) -> None:
    whole = {"sid": "a" * 32, "channel": "in", "began_ms": 0, "live": False, "bins": BINS_LIMIT + 1}
    answer = await running.gateway.log.nc.request(subjects.WAVEFORM, json.dumps(whole).encode() if asked is None else asked, timeout=5)
    assert json.loads(answer.data)["code"] in ("INVALID_ARGUMENT", "NOT_FOUND")


async def waveform(running: Running, sid: str, channel: str, *, bins: int) -> dict[str, Any]:
    """Request a whole waveform until it is complete, and return it."""
    async with asyncio.timeout(BOUND_S * 3):
        while True:
            answer = await running.get(f"/api/sessions/{sid}/waveform?channel={channel}&bins={bins}")
            found: dict[str, Any] = answer.json()
            if answer.status_code == 200 and found["complete"]:  # a worker that does not answer in time is asked again
                return found
