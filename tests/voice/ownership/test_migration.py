"""Calls that are moved from one worker to another on request."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.aio.client import Client

from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn
from tests.voice.conftest import BUSY_S, MakePage, Page, Workers, becomes, left
from tests.voice.model_server import Fault, ModelServer
from tests.voice.ownership.fleet import name, owner, pause_ms, refused, serves, state_of
from tests.voice.realtime_calls import a_turn, asks
from voxbridge.services.voice.ownership import migration
from voxbridge.services.voice.ownership.orphans import Orphans
from voxbridge.services.voice.session.session import MID_TURN_S
from voxbridge.sessions import move
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.store.store import LEASE_MS, Store

pytestmark = pytest.mark.timeout(120)
OPTIONS = ("request", "settings", "team")
"""Options of a session, in its state."""


@pytest.mark.parametrize("agent", ["", "clerk"])
async def test_every_option_of_a_session_survives_a_move(
    workers: Workers, page: Page, store: Store, model_server: ModelServer, tmp_path: Path, agent: str
) -> None:
    (tmp_path / "clerk.yaml").write_text("role: Clerk\nprompt: You keep the books.\nvoice: piper-amy\nllm: local\nstt: local\ntts: local\n")
    options: dict[str, Any] = {"agent": agent} if agent else {"voice": "piper-joe"}
    options |= {"system_prompt": "Speak like a pirate.", "output": "audio", "resume_hash": "ab" * 32, "account": "ann"}
    async with workers.running(agents_dir=tmp_path) as first, workers.running(agents_dir=tmp_path) as second:
        await page.open(**options)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Hello"))
        await page.until(ev.TurnCompleted, reason="completed")
        before, source = state_of(page, first, second), owner(page, first, second)
        report = await move.move(page.log, page.sid)
        after, target = state_of(page, first, second), owner(page, first, second)
        await page.says(gateway.TextReceived(text="Still there?"))
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
        await left(store, page)
    assert {one: getattr(after, one) for one in OPTIONS} == {one: getattr(before, one) for one in OPTIONS}
    assert after.request is not None
    assert {one: getattr(after.request, one) for one in options} == options
    assert (report.session, report.source, report.to) == (page.sid, name(source), name(target))
    assert source is not target
    assert report.pause_ms == pause_ms(page)
    assert report.pause_ms < BUSY_S * 1_000
    assert [(one.reason, one.term) for one in page.told(ev.SessionReleased)] == [("move", 1)]
    assert [(one.worker, one.term) for one in page.told(ev.SessionOwned)] == [(name(source), 1), (name(target), 2)]
    asked = [request for part, request in model_server.requests if part == "llm"]
    assert [request["messages"][0] for request in asked[-2:]] == [asked[-1]["messages"][0]] * 2
    assert "pirate" in asked[-1]["messages"][0]["content"]
    assert [one["content"] for one in asked[-1]["messages"] if one["role"] == "user"] == ["Hello", "Still there?"]
    voices = [request["voice"] for part, request in model_server.requests if part == "tts"]
    assert set(voices) == {"piper-amy" if agent else "piper-joe"}


async def test_a_call_with_a_realtime_model_keeps_its_agent_its_voice_and_its_history_when_it_is_moved(
    workers: Workers, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triage.yaml").write_text("model: gemini:gemini-3.8-live\nrole: Triage\nprompt: You send people on.\nvoice: Aoede\n")
    async with GeminiServer(tmp_path, Options()) as google:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", google.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(google.ca_file))
        monkeypatch.setenv("GEMINI_API_KEY", "a-key-for-tests")
        async with workers.running(agents_dir=tmp_path) as first, workers.running(agents_dir=tmp_path) as second:
            await page.open(agent="triage", system_prompt="Speak like a pirate.", resume_hash="ab" * 32)
            await page.until(ev.ProviderConnected)
            google.script(Turn(says="Hello Ann."))
            await a_turn(page, "I am Ann.")
            before = state_of(page, first, second)
            report = await move.move(page.log, page.sid)
            after = state_of(page, first, second)
            google.script(Turn(says="Still here."))
            await asks(page, "Still there?")
            await page.until(ev.TurnCompleted, 2, reason="completed")
            await page.ends()
    assert {one: getattr(after, one) for one in OPTIONS} == {one: getattr(before, one) for one in OPTIONS}
    assert report.pause_ms == pause_ms(page)
    old, new = google.sessions
    assert (old.voice, old.instruction) == (new.voice, new.instruction) == ("Aoede", new.instruction)
    assert "pirate" in new.instruction
    assert [(one.agent, one.voice, one.text) for one in page.told(ev.AgentSaid)] == [
        ("triage", "Aoede", "Hello Ann."),
        ("triage", "Aoede", "Still here."),
    ]


async def test_a_long_turn_is_moved_in_its_middle_and_goes_on(workers: Workers, page: Page, model_server: ModelServer) -> None:
    model_server.script("llm", [Fault.HANG], ["It is noon."])
    async with workers.running(), workers.running():
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await model_server.until_asked("llm")
        begun = time.monotonic()
        await move.move(page.log, page.sid)
        assert time.monotonic() - begun >= MID_TURN_S - 0.1
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]


async def test_the_worker_that_is_named_gets_the_call(workers: Workers, pages: MakePage) -> None:
    moved = [pages() for _ in range(4)]
    async with workers.running() as first:
        await asyncio.gather(*(one.open("echo") for one in moved))
        await asyncio.gather(*(one.until(ev.SessionStarted) for one in moved))
        async with workers.running(), workers.running() as named:
            reports = await asyncio.gather(*(move.move(one.log, one.sid, name(named)) for one in moved))
            assert {(one.source, one.to) for one in reports} == {(name(first), name(named))}
            assert (first.stats()["sessions"], named.stats()["sessions"]) == (0, 4)
            assert named.migrations.promised() == set()
            await asyncio.gather(*(one.ends() for one in moved))


async def test_a_call_whose_new_worker_does_not_take_it_is_left_to_it_for_three_seconds_and_then_anybodys(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = list[str]()
    monkeypatch.setattr(Orphans, "handed", lambda _, sid: handed.append(sid))
    async with workers.running() as first, workers.running() as second:
        await page.open("echo")
        await page.until(ev.SessionStarted)
        target = second if owner(page, first, second) is first else first
        report = await move.move(page.log, page.sid, name(target))
        await page.ends()
    assert handed == [page.sid]
    assert LEASE_MS - 500 <= report.pause_ms < LEASE_MS + BUSY_S * 1_000
    assert [one.term for one in page.told(ev.SessionOwned)] == [1, 3], "a term was spent on the one that did not come"


async def test_without_room_elsewhere_nothing_is_given_up(workers: Workers, pages: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "LISTEN_S", 3.0)
    page, filler = pages(), pages()
    async with workers.running(max_sessions=1) as first:
        await page.open("echo")
        await page.until(ev.SessionStarted)
        alone = await refused(page.log, page.sid)
        missing = await refused(page.log, page.sid, "voice-00000000")
        async with workers.running(max_sessions=1) as second:
            await filler.open("echo")
            await filler.until(ev.SessionStarted)
            full = await refused(page.log, page.sid)
            named = await refused(page.log, page.sid, name(second))
        itself = await refused(page.log, page.sid, name(first))
        assert list(first._sessions) == [page.sid]
        assert page.told(ev.SessionReleased) == []
        await page.ends()
    assert [one.code for one in (alone, missing, full, named, itself)] == [
        "OVERLOADED",
        "NOT_FOUND",
        "OVERLOADED",
        "OVERLOADED",
        "INVALID_ARGUMENT",
    ]
    assert f"{name(second)} has no room" in named.message
    assert f"Workers: {name(first)} (room for 0)" in missing.message
    assert missing.field == "to"


async def test_an_ended_session_and_one_that_nobody_holds_are_not_moved(
    workers: Workers, pages: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "ANSWER_S", 0.3)
    page, nobodys = pages(), pages()
    await nobodys.open("echo", age_s=60)
    nobody = await refused(nobodys.log, nobodys.sid)
    async with workers.running():
        await page.open("echo")
        await page.until(ev.SessionStarted)
        await page.ends()
        ended = await refused(page.log, page.sid)
        unheld = await refused(nobodys.log, new_session_id())
    assert [one.code for one in (nobody, ended, unheld)] == ["UNAVAILABLE", "CONFLICT", "UNAVAILABLE"]
    assert "has ended (client)" in ended.message
    assert "No voice worker is running" in nobody.message


async def test_room_is_promised_no_more_than_there_is_and_for_no_longer_than_said(
    workers: Workers, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "PROMISE_S", 3.0)
    first, second = new_session_id(), new_session_id()

    async def asked(sid: str, to: str) -> migration.Room:
        answer = await connection.request(migration.ROOM, msgspec.json.encode(migration.Ask(sid, to)), timeout=5)
        return msgspec.json.decode(answer.data, type=migration.Room)

    async with workers.running(max_sessions=1) as worker:
        await serves(worker)
        told = [await asked(sid, name(worker)) for sid in (first, first, second)]
        assert [one.free for one in told] == [True, True, False]
        assert (worker.migrations.promised(), worker.stats()["room"]) == ({first}, 0)

        async def lapsed() -> bool:
            return not worker.migrations.promised()

        await becomes(lapsed)
        assert (await asked(second, name(worker))).free


async def test_a_worker_moves_so_many_at_once_and_each_session_once(
    workers: Workers, pages: MakePage, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "AT_ONCE", 1)
    model_server.script("llm", [Fault.HANG], ["It is noon."])
    busy, idle = pages(), pages()
    async with workers.running() as first:
        await asyncio.gather(busy.open(), idle.open("echo"))
        await asyncio.gather(busy.until(ev.SessionStarted), idle.until(ev.SessionStarted))
        await busy.says(gateway.TextReceived(text="What time is it?"))
        await model_server.until_asked("llm")
        async with workers.running():
            moved = asyncio.create_task(move.move(busy.log, busy.sid))

            async def under_way() -> bool:
                return busy.sid in first.migrations._leaving

            await becomes(under_way)
            beyond, twice = await refused(idle.log, idle.sid), await refused(busy.log, busy.sid)
            assert (await moved).session == busy.sid
            await move.move(idle.log, idle.sid)
            await asyncio.gather(busy.ends(), idle.ends())
    assert [(one.code, one.limit) for one in (beyond, twice)] == [("OVERLOADED", 1), ("CONFLICT", None)]


async def test_who_waits_too_long_for_a_session_to_be_given_up_is_told_so_and_it_is_moved_all_the_same(
    workers: Workers, page: Page, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "LEAVE_S", 0.2)
    model_server.script("llm", [Fault.HANG], ["It is noon."])
    async with workers.running(), workers.running():
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await model_server.until_asked("llm")
        late = await refused(page.log, page.sid)
        await page.until(ev.SessionRestored)
        await page.ends()
    assert late.code == "TIMED_OUT"


async def test_a_question_that_cannot_be_read_is_refused_and_another_workers_session_is_not_answered_for(
    workers: Workers, connection: Client
) -> None:
    async with workers.running():
        answer = await connection.request(migration.MOVE, b"{", timeout=5)
        assert json.loads(answer.data)["code"] == "INVALID_ARGUMENT"
        answer = await connection.request(migration.MOVE, b'{"sid": "nothing"}', timeout=5)
        assert json.loads(answer.data)["code"] == "NOT_FOUND"
        with pytest.raises(TimeoutError):
            await connection.request(migration.MOVE, msgspec.json.encode(migration.Ask(new_session_id())), timeout=0.3)
