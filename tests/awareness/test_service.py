"""The awareness service on real servers: reports in, entries out, switches, rebuilding."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.awareness.serving import Serving, error, fact, recorder, serving, visit
from tests.eventually import eventually
from voxbridge.sessions.replay import run, same
from voxbridge.shared import awareness_client, events
from voxbridge.shared.awareness_client import AskRebuild, ask
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.awareness import AwarenessChanged
from voxbridge.shared.events.gateway import AwarenessSwitched, SessionRequested
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.writer import SessionWriter

pytestmark = pytest.mark.timeout(120)
LOG = subjects.awareness_log("local")


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)


async def stored(there: Serving, log_id: str = LOG) -> list[events.Recorded]:
    return [one async for one in there.log.read_all(log_id)]


async def raw(there: Serving) -> bytes:
    """Return all bytes of the stream."""
    return b"".join(message.data for message in [m async for page in there.log.pages("~*") for m in page.messages])


async def test_what_is_reported_is_known_and_told_and_replays(config: Config) -> None:
    async with serving(config) as there:
        await there.recorder.report("local", visit("/tools", "Tools"), client="c")
        await there.recorder.report("local", error("x is undefined", page="/tools"), client="c")
        await there.recorder.report("local", fact("project", "Apollo"), client="c")
        known = await there.known()
        assert [one.page for one in known.view.pages] == ["/tools"]
        assert [one.message for one in known.view.errors] == ["x is undefined"]
        assert [(one.key, one.value) for one in known.view.context] == [("project", "Apollo")]
        assert (known.counts, known.off, known.errors) == ({"/tools": 1}, (), 1)
        last = await there.log.last([subjects.event_subject(LOG, "awareness", visible=False, event_type="awareness.changed")])
        told = last[0].event
        assert isinstance(told, AwarenessChanged)
        assert told.view == known.view
        replayed = run(await stored(there), "awareness")
        assert same(replayed)
        assert replayed.state.visits


async def test_how_calls_end_is_an_error_of_the_account_and_counts_once(config: Config) -> None:
    async with serving(config) as there:
        sid, clock = new_session_id(), SystemClock()
        gateway = SessionWriter(there.log, sid, "gateway", stem="t", fenced=False)
        tools = SessionWriter(there.log, sid, "tools")
        await gateway.append(SessionRequested(mode="local", account="ada"), ts=clock.now_us(), cause=None)
        why = Failure(code=Code.INTERNAL, message="GET https://h/x?token=verysecret failed")
        await tools.append(ToolFailed(call_id="c1", name="scan", error=why, ms=3), ts=clock.now_us(), cause=None)

        async def met() -> bool:
            return [one.function for one in (await there.known("ada")).view.errors] == ["scan"]

        await eventually(met)
        (problem,) = (await there.known("ada")).view.errors
        assert (problem.message, problem.session, problem.count) == ("GET https://h/x failed", sid, 1)
        assert not (await there.known()).view.errors
        await tools.append(ToolCompleted(call_id="c2", name="scan", result={}, ms=3), ts=clock.now_us(), cause=None)

        async def gone() -> bool:
            return not (await there.known("ada")).view.errors

        await eventually(gone)


@pytest.mark.parametrize("source", ["pages", "errors", "context"])
async def test_a_source_that_is_off_leaves_prompt_and_log_and_nothing_of_it_is_recorded(config: Config, source: str) -> None:
    marks = {"pages": "planted-page", "errors": "planted-error", "context": "planted-fact"}
    reports: dict[str, Any] = {
        "pages": lambda text: visit(f"/{text}", text),
        "errors": error,
        "context": lambda text: fact("k", text),
    }
    async with serving(config) as there:
        for one, mark in marks.items():
            await there.recorder.report("local", reports[one](mark), client="c")
        await there.known()
        before = await raw(there)
        assert all(mark.encode() in before for mark in marks.values())
        assert await there.recorder.switch("local", source, on=False) == (source,)
        assert (await there.known()).off == (source,)
        seen = await raw(there)
        assert [one for one, mark in marks.items() if mark.encode() in seen] == [one for one in marks if one != source]
        assert await there.recorder.report("local", reports[source]("planted-later"), client="c") == ""
        known = await there.known()
        assert [bool(known.view.pages), bool(known.view.errors), bool(known.view.context)] == [one != source for one in marks]
        assert b"planted-later" not in await raw(there)
        assert same(run(await stored(there), "awareness"))
        assert (await ask(there.log.nc, AskRebuild(account="local"))).equal
        await there.recorder.switch("local", source, on=True)
        await there.recorder.report("local", reports[source]("planted-again"), client="c")
        assert b"planted-again" in msgspec.json.encode((await there.known()).view)


async def test_a_report_that_came_past_the_switch_is_erased(config: Config) -> None:
    async with serving(config) as there:
        await there.recorder.switch("local", "pages", on=False)
        await there.recorder._append("local", visit("/planted-page"))
        await there.known()
        assert b"planted-page" not in await raw(there)
        assert any(isinstance(one.event, AwarenessSwitched) for one in await stored(there))


async def test_the_projection_rebuilt_from_the_log_is_equal(config: Config) -> None:
    async with serving(config) as there:
        await asyncio.gather(*(there.recorder.report("local", visit(f"/{number % 9}"), client="c") for number in range(300)))
        known = await there.known()
        done = await ask(there.log.nc, AskRebuild(account="local"))
        assert done.equal
        assert done.inputs >= 300
        assert await there.known() == known
    async with serving(config) as there:
        assert await there.known() == known


async def test_what_is_reported_without_the_service_waits_and_whoever_asks_is_told_one_sentence(config: Config) -> None:
    async with serving(config) as there:
        await there.known()
    async with serving(config) as other:  # only for its connection
        await other.service.drain()
        await recorder(other.log).report("local", visit("/meanwhile"), client="c")
    async with serving(config) as there:

        async def taken() -> bool:
            log_id = subjects.event_subject(LOG, "awareness", visible=False, event_type="awareness.changed")
            last = await there.log.last([log_id])
            told = last[0].event if last else None
            return isinstance(told, AwarenessChanged) and [one.page for one in told.view.pages] == ["/meanwhile"]

        await eventually(taken)  # nobody asked for it
        nc = there.log.nc
        with pytest.raises(VoxbridgeError) as refused:
            await ask(nc, awareness_client.AskView(account="Not A Name"))
        assert refused.value.code == Code.INVALID_ARGUMENT


async def test_without_the_service_a_question_is_answered_with_one_sentence(config: Config, nats_url: str) -> None:
    import nats

    nc = await nats.connect(nats_url)
    try:
        with pytest.raises(VoxbridgeError) as away:
            await ask(nc, awareness_client.AskView(account="local"))
    finally:
        await nc.close()
    assert (away.value.code, away.value.message) == (Code.UNAVAILABLE, awareness_client.AWAY)


async def test_two_processes_that_take_the_same_reports_take_each_once(config: Config) -> None:
    async with serving(config) as one, serving(config) as two:
        await asyncio.gather(*(one.recorder.report("local", visit(f"/{number}"), client="c") for number in range(40)))
        found = await asyncio.gather(one.known(), two.known(), one.known(), two.known())
        assert all(known.counts == {f"/{number}": 1 for number in range(40)} for known in found)
        assert same(run(await stored(one), "awareness"))


async def test_a_client_reports_sixty_times_a_minute(config: Config) -> None:
    from voxbridge.services.gateway.awareness.recorder import A_MINUTE, Recorder

    async with serving(config) as there:
        now = [0.0]
        limited = Recorder(there.log, SystemClock().now_us, lambda: None, clock=lambda: now[0])
        for _ in range(A_MINUTE):
            assert await limited.report("local", visit("/a"), client="c")
        with pytest.raises(VoxbridgeError) as refused:
            await limited.report("local", visit("/a"), client="c")
        assert (refused.value.code, refused.value.limit) == (Code.RATE_LIMITED, A_MINUTE)
        assert await limited.report("local", visit("/a"), client="another")
        now[0] = 60.0
        assert await limited.report("local", visit(f"/{secrets.token_hex(2)}"), client="c")
