"""The REST interface over a real log: its lists, its refusals, and the correctness of its OpenAPI document."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running
from tests.gateway.stand_in import StandIn
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.store.store import Function, Store

STARTED_US = 1_790_000_000_000_000


async def held(running: Running, number: int, *, ended: bool = False, at_us: int | None = None) -> str:
    """Write a small session into the log and the index."""
    sid = f"{number:032x}"
    ts = STARTED_US + number * 1_000_000 if at_us is None else at_us
    log = running.gateway.log
    gateway, voice = SessionWriter(log, sid, "gateway"), SessionWriter(log, sid, "voice")
    await gateway.append(events.gateway.SessionRequested(mode="local"), ts=ts, cause=None)
    await running.gateway.store.session_opened(sid, ts)
    await voice.append(events.voice.SessionStarted(mode="local", model="m", voice="v", output="audio"), ts=ts + 1_000, cause=1)
    await voice.append(events.voice.UserSaid(text="Hello?", turn=1, source="speech"), ts=ts + 2_000, cause=None)
    await voice.append(
        events.voice.AgentSaid(text="Hi,", unheard=" there.", interrupted=True, turn=1, generation=1), ts=ts + 3_000, cause=None
    )
    await voice.append(events.voice.TurnCompleted(number=1, reason="interrupted"), ts=ts + 4_000, cause=None)
    if ended:
        await voice.append(events.voice.SessionEnded(reason="client", turns=1), ts=ts + 5_000, cause=None)
        await running.gateway.store.session_closed(sid)
    return sid


async def test_the_agent_that_a_session_asked_for_is_listed(running: Running) -> None:
    sid = f"{1:032x}"
    request = events.gateway.SessionRequested(mode="local", agent="advice")
    await SessionWriter(running.gateway.log, sid, "gateway").append(request, ts=STARTED_US, cause=None)
    await running.gateway.store.session_opened(sid, STARTED_US)
    (listed,) = (await running.get("/api/sessions")).json()["sessions"]
    assert (listed["mode"], listed["agent"]) == ("local", "advice")


async def test_a_session_says_why_it_was_silent(running: Running) -> None:
    sid = f"{7:032x}"
    writer, voice = SessionWriter(running.gateway.log, sid, "gateway"), SessionWriter(running.gateway.log, sid, "voice")
    await writer.append(events.gateway.SessionRequested(mode="local"), ts=STARTED_US, cause=None)
    await running.gateway.store.session_opened(sid, STARTED_US)
    journal = VoiceJournal(first=0, inputs=(Taken(at=STARTED_US, seq=1),))
    await voice.append(journal, ts=STARTED_US, cause=None)
    await voice.append(events.voice.UserSaid(text="Tea?", turn=1, source="text"), ts=STARTED_US + 1_000_000, cause=None)
    error = events.voice.Failure(code="TIMED_OUT", message="Nothing came for 30 s.")
    failed = events.voice.ProviderFailed(part="llm", error=error, turn=1)
    await voice.append(failed, ts=STARTED_US + 31_000_000, cause=None)
    await voice.append(events.voice.TurnCompleted(number=1, reason="failed"), ts=STARTED_US + 33_000_000, cause=None)
    await voice.append(events.voice.SessionEnded(reason="client", turns=1), ts=STARTED_US + 34_000_000, cause=None)
    told = (await running.get(f"/api/sessions/{sid}/silences")).json()
    (silence,) = told["silences"]
    assert (silence["from_ms"], silence["to_ms"], silence["cause"], silence["turn"]) == (1_000, 33_000, "model_silent", 1)
    assert "Nothing came for 30 s." in silence["why"]
    assert silence["todo"]
    assert told["live"] is False
    assert (await running.get(f"/api/sessions/{'f' * 32}/silences")).status_code == 404


async def test_sessions_are_listed_newest_first_and_page_by_page(running: Running) -> None:
    sids = [await held(running, number, ended=number == 2) for number in range(5)]
    first = (await running.get("/api/sessions?limit=3")).json()
    assert [one["id"] for one in first["sessions"]] == sids[:1:-1]
    assert first["sessions"][2] == {
        "id": sids[2],
        "mode": "local",
        "started_at_ms": STARTED_US // 1_000 + 2_000,
        "state": "ended",
        "turns": 1,
        "ended_at_ms": STARTED_US // 1_000 + 2_005,
        "ended_reason": "client",
        "account": "local",
    }
    rest = (await running.get(f"/api/sessions?limit=3&before={first['next_before']}")).json()
    assert [one["id"] for one in rest["sessions"]] == sids[1::-1]
    assert "next_before" not in rest


async def test_sessions_that_began_in_one_millisecond_are_never_split_over_pages(running: Running) -> None:
    sids = {await held(running, number, at_us=STARTED_US + number) for number in range(5)}
    page = (await running.get("/api/sessions?limit=2")).json()
    assert {one["id"] for one in page["sessions"]} == sids
    assert (await running.get(f"/api/sessions?before={page['next_before']}")).json() == {"sessions": []}


async def test_the_index_is_built_again_from_the_log_when_valkey_lost_it(running: Running) -> None:
    sids = [await held(running, number, ended=number % 2 == 0) for number in range(300)]
    before = (await running.get("/api/sessions?limit=200")).json()
    await running.gateway.resources.redis.flushall()
    assert (await running.get("/api/sessions?limit=200")).json() == before
    assert len(before["sessions"]) == 200
    assert set(await running.gateway.store.live_sessions()) == set(sids[1::2])


async def test_a_session_is_shown_with_its_transcript(running: Running) -> None:
    sid = await held(running, 1)
    detail = (await running.get(f"/api/sessions/{sid}")).json()
    assert detail["state"] == "live"
    assert [(one["role"], one["turn"], one["text"]) for one in detail["transcript"]] == [("user", 1, "Hello?"), ("assistant", 1, "Hi,")]
    assert (detail["transcript"][1]["unheard"], detail["transcript"][1]["interrupted"]) == (" there.", True)


async def test_what_was_said_in_a_turn_that_went_on_after_a_pause_is_one_entry(running: Running) -> None:
    sid = await held(running, 1)
    log = running.gateway.log
    writer = SessionWriter(log, sid, "voice", end=End(100, (await log.position(sid, "voice"))[0]))
    for text, continues in (("And so,", False), ("my fellow Americans,", True), ("ask not.", True)):
        said = events.voice.UserSaid(text=text, turn=2, source="speech", continues=continues)
        await writer.append(said, ts=STARTED_US + 9_000_000, cause=None)
    detail = (await running.get(f"/api/sessions/{sid}")).json()
    assert [(one["turn"], one["text"]) for one in detail["transcript"]][2:] == [(2, "And so, my fellow Americans, ask not.")]


async def test_the_events_of_a_session_are_read_in_order_page_by_page(running: Running) -> None:
    sid = await held(running, 1, ended=True)
    seen: list[dict[str, Any]] = []
    more = True
    while more:
        page = (await running.get(f"/api/sessions/{sid}/events?limit=2&after={seen[-1]['seq'] if seen else 0}")).json()
        seen += page["events"]
        more = page["more"]
    assert [one["type"] for one in seen] == [
        "session.requested", "session.started", "user.said", "agent.said", "turn.completed", "session.ended"
    ]  # fmt: skip
    assert seen[1]["cause"] == 1
    assert seen[2]["data"] == {"text": "Hello?", "turn": 1, "source": "speech"}
    assert [one["visibility"] for one in seen[:2]] == ["i", "c"]


async def test_a_journal_is_shown_as_what_it_holds(running: Running) -> None:
    sid = await held(running, 1)
    writer = SessionWriter(running.gateway.log, sid, "voice", end=End(100, (await running.gateway.log.position(sid, "voice"))[0]))
    raw = msgspec.Raw(msgspec.msgpack.encode({"type": "delta", "text": "hi", "raw": b"\x00\xff"}))
    await writer.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=None, input=raw),)), ts=1, cause=None)
    shown = (await running.get(f"/api/sessions/{sid}/events")).json()["events"][-1]
    assert shown["data"]["inputs"] == [[1, None, {"type": "delta", "text": "hi", "raw": "AP8="}]]


@pytest.mark.parametrize(
    ("path", "status", "code", "field"),
    [
        ("/api/sessions?limit=0", 422, "INVALID_ARGUMENT", "limit"),
        ("/api/sessions?limit=201", 422, "INVALID_ARGUMENT", "limit"),
        ("/api/sessions?limit=ten", 422, "INVALID_ARGUMENT", "limit"),
        ("/api/sessions?before=-1", 422, "INVALID_ARGUMENT", "before"),
        ("/api/sessions/not-an-id", 422, "INVALID_ARGUMENT", "session_id"),
        (f"/api/sessions/{'f' * 32}", 404, "NOT_FOUND", "session_id"),
        (f"/api/sessions/{'f' * 32}/events", 404, "NOT_FOUND", "session_id"),
        (f"/api/sessions/{'f' * 32}/events?limit=1001", 422, "INVALID_ARGUMENT", "limit"),
        (f"/api/sessions/{'f' * 32}/events?after={2**63}", 422, "INVALID_ARGUMENT", "after"),
        ("/api/nothing", 404, "NOT_FOUND", None),
    ],
)
async def test_a_wrong_request_is_answered_with_what_is_wrong(
    running: Running, path: str, status: int, code: str, field: str | None
) -> None:
    answer = await running.get(path)
    assert answer.status_code == status
    assert answer.json()["code"] == code
    assert answer.json().get("field") == field


async def test_a_person_who_asks_for_a_page_that_there_is_not_gets_a_page(running: Running) -> None:
    browser = {"accept": "text/html,*/*;q=0.8"}
    answer = await running.get("/session/<b>", headers=browser)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Nothing is at <code>/session/&lt;b&gt;</code>" in answer.text
    assert (await running.get("/api/nothing", headers=browser)).json()["code"] == "NOT_FOUND"
    assert (await running.get("/nothing")).json()["code"] == "NOT_FOUND"


async def test_the_catalogue_and_the_status_are_shown(running: Running) -> None:
    store: Store = running.gateway.store
    await store.publish_functions([Function(name="add", description="Adds.", parameters={"type": "object"})])
    shown = (await running.get("/api/vox/functions")).json()
    assert shown["count"] == 1
    assert shown["functions"][0] == {
        "name": "add", "description": "Adds.", "parameters": {"type": "object"}, "kind": "server", "timeout_s": 30.0,
        "effect": "write", "approval": "never", "category": "", "listed": True,
    }  # fmt: skip
    await held(running, 1)
    status = (await running.get("/api/vox/status")).json()
    assert status == {
        "local_available": False,
        "gemini_available": False,
        "claude_available": False,
        "openai_available": False,
        "active_sessions": 1,
        "recording": "off",
    }  # fmt: skip


async def test_readiness_names_each_dependency_and_what_is_missing(running: Running) -> None:
    answer = await running.get("/readyz")
    assert answer.status_code == 503
    found = answer.json()["dependencies"]
    assert list(found) == ["nats", "event_log", "valkey", "voice", "tools", "models"]
    assert [name for name, one in found.items() if one["ok"]] == ["nats", "event_log", "valkey"]
    assert found["voice"]["state"] == "down"
    assert found["voice"]["detail"].startswith("not running. ")
    assert (await running.get("/healthz")).json() == {"ok": True}


async def test_figures_are_shown(running: Running) -> None:
    async with running.client() as client:
        await client.say({"type": "?"})
        await client.until("error")
        text = (await running.get("/metrics")).text
    assert "voxbridge_gateway_sockets 1.0" in text
    assert 'voxbridge_gateway_errors_total{code="INVALID_MESSAGE"} 1.0' in text


async def test_a_complete_installation_is_ready_and_shows_its_voices(complete: Running) -> None:
    answer = await complete.get("/readyz")
    assert answer.status_code == 200
    found = answer.json()
    assert found["ready"] is True
    assert found["dependencies"]["models"] == {"ok": True, "state": "ok", "detail": "qwen: ready, piper-joe: ready"}
    assert found["dependencies"]["voice"]["detail"] == "serves"
    shown = (await complete.get("/api/vox/voices")).json()
    assert shown["local"] == [{"id": "piper-joe", "name": "piper-joe", "gender": "", "style": ""}]
    assert len({voice["id"] for voice in shown["voices"]}) == 16
    assert (await complete.get("/api/vox/status")).json()["local_available"] is True


def examples(schema: Any, *, count: int) -> list[schemathesis.Case[Any]]:
    """Return generated requests for every operation, valid and invalid ones."""
    cases: list[schemathesis.Case[Any]] = []
    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            takes_arguments = bool(operation.definition.raw.get("parameters"))
            if mode is schemathesis.GenerationMode.NEGATIVE and not takes_arguments:
                continue

            @settings(max_examples=count if takes_arguments else 1, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(operation.as_strategy(generation_mode=mode))
            def collect(case: schemathesis.Case[Any]) -> None:
                cases.append(case)

            collect()
    return cases


@pytest.mark.timeout(900)
async def test_every_answer_to_generated_requests_is_as_the_document_says(complete: Running) -> None:
    sid = await held(complete, 1)
    document = (await complete.get("/openapi.json")).json()
    cases = examples(schemathesis.openapi.from_dict(document), count=20)
    operations = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert {case.operation.label for case in cases} == operations
    patience_s = 2 * BOUND_S  # a name like that of an MCP tool is an executor's to refuse, and there is none here: it takes the longest
    async with httpx.AsyncClient(trust_env=False, timeout=patience_s) as client:
        for number, case in enumerate(cases):
            if number % 3 == 0 and "session_id" in case.path_parameters and case.meta is not None and case.meta.generation.mode.is_positive:
                case.path_parameters["session_id"] = sid
            sent = case.as_transport_kwargs(base_url=complete.base)
            asked: dict[str, Any] = {part: sent[part] for part in ("params", "headers", "json", "data") if part in sent}
            if isinstance(asked.get("data"), bytes):
                asked["content"] = asked.pop("data")
            answer = await client.request(sent["method"], sent["url"], **asked)
            wide = answer.status_code == 422 and answer.json().get("limit") == "64 bits"  # a schema of any JSON cannot say that
            unheard = answer.status_code == 504 and answer.json()["code"] == Code.TIMED_OUT  # nobody refuses such a name here
            case.validate_response(answer, excluded_checks=[positive_data_acceptance] * wide + [not_a_server_error] * unheard)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_the_interface_only_reads(running: Running, method: str) -> None:
    async with httpx.AsyncClient(base_url=running.base, trust_env=False) as client:
        answer = await client.request(method, "/api/sessions")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
        assert answer.json()["code"] == "INVALID_MESSAGE"
        foreign = await client.request(method, "/api/sessions", headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403


async def test_a_session_with_events_that_cannot_be_read_is_shown_with_the_others(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await session.says(events.voice.UserSaid(text="before", turn=1, source="text"))
        broken = (await running.gateway.log.js.publish(subjects.event_subject(session.sid, "gateway", True, "text.received"), b"\xc1")).seq
        after = await session.says(events.voice.UserSaid(text="after", turn=2, source="text"))
        while (await client.until("transcript"))["seq"] != after:
            pass
    detail = (await running.get(f"/api/sessions/{session.sid}")).json()
    assert [entry["text"] for entry in detail["transcript"]] == ["before", "after"]
    page = (await running.get(f"/api/sessions/{session.sid}/events")).json()
    (shown,) = [one for one in page["events"] if one["seq"] == broken]
    assert shown["type"] == events.UNREADABLE
    assert f"position {broken} cannot be read" in shown["data"]["unreadable"]
    assert "voxbridge_gateway_events_unreadable_total" in (await running.get("/metrics")).text
