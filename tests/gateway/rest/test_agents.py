"""Agents over HTTP: the list of agents, errors in their files, and the handoff of a live conversation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.eventually import eventually
from tests.gateway.conftest import Running, keys_of_voice
from tests.gateway.rest.test_config import ask, gateway
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.core.messages import AGENT_LIMIT, MODES
from voxbridge.services.gateway.rest.bodies import BODY_LIMIT
from voxbridge.services.voice.core.capabilities import DEFAULT_MODELS, TEXT_MODELS
from voxbridge.shared import events
from voxbridge.shared.agents.model import REASON_LIMIT
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.bus import subjects
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

CAST = ("triage", "advisor")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two agents and a pipeline."""
    found = tmp_path / "agents"
    (found / "pipelines").mkdir(parents=True)
    (found / "triage.yaml").write_text(
        "role: Front desk\ndescription: Picks up.\nprompt: A secret plan.\nvoice: Aoede\nmodel: gemini:gemini-live\nhandoffs: [advisor]\n"
    )
    (found / "advisor.yaml").write_text("role: Adviser\nllm: anthropic\nlanguage: en\ntools: []\n")
    (found / "pipelines" / "advice.yaml").write_text(
        "description: Two in a row.\nstages:\n  - {phase: first, agent: triage, next: second}\n  - {phase: second, agent: advisor}\n"
    )
    return found


