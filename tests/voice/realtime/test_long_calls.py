"""Knowledge late in a long call: each model that gets the conversation, by handoff or after a reconnection, knows its beginning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.anthropic import server as anthropic_server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn
from tests.fakes.openai import realtime
from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.voice.conftest import Page, Workers
from tests.voice.core.test_handoff import LIVE, agents
from tests.voice.model_server import ModelServer, call
from tests.voice.realtime_calls import a_turn, asks
from tests.voice.replaying import replay, stored
from voxbridge.services.voice.core.prompt.memory import HISTORY_LIMIT, RESULT_LIMIT
from voxbridge.services.voice.core.realtime import connection
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(240)
TURNS = 64
NAME = "My name is Ann Ashby."
LARGE = {"text": "x" * 2 * RESULT_LIMIT}
LOOK_UP = Function(name="look_up", description="Look something up.", parameters={"type": "object", "properties": {}})
HOST = "prompt: You greet.\noutput: text\nhandoffs: [advisor]\n"


async def a_long_call(page: Page, model_server: ModelServer, store: Store) -> None:
    """Have a long call: the user says a name, then more than any window holds; at last the host hands over to the advisor."""
    await store.publish_functions([LOOK_UP])
    model_server.script("llm", ["Good morning, Ann."])
    await page.until(ev.SessionStarted)
    await a_turn(page, NAME)
    for number in range(2, TURNS + 1):
        model_server.script("llm", call("look_up", "{}"), [f"Answer {number}."])
        await asks(page, f"Question {number}?")
        called = await page.event(ev.ToolCalled, number - 1)
        await page.executes(called, LARGE)
        await page.until(ev.TurnCompleted, number, reason="completed")
    model_server.script("llm", call("handoff_conversation", '{"target": "advisor"}'))


async def handed_over(workers: Workers, page: Page, model_server: ModelServer, store: Store, tmp_path: Path, model: str) -> None:
    """Have a long call in which the advisor has answered on this model."""
    await store.publish_functions([LOOK_UP])
    folder = agents(tmp_path / "agents", host=HOST, advisor=f"{model}\nprompt: You advise.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await a_long_call(page, model_server, store)
        await a_turn(page, "Who am I?", count=TURNS + 1)
        await page.ends()
    assert [one.target for one in page.told(ev.HandoffCompleted)] == ["advisor"]
    log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)


def knows_the_beginning_and_the_end(told: str) -> None:
    """Check that the text contains the beginning and the end; of the results only the newest are there."""
    assert NAME in told
    assert f"Answer {TURNS // 2}." in told
    assert f"Question {TURNS}?" in told
    assert "xxx" in told


async def test_after_a_long_call_gemini_is_seeded_with_how_it_began(
    workers: Workers, page: Page, google: GeminiServer, model_server: ModelServer, store: Store, tmp_path: Path
) -> None:
    google.script(Turn(says="You are Ann."))
    await handed_over(workers, page, model_server, store, tmp_path, f"model: gemini:{LIVE}")
    assert [one.history for one in page.told(ev.HandoffCompleted)] == ["seed"]
    (session,) = google.sessions
    told = json.dumps(session.contents)
    knows_the_beginning_and_the_end(told)
    assert len(told) < 130_000
    assert NAME not in session.instruction


async def test_after_a_long_call_claude_is_told_how_it_began(
    workers: Workers, page: Page, model_server: ModelServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AnthropicServer() as claude:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", anthropic_server.KEY)
        claude.script(["You are Ann."])
        await handed_over(workers, page, model_server, store, tmp_path, "llm: anthropic\noutput: text")
        (body,) = claude.bodies
    knows_the_beginning_and_the_end(json.dumps(body["messages"]))
    assert NAME not in json.dumps(body["system"]), "what is kept warm does not change"


async def test_after_a_long_call_openai_is_seeded_with_how_it_began(
    workers: Workers, page: Page, model_server: ModelServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIRealtimeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", realtime.KEY)
        await handed_over(workers, page, model_server, store, tmp_path, "model: openai")
        (session,) = server.sessions
        knows_the_beginning_and_the_end(json.dumps(list(session.items.values())))
        assert not session.errors


async def test_the_installations_own_model_is_told_little_of_a_long_call_but_how_it_began(
    workers: Workers, page: Page, model_server: ModelServer, store: Store, tmp_path: Path
) -> None:
    await store.publish_functions([LOOK_UP])
    folder = agents(tmp_path / "agents", host=HOST, advisor="prompt: You advise.\noutput: text\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await a_long_call(page, model_server, store)
        await a_turn(page, "Who am I?", count=TURNS + 1)
        await page.ends()
    messages: list[dict[str, Any]] = model_server.asked("llm")[-1]["messages"]
    told = json.dumps(messages[1:])
    assert NAME in told
    assert "Who am I?" in told
    assert len(told) < 8_000


@pytest.mark.parametrize("turns", [20, HISTORY_LIMIT // 2 + 10])
async def test_a_connection_that_is_seeded_again_says_what_it_was_not_told(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    async with OpenAIRealtimeServer() as server, workers.running():
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", realtime.KEY)
        await page.open("openai")
        await page.until(ev.ProviderConnected)
        for number in range(1, turns + 1):
            await a_turn(page, NAME if number == 1 else f"Question {number}?", count=number)
        server.sessions[0].kill()
        await page.until(ev.ProviderConnected, 2)
        await a_turn(page, "Who am I?", count=turns + 1)
        await page.ends()
        _, again = server.sessions
    (restored,) = page.told(ev.SessionRestored)
    assert restored.how == "reseeded"
    assert restored.lost == (() if turns == 20 else (connection.ONLY_THE_END,))
    assert NAME in json.dumps(list(again.items.values()))
