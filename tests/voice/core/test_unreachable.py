"""Agents that cannot take a conversation: their provider has no key here, or refuses the model. The call continues without them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.anthropic import server as anthropic_server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn
from tests.voice.conftest import Page, Workers
from tests.voice.core.test_handoff import LIVE, agents, hand_over
from tests.voice.model_server import ModelServer, call
from tests.voice.realtime_calls import a_turn, asks, said
from tests.voice.replaying import replay, stored
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
MISTYPED = "gemini-3.8-life"
TO_ADVISOR = call("handoff_conversation", '{"target": "advisor", "reason": "money"}')
GEMINI_HOST = f"model: gemini:{LIVE}\nprompt: You greet.\nvoice: Aoede\nhandoffs: [advisor]\n"
LOCAL_HOST = "prompt: You greet.\nhandoffs: [advisor]\narrival: Say welcome back.\n"


@pytest.fixture
def google(google: GeminiServer) -> GeminiServer:
    google.options.models = {LIVE}
    return google


@pytest.fixture(autouse=True)
def keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def claude(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", anthropic_server.KEY)
        yield server


def handoffs(page: Page) -> list[tuple[str, str, str]]:
    """Return the handoffs in the log."""
    told = page.told(ev.HandoffStarted, ev.HandoffCompleted)
    return [("started" if isinstance(one, ev.HandoffStarted) else "completed", one.source, one.target) for one in told]


async def comes_out_the_same(page: Page) -> None:
    """Check that replaying the journal gives the log."""
    log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)


CAME_BACK = [("started", "host", "advisor"), ("started", "advisor", "host"), ("completed", "advisor", "host")]


async def test_a_realtime_agent_is_told_that_another_ones_provider_has_no_key_and_goes_on(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=GEMINI_HOST, advisor="model: openai\nprompt: You advise.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.ProviderConnected)
        google.script(Turn(calls=(hand_over("advisor"),), after="I advise you myself."))
        await a_turn(page, "I want advice.")
        await page.ends()
    (session,) = google.sessions
    assert "advisor cannot be reached: there is no key for openai here." in str(session.answers)
    assert said(page) == ["I advise you myself."]
    assert handoffs(page) == []
    await comes_out_the_same(page)


async def test_a_cascade_agent_is_told_that_another_ones_provider_has_no_key_and_goes_on(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=LOCAL_HOST, advisor="llm: anthropic\nprompt: You advise.\n")
    model_server.script("llm", TO_ADVISOR, ["I advise you myself."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "I want advice.")
        await page.ends()
    told = model_server.asked("llm")[-1]["messages"][-1]
    assert "advisor cannot be reached: there is no key for anthropic here." in told["content"]
    assert said(page) == ["I advise you myself."]
    assert handoffs(page) == []
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["completed"]


async def test_an_endpoint_of_ones_own_needs_no_key_to_be_handed_to(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=LOCAL_HOST, advisor="llm: mine:big\nprompt: You advise.\n")
    model_server.script("llm", TO_ADVISOR, ["I am the advisor."])
    async with workers.running(agents_dir=folder, endpoints=f"mine={model_server.url}"):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "I want advice.")
        await page.ends()
    assert said(page) == ["I am the advisor."]
    assert handoffs(page) == [("started", "host", "advisor"), ("completed", "host", "advisor")]


async def test_an_operators_handoff_to_an_agent_without_a_key_is_refused_in_the_log(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=LOCAL_HOST, advisor="model: gemini\nprompt: You advise.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await page.says(gateway.HandoffRequested(target="advisor", reason="as asked"))
        failed = await page.event(ev.ProviderFailed)
        await a_turn(page, "Are you there?")
        await page.ends()
    assert failed.error == ev.Failure(code="PROVIDER_UNAVAILABLE", message="advisor cannot be reached: there is no key for gemini here.")
    assert failed.handled
    assert handoffs(page) == []
    assert said(page) == ["All right."]


@pytest.mark.parametrize("model", [f"gemini:{MISTYPED}", f"gemini:{LIVE}\nvoice: Nobody"])
async def test_a_realtime_agent_whose_model_is_refused_gives_the_conversation_back(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path, model: str
) -> None:
    folder = agents(tmp_path / "agents", host=GEMINI_HOST, advisor=f"model: {model}\nprompt: You advise.\narrival: Sing.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.ProviderConnected)
        google.script(Turn(says="Hello Ann."), Turn(calls=(hand_over("advisor"),)))
        await a_turn(page, "I am Ann.")
        google.script(Turn(says="I advise you myself."), Turn(says="You are welcome."))
        await asks(page, "I want advice.")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await a_turn(page, "Thank you.", count=3)
        await page.ends()
    assert said(page) == ["Hello Ann.", "I advise you myself.", "You are welcome."]
    assert {one.agent for one in page.told(ev.AgentSaid)} == {"host"}
    assert handoffs(page) == CAME_BACK
    back = page.told(ev.HandoffStarted)[1]
    assert "advisor cannot be reached: " in back.reason
    told = str([*google.sessions[-1].contents, *google.sessions[-1].texts])
    assert "I am Ann." in told
    assert "advisor cannot be reached: " in told
    assert "Sing." not in told
    assert [one.handled for one in page.told(ev.ProviderFailed)] == [True]
    assert [one.number for one in page.told(ev.TurnCompleted)] == [1, 2, 3]
    assert page.told(ev.SessionRestored) == []
    await comes_out_the_same(page)


async def test_a_cascade_agent_goes_on_where_the_realtime_model_is_refused(
    workers: Workers, page: Page, google: GeminiServer, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=LOCAL_HOST, advisor=f"model: gemini:{MISTYPED}\nprompt: You advise.\n")
    model_server.script("llm", TO_ADVISOR, ["I advise you myself."], ["You are welcome."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "I want advice.")
        await a_turn(page, "Thank you.", count=2)
        await page.ends()
    assert said(page) == ["I advise you myself.", "You are welcome."]
    assert handoffs(page) == CAME_BACK
    asked = model_server.asked("llm")[1]
    assert "advisor cannot be reached: " in asked["messages"][-1]["content"]
    assert "Say welcome back." not in asked["messages"][-1]["content"]
    assert "tools" not in asked, "in this turn it is not to hand over again"
    assert "tools" in model_server.asked("llm")[2]
    await comes_out_the_same(page)


async def test_an_agent_whose_language_model_is_refused_gives_the_conversation_back(
    workers: Workers, page: Page, claude: AnthropicServer, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=LOCAL_HOST, advisor="llm: anthropic:claude-sonet\nprompt: You advise.\n")
    claude.script(*[[anthropic_server.Status(404, "not_found_error", "model: claude-sonet")]] * 2)
    model_server.script("llm", TO_ADVISOR, ["I advise you myself."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "I want advice.")
        await a_turn(page, "Thank you.", count=2)
        await page.ends()
    assert said(page) == ["I advise you myself.", "All right."]
    assert handoffs(page) == [("started", "host", "advisor"), ("completed", "host", "advisor"), *CAME_BACK[1:]]
    assert "model: claude-sonet" in page.told(ev.HandoffStarted)[1].reason
    assert [one.number for one in page.told(ev.TurnCompleted)] == [1, 2]
    await comes_out_the_same(page)


async def test_whoever_gets_the_conversation_back_and_cannot_answer_either_says_so_once(
    workers: Workers, page: Page, claude: AnthropicServer, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(
        tmp_path / "agents",
        host="llm: anthropic\nprompt: You greet.\nhandoffs: [advisor]\n",
        advisor="llm: anthropic:claude-sonet\nprompt: You advise.\n",
    )
    claude.script([anthropic_server.Use("handoff_conversation", {"target": "advisor"})])
    claude.script(*[[anthropic_server.Status(404, "not_found_error", "scripted")]] * 4)
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await asks(page, "I want advice.")
        await page.until(ev.TurnCompleted)
        await page.ends()
    assert handoffs(page) == [("started", "host", "advisor"), ("completed", "host", "advisor"), *CAME_BACK[1:]]
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["failed"]
    assert [one.handled for one in page.told(ev.ProviderFailed)] == [True, False]


async def test_after_an_operators_handoff_to_a_model_that_is_refused_the_call_goes_on(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=GEMINI_HOST, advisor=f"model: gemini:{MISTYPED}\nprompt: You advise.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.ProviderConnected)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        google.script(Turn(says="Here I am again."), Turn(says="Yes."))
        await page.says(gateway.HandoffRequested(target="advisor", reason="as asked"))
        await page.until(ev.AgentSaid, 2)
        await a_turn(page, "Still there?", count=2)
        await page.ends()
    assert said(page) == ["Hello Ann.", "Here I am again.", "Yes."]
    assert handoffs(page) == CAME_BACK
    await comes_out_the_same(page)


async def test_where_the_first_one_cannot_be_reached_again_either_the_session_ends(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host=GEMINI_HOST, advisor=f"model: gemini:{MISTYPED}\nprompt: You advise.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.ProviderConnected)
        google.options.models = set()
        google.script(Turn(calls=(hand_over("advisor"),)))
        await asks(page, "I want advice.")
        ended = await page.event(ev.SessionEnded)
    assert ended.reason == "provider_lost"
    assert handoffs(page) == CAME_BACK[:2]