@pytest.fixture
def keys(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide keys for all providers of the agents."""

    async def usable() -> dict[str, bool]:
        return dict.fromkeys(PROVIDERS, True)

    monkeypatch.setattr(running.gateway.keys, "usable", usable)


async def begun(
    running: Running, number: int, *, agents: tuple[str, ...] = CAST, started: bool = True, ended: bool = False, handing: bool = False
) -> str:
    """Write the beginning of a session into the log."""
    sid = f"{number:032x}"
    log = running.gateway.log
    await SessionWriter(log, sid, "gateway").append(events.gateway.SessionRequested(mode="local"), ts=1, cause=None)
    voice = SessionWriter(log, sid, "voice")
    if started:
        first = agents[0] if agents else ""
        ready = events.voice.SessionStarted(mode="local", model="m", voice="v", output="audio", agent=first, agents=agents)
        await voice.append(ready, ts=2, cause=None)
    if handing:
        await voice.append(events.voice.HandoffStarted(source="triage", target="advisor", by="agent"), ts=3, cause=None)
    if ended:
        await voice.append(events.voice.SessionEnded(reason="idle"), ts=3, cause=None)
    return sid


def to(sid: str) -> str:
    return f"/api/sessions/{sid}/handoff"


async def asked_for(log: Log, sid: str) -> list[events.Event]:
    return [one.event async for one in log.read_all(sid, writer="gateway", types=("handoff.requested",))]


async def test_agents_are_shown_without_their_prompts_and_with_the_keys_that_they_lack(
    nats_url: str, redis_url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with gateway(nats_url, redis_url, tmp_path / "data", agents_dir=folder) as running:
        answer = await running.get("/api/agents")
        assert "secret plan" not in answer.text
        shown = answer.json()
        advisor, triage = shown["agents"]
        assert triage == {
            "name": "triage",
            "role": "Front desk",
            "description": "Picks up.",
            "scope": "",
            "voice": "Aoede",
            "language": "",
            "kind": "realtime",
            "models": {"realtime": "gemini:gemini-live"},
            "output": "audio",
            "tools": None,
            "handoffs": ["advisor"],
            "missing": ["gemini"],
            "expert": False,
            "knowledge": [],
        }
        assert (advisor["kind"], advisor["tools"], advisor["missing"]) == ("cascade", [], ["anthropic"])
        assert advisor["models"] == {"stt": "local", "llm": "anthropic", "tts": "local"}
        assert shown["pipelines"] == [
            {
                "name": "advice",
                "description": "Two in a row.",
                "hand_back": True,
                "stages": [{"phase": "first", "agent": "triage", "next": ["second"]}, {"phase": "second", "agent": "advisor", "next": []}],
                "missing": ["gemini", "anthropic"],
            }
        ]
        assert shown["problems"] == []
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
        await keys_of_voice(running).tell()
        assert (await running.get("/api/agents")).json()["pipelines"][0]["missing"] == ["gemini"]


async def test_a_wrong_file_is_named_with_its_line_and_the_agents_before_it_stay(
    nats_url: str, redis_url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxbridge.shared.agents.files.SCAN_EVERY_S", 0)
    async with gateway(nats_url, redis_url, tmp_path / "data", agents_dir=folder) as running:
        assert len((await running.get("/api/agents")).json()["agents"]) == 2
        (folder / "advisor.yaml").write_text("role: Adviser\npromt: Oh dear.\n")
        shown = (await running.get("/api/agents")).json()
    assert [one["name"] for one in shown["agents"]] == ["advisor", "triage"]
    (problem,) = shown["problems"]
    assert (problem["path"], problem["line"]) == (str(folder / "advisor.yaml"), 2)
    assert "promt" in problem["message"]


@pytest.mark.usefixtures("keys")
async def test_a_handoff_that_is_asked_for_is_an_event_of_the_gateway_and_reaches_the_voice_service(
    running: Running, voice: StandIn
) -> None:
    async with running.client() as client:
        ready = await client.started()
        session = await voice.session()
        await session.says(events.voice.SessionStarted(mode="local", model="m", voice="v", output="audio", agent="triage", agents=CAST))
        answer = await ask(running, "POST", to(ready["sessionId"]), json={"to": "advisor", "reason": "a loan"})
        assert answer.status_code == 202
        found = await asked_for(running.gateway.log, session.sid)
        assert found == [events.gateway.HandoffRequested(target="advisor", reason="a loan")]
        subject = subjects.event_subject(session.sid, "gateway", visible=False, event_type="handoff.requested")
        assert [one.seq for one in await running.gateway.log.last([subject])] == [answer.json()["seq"]]
        await session.says(events.voice.HandoffStarted(source="triage", target="advisor", reason="a loan", by="operator"))
        assert (await client.until("agent"))["phase"] == "started"
        await session.says(events.voice.HandoffCompleted(source="triage", target="advisor", voice="joe", model="m", ms=4, history="log"))
        assert (await client.until("agent"))["voice"] == "joe"
        again = await ask(running, "POST", to(session.sid), json={"to": "advisor"})
        assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
        back = await ask(running, "POST", to(session.sid), json={"to": "triage"})
        assert back.status_code == 202

        async def both() -> bool:
            return len(await asked_for(running.gateway.log, session.sid)) == 2

        await eventually(both)


@pytest.mark.parametrize(
    ("state", "body", "status", "code", "field"),
    [
        ({"ended": True}, {"to": "advisor"}, 404, "NOT_FOUND", "session_id"),
        ({"started": False}, {"to": "advisor"}, 409, "CONFLICT", "session_id"),
        ({"agents": ()}, {"to": "advisor"}, 409, "CONFLICT", "session_id"),
        ({}, {"to": "triage"}, 409, "CONFLICT", "to"),
        ({"handing": True}, {"to": "advisor"}, 409, "CONFLICT", "session_id"),
        ({"handing": True}, {"to": "triage"}, 409, "CONFLICT", "session_id"),
        ({}, {"to": "adviser"}, 422, "INVALID_ARGUMENT", "to"),
        ({}, {}, 422, "INVALID_ARGUMENT", "body"),
        ({}, [], 422, "INVALID_ARGUMENT", "body"),
        ({}, {"to": ""}, 422, "INVALID_ARGUMENT", "body"),
        ({}, {"to": "x" * (AGENT_LIMIT + 1)}, 422, "INVALID_ARGUMENT", "body"),
        ({}, {"to": "advisor", "reason": "x" * (REASON_LIMIT + 1)}, 422, "INVALID_ARGUMENT", "body"),
        ({}, {"to": "advisor", "more": "x" * BODY_LIMIT}, 422, "TOO_LARGE", "body"),
    ],
)
async def test_a_handoff_that_cannot_be_is_refused_and_leaves_nothing_in_the_log(
    running: Running, state: dict[str, Any], body: Any, status: int, code: str, field: str
) -> None:
    sid = await begun(running, 7, **state)
    answer = await ask(running, "POST", to(sid), json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (status, code, field)
    assert await asked_for(running.gateway.log, sid) == []


@pytest.mark.usefixtures("keys")
async def test_the_longest_reason_is_taken_and_the_nearest_name_is_offered(running: Running) -> None:
    sid = await begun(running, 8)
    assert "Did you mean advisor?" in (await ask(running, "POST", to(sid), json={"to": "adviser"})).json()["message"]
    body = {"to": "advisor", "reason": "x" * REASON_LIMIT}
    assert (await ask(running, "POST", to(sid), json=body)).status_code == 202


async def test_a_handoff_to_an_agent_without_a_key_is_refused_and_leaves_nothing_in_the_log(
    nats_url: str, redis_url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with gateway(nats_url, redis_url, tmp_path / "data", agents_dir=folder) as running:
        sid = await begun(running, 6, agents=("advisor", "triage"))
        answer = await ask(running, "POST", to(sid), json={"to": "triage"})
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (503, "PROVIDER_UNAVAILABLE", "to")
        assert "no key for gemini" in answer.json()["message"]
        assert await asked_for(running.gateway.log, sid) == []


async def test_an_unknown_session_is_not_handed_over(running: Running) -> None:
    answer = await ask(running, "POST", to("f" * 32), json={"to": "advisor"})
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert (await ask(running, "POST", to("not-an-id"), json={"to": "advisor"})).status_code == 422


async def test_only_an_administrator_hands_over_where_others_may_reach_the_gateway(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")
    async with gateway(nats_url, redis_url, tmp_path, allowed_hosts="voice.example") as running:
        await keys_of_voice(running).tell()
        sid = await begun(running, 9)
        refused = await ask(running, "POST", to(sid), json={"to": "advisor"})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        token = (tmp_path / "admin.token").read_text().strip()
        taken: httpx.Response = await ask(running, "POST", to(sid), json={"to": "advisor"}, headers={"Authorization": f"Bearer {token}"})
        assert taken.status_code == 202
        assert (await running.get("/api/agents")).status_code == 401


def test_the_models_that_studio_names_are_those_that_a_session_gets() -> None:
    text = (Path(__file__).parents[3] / "studio" / "src" / "talk" / "choice.ts").read_text()
    shown = dict(re.findall(r'\{ mode: "(\w+)",.*? model: "([^"]*)"', text))
    usual = {"gemini": DEFAULT_MODELS["gemini"], "openai": DEFAULT_MODELS["openai"], "claude": TEXT_MODELS["anthropic"]}
    assert {mode: shown[mode] for mode in usual} == usual
    assert set(shown) == set(MODES)
