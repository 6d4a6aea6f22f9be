"""Access control: beyond loopback no call can be read or started without a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.eventually import BOUND_S
from tests.gateway.conftest import Client, Running, Serve
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.rest.app import application
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.journal import VoiceJournal
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Wishes

OPEN = {"/healthz", "/readyz"}
"""Paths that need no token: liveness, and whether all is ready."""

DOORS = ("", "/events", "/events?journals=false", "/silences", "/state", "/waveform?channel=in")
"""Paths that read a session."""
QUIET = {door: door for door in DOORS} | {"/events": "/events?journals=false"}
"""Paths with which an administrator gets the same answer as an account."""


@pytest.fixture
async def guarded(serve: Serve, nats_url: str, redis_url: str) -> Running:
    """A gateway that accepts another host, as behind a proxy."""
    return await serve(nats_url, redis_url, allowed_hosts="voice.example.com")


@pytest.fixture
async def running(guarded: Running) -> Running:
    """The gateway of `voice`."""
    return guarded


def admin(door: Running) -> str:
    return (door.gateway.resources.config.data_dir / "admin.token").read_text().strip()


def token(door: Running, **wishes: Any) -> str:
    now_s = door.gateway.resources.clock.now_us() // 1_000_000
    return access_tokens.sign(access_tokens.terms(Wishes(**wishes), now_s=now_s, modes=("local", "echo", "gemini")), admin(door))


async def asked(door: Running, method: str, path: str, given: str = "", **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {given}"} if given else {}
    async with httpx.AsyncClient(base_url=door.base, trust_env=False, timeout=BOUND_S, headers=headers) as client:
        return await client.request(method, path, **options)


async def refusal(client: Client, **start: Any) -> dict[str, Any]:
    await client.say({"type": "start", "mode": "echo", **start})
    error = await client.until("error")
    assert await client.close_code() == 4003
    return error


async def test_every_route_that_is_not_open_to_all_wants_a_token(guarded: Running) -> None:
    paths = application(guarded.gateway).openapi()["paths"]
    routes = {(path, method.upper()) for path, methods in paths.items() for method in methods if path not in OPEN}
    assert len(routes) >= 13
    for path, method in sorted(routes):
        answer = await asked(guarded, method, path.replace("{session_id}", "0" * 32).replace("{provider}", "gemini"))
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED"), path
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_the_token_is_asked_for_whatever_the_host_says(guarded: Running) -> None:
    for host in (f"127.0.0.1:{guarded.port}", "voice.example.com"):
        assert (await guarded.get("/api/sessions", headers={"Host": host})).status_code == 401


async def test_readiness_tells_strangers_no_more_than_whether(guarded: Running) -> None:
    told = (await guarded.get("/readyz")).json()
    assert told == {"ready": False, "dependencies": {}}
    assert (await asked(guarded, "GET", "/readyz", token(guarded))).json()["dependencies"] == {}
    assert "nats" in (await asked(guarded, "GET", "/readyz", admin(guarded))).json()["dependencies"]


async def test_a_call_is_started_with_a_token_and_with_none_else(guarded: Running, voice: StandIn) -> None:
    for wrong in ({}, {"token": "x" * 43}, {"token": token(guarded)[:-1] + "!"}, {"token": admin(guarded)[:-1]}):
        async with guarded.client() as client:
            assert (await refusal(client, **wrong))["code"] == "UNAUTHENTICATED"
    assert not voice.sessions
    async with guarded.client() as client:
        await client.started(token=token(guarded, account="ada"))
    async with guarded.client(additional_headers={"Authorization": f"Bearer {token(guarded, account='bob')}"}) as client:
        await client.started()
    async with guarded.client(v1=False) as client:
        await client.started(token=admin(guarded))
    requests = [(await voice.requests.get()).event for _ in range(3)]
    assert [one.account for one in requests if isinstance(one, events.gateway.SessionRequested)] == ["ada", "bob", "local"]


async def test_a_session_is_resumed_with_its_own_token_alone(guarded: Running, voice: StandIn) -> None:
    async with guarded.client() as client:
        ready = await client.started(token=token(guarded))
        client.socket.transport.abort()
    async with guarded.client() as client:
        await client.resume(ready, ready["seq"])


@pytest.mark.parametrize(
    ("wishes", "start", "field"),
    [
        ({"agents": ("triage",)}, {}, "agent"),
        ({"agents": ("triage",)}, {"agent": "closer"}, "agent"),
        ({"modes": ("local",)}, {}, "mode"),
        ({"modes": ("echo",)}, {"agent": "triage"}, "agent"),
        ({"models": ("small",)}, {"model": "large"}, "model"),
        ({}, {"model": "large"}, "model"),
        ({}, {"systemPrompt": "Be rude."}, "systemPrompt"),
    ],
)
async def test_a_token_is_for_what_it_says(guarded: Running, wishes: dict[str, Any], start: dict[str, Any], field: str) -> None:
    async with guarded.client() as client:
        error = await refusal(client, token=token(guarded, **wishes), **start)
    assert (error["code"], error["field"], error["retryable"]) == ("PERMISSION_DENIED", field, False)


@pytest.mark.parametrize(
    ("wishes", "start"),
    [
        ({}, {}),
        ({"modes": ("local",), "agents": ("triage",)}, {"agent": "triage"}),
        ({"modes": ("echo",)}, {}),
        ({"models": ("small",), "prompt": True}, {"model": "small", "systemPrompt": "Be kind."}),
    ],
)
async def test_what_a_token_allows_is_done(guarded: Running, voice: StandIn, wishes: dict[str, Any], start: dict[str, Any]) -> None:
    async with guarded.client() as client:
        await client.started(token=token(guarded, **wishes), **start)


@pytest.mark.parametrize(("calls", "made"), [(1, "one call, and it was made"), (2, "2 calls, and they were made")])
async def test_a_token_starts_as_many_calls_as_it_is_for(guarded: Running, voice: StandIn, calls: int, made: str) -> None:
    given = token(guarded, calls=calls)
    for _ in range(calls):
        async with guarded.client() as client:
            await client.started(token=given)
    async with guarded.client() as client:
        error = await refusal(client, token=given)
    assert (error["code"], error["field"], error["limit"]) == ("PERMISSION_DENIED", "token", calls)
    assert error["message"] == f"This access token was for {made}."
    key = f"vx:token:{access_tokens.read(given, admin(guarded), now_s=0).id}"
    assert 0 < await guarded.gateway.resources.redis.ttl(key) <= access_tokens.USUAL_S


async def test_sessions_are_told_to_those_whose_they_are(guarded: Running, voice: StandIn) -> None:
    ids = {}
    for account in ("ada", "bob"):
        async with guarded.client() as client:
            ids[account] = (await client.started(token=token(guarded, account=account)))["sessionId"]
    for account, other in (("ada", "bob"), ("bob", "ada")):
        given = token(guarded, account=account)
        listed = (await asked(guarded, "GET", "/api/sessions", given)).json()["sessions"]
        assert [(one["id"], one["account"]) for one in listed] == [(ids[account], account)]
        assert (await asked(guarded, "GET", f"/api/sessions/{ids[account]}", given)).status_code == 200
        assert (await asked(guarded, "GET", f"/api/sessions/{ids[other]}", given)).status_code == 404
    everything = (await asked(guarded, "GET", "/api/sessions", admin(guarded))).json()["sessions"]
    assert {one["id"] for one in everything} == set(ids.values())
    for path in ("/metrics", "/api/config/keys"):
        assert (await asked(guarded, "GET", path, token(guarded))).status_code == 403
    for path in ("/api/agents", "/api/vox/functions"):
        assert (await asked(guarded, "GET", path, token(guarded))).status_code == 200


async def test_every_door_to_a_session_is_tried_with_tokens(guarded: Running) -> None:
    paths = application(guarded.gateway).openapi()["paths"]
    reading = {path.partition("{session_id}")[2] for path, methods in paths.items() if "{session_id}" in path and "get" in methods}
    assert {door.partition("?")[0] for door in DOORS} == reading


@pytest.mark.parametrize("door", DOORS)
async def test_an_account_reads_its_own_calls_and_of_others_not_even_that_there_are_any(
    guarded: Running, complete: Running, voice: StandIn, door: str
) -> None:
    ids = {}
    for account in ("ada", "local"):
        async with guarded.client() as client:
            given = token(guarded, account=account) if account != "local" else admin(guarded)
            ids[account] = (await client.started(token=given))["sessionId"]
    for account, other in (("ada", "bob"), ("local", "ada")):
        own = await asked(guarded, "GET", f"/api/sessions/{ids[account]}{door}", token(guarded, account=account))
        assert own.status_code == 200
        assert own.content == (await asked(guarded, "GET", f"/api/sessions/{ids[account]}{QUIET[door]}", admin(guarded))).content
        foreign, none = [
            await asked(guarded, "GET", f"/api/sessions/{sid}{door}", token(guarded, account=other)) for sid in (ids[account], "0" * 32)
        ]
        assert (foreign.status_code, foreign.json()["code"]) == (404, "NOT_FOUND")
        assert foreign.content == none.content
        assert foreign.headers.keys() == none.headers.keys()


async def test_an_account_reads_no_journals_and_of_others_is_not_told_that_there_are_some(guarded: Running, voice: StandIn) -> None:
    async with guarded.client() as client:
        sid = (await client.started(token=token(guarded, account="ada")))["sessionId"]
    await guarded.gateway.idle()
    journal = VoiceJournal(first=0, inputs=())
    last, _ = await guarded.gateway.log.position(sid, "voice")
    writer = SessionWriter(guarded.gateway.log, sid, "voice", stem="test", end=End(1_000, last))
    written = await writer.append(journal, ts=1, cause=None)

    async def read(query: str, given: str) -> httpx.Response:
        return await asked(guarded, "GET", f"/api/sessions/{sid}/events{query}", given)

    for query, shown in (("", True), ("?journals=true", True), ("?journals=false", False)):
        assert (written in [one["seq"] for one in (await read(query, admin(guarded))).json()["events"]]) == shown
    for query in ("", "?journals=false"):
        facts = [one["seq"] for one in (await read(query, token(guarded, account="ada"))).json()["events"]]
        assert facts
        assert written not in facts
    refused = await read("?journals=true", token(guarded, account="ada"))
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (403, "PERMISSION_DENIED", "journals")
    assert (await read("?journals=true", token(guarded, account="bob"))).status_code == 404


async def test_a_call_that_is_nobodys_is_for_administrators_alone(guarded: Running, voice: StandIn) -> None:
    async with guarded.client() as client:
        sid = (await client.started(token=token(guarded, account="ada")))["sessionId"]
    await guarded.gateway.idle()
    assert (await asked(guarded, "GET", f"/api/sessions/{sid}/silences", token(guarded, account="ada"))).status_code == 200
    log = guarded.gateway.log
    await log.js.purge_stream(subjects.EVENT_STREAM, subject=f"vx.s.{sid}.>")
    erased = events.operator.SessionErased(by="ticket 311", began=1, mode="echo", events=9)
    await SessionWriter(log, sid, "operator").append(erased, ts=2, cause=None)
    for given in (token(guarded, account="ada"), token(guarded, account="local")):
        assert (await asked(guarded, "GET", "/api/sessions", given)).json()["sessions"] == []
        for door in DOORS:
            answer = await asked(guarded, "GET", f"/api/sessions/{sid}{door}", given)
            assert (answer.status_code, answer.json()["message"]) == (404, "There is no session with this id.")
    assert (await asked(guarded, "GET", f"/api/sessions/{sid}", admin(guarded))).json()["ended_reason"] == "erased"


async def test_an_access_token_hands_nobody_over(guarded: Running, voice: StandIn) -> None:
    async with guarded.client() as client:
        sid = (await client.started(token=token(guarded, account="ada")))["sessionId"]
    for one in (sid, "0" * 32):
        answer = await asked(guarded, "POST", f"/api/sessions/{one}/handoff", token(guarded, account="ada"), json={"to": "triage"})
        assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")


async def test_an_administrator_makes_tokens_over_http_and_nobody_else_does(guarded: Running, voice: StandIn) -> None:
    answer = await asked(guarded, "POST", "/api/tokens", admin(guarded), json={"account": "ada", "modes": ["echo"], "seconds": 60})
    assert answer.status_code == 201
    made = answer.json()
    assert made["account"] == "ada"
    assert access_tokens.read(made["token"], admin(guarded), now_s=made["expires_at_ms"] // 1_000 - 1).modes == ("echo",)
    async with guarded.client() as client:
        await client.started(token=made["token"])
    for body, field in (({"seconds": 1}, "seconds"), ({"sconds": 60}, "body"), ([], "body"), ({"modes": ["loud"]}, "modes")):
        answer = await asked(guarded, "POST", "/api/tokens", admin(guarded), json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await asked(guarded, "POST", "/api/tokens", made["token"], json={})).status_code == 403


async def test_a_new_administrators_token_voids_all_that_were_made(guarded: Running) -> None:
    given, file = token(guarded), guarded.gateway.resources.config.data_dir / "admin.token"
    assert (await asked(guarded, "GET", "/api/sessions", given)).status_code == 200
    file.write_text("n" * 43)
    assert (await asked(guarded, "GET", "/api/sessions", given)).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Proto"])
async def test_what_came_through_a_proxy_is_not_the_owners_even_on_loopback(
    serve: Serve, nats_url: str, redis_url: str, header: str, tmp_path: Path
) -> None:
    door = await serve(nats_url, redis_url)
    assert (await door.get("/api/config/keys")).status_code == 200
    through = {header: "203.0.113.9"}
    for method, path in (("GET", "/api/config/keys"), ("POST", "/api/config/keys"), ("GET", "/api/sessions"), ("GET", "/metrics")):
        assert (await asked(door, method, path, headers=through)).status_code == 401
    async with connect(f"ws://127.0.0.1:{door.port}/ws/vox", additional_headers=through) as socket:
        assert (await refusal(Client(socket)))["code"] == "UNAUTHENTICATED"
    assert (await door.get("/api/config/keys", headers={**through, "Authorization": f"Bearer {admin(door)}"})).status_code == 200


async def test_an_access_token_counts_where_none_is_asked_for(serve: Serve, nats_url: str, redis_url: str) -> None:
    door = await serve(nats_url, redis_url)
    answer = await asked(door, "POST", "/api/tokens", json={"account": "ada"})
    assert (await asked(door, "GET", "/metrics", answer.json()["token"])).status_code == 403
    assert (await asked(door, "GET", "/metrics")).status_code == 200


async def test_without_a_token_that_can_be_used_everything_is_closed(guarded: Running) -> None:
    given, file = token(guarded), guarded.gateway.resources.config.data_dir / "admin.token"
    file.unlink()
    for one in ("", given, "n" * 43):
        assert (await asked(guarded, "GET", "/api/sessions", one)).status_code == 401
    file.write_text("short")
    for one in ("", given):
        assert (await asked(guarded, "GET", "/api/sessions", one)).status_code == 503
    with pytest.raises(VoxbridgeError) as caught:
        guarded.gateway.access.admins.check(None)
    assert caught.value.code is Code.UNAVAILABLE


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/runs"),
        ("GET", "/api/runs/r1"),
        ("POST", "/api/runs/r1/cancel"),
        ("POST", "/api/runs/r1/answer"),
        ("GET", "/api/vox/approvals"),
        ("POST", "/api/vox/approvals/a1"),
        ("GET", "/api/vox/tasks?ended=true"),
    ],
)
async def test_an_access_token_reaches_no_run_task_or_approval(guarded: Running, method: str, path: str) -> None:
    refused = await asked(guarded, method, path, token(guarded, account="local"), json={"text": "go on", "answer": "approved"})
    assert (refused.status_code, refused.json()["code"]) == (403, "PERMISSION_DENIED")
