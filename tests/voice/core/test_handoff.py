"""Agents that hand over to each other, within realtime models, within the cascade, and between both, in one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import Page, Workers
from tests.voice.model_server import ModelServer, call
from tests.voice.realtime_calls import a_turn, asked_in_text, asks, said, seeded_with
from voxbridge.services.voice.core import capabilities
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(120)
RESUMABLE = "gemini-2.5-flash-native-audio-latest"
LIVE = "gemini-3.8-live"


def agents(folder: Path, **files: str) -> Path:
    """Write a folder of agents."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def hand_over(target: str, **more: str) -> Call:
    """Return the call that hands over."""
    return Call("handoff_conversation", {"target": target, "reason": "money", **more})


@pytest.mark.parametrize("model", [RESUMABLE, LIVE])
@pytest.mark.parametrize("unresumable", [False, True])
async def test_a_realtime_agent_hands_over_to_another_with_the_whole_history(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path, model: str, unresumable: bool
) -> None:
    folder = agents(
        tmp_path / "agents",
        triage=f"model: gemini:{model}\nrole: Triage\nprompt: You send people on.\nvoice: Aoede\nhandoffs: [advisor]\n",
        advisor=f"model: gemini:{model}\nrole: Advisor\nprompt: You advise.\nvoice: Charon\nhandoffs: [triage]\n",
    )
    async with workers.running(agents_dir=folder):
        await page.open(agent="triage")
        await page.until(ev.ProviderConnected)
        google.script(Turn(says="Hello Ann."), Turn(calls=(hand_over("advisor", summary="Ann wants advice."),), unresumable=unresumable))
        await a_turn(page, "I am Ann.")
        google.script(Turn(says="I am the advisor."))
        await asks(page, "I want advice.")
        done = await page.event(ev.HandoffCompleted)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    first, second = google.sessions
    assert (first.voice, second.voice) == ("Aoede", "Charon")
    assert "You advise." in second.instruction
    assert (done.source, done.target, done.voice) == ("triage", "advisor", "Charon")
    assert done.history == ("handle" if model == RESUMABLE else "seed")
    known = [line.text for line in second.history] if model == RESUMABLE else [text for _, text in seeded_with(second)]
    assert any("I am Ann." in text for text in known)
    told = [*asked_in_text(second), *(text for _, text in seeded_with(second))]
    assert any("Ann wants advice." in text for text in told)
    assert [(one.agent, one.voice, one.text) for one in page.told(ev.AgentSaid)] == [
        ("triage", "Aoede", "Hello Ann."),
        ("advisor", "Charon", "I am the advisor."),
    ]
    assert [one.number for one in page.told(ev.TurnCompleted)] == [1, 2]


async def test_a_cascade_agent_hands_over_after_its_words_were_made(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(
        tmp_path / "agents",
        host="prompt: You greet.\nvoice: one\nhandoffs: [teller]\n",
        teller="prompt: You tell stories.\nvoice: two\n",
    )
    handing = call("handoff_conversation", '{"target": "teller", "reason": "a story"}')
    model_server.script("llm", ["Gladly. ", *handing], ["Once upon a time."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "Tell me a story.")
        await page.ends()
    assert [(one.agent, one.text) for one in page.told(ev.AgentSaid)] == [("host", "Gladly."), ("teller", "Once upon a time.")]
    assert [(one.source, one.target) for one in page.told(ev.HandoffCompleted)] == [("host", "teller")]
    assert [one.number for one in page.told(ev.TurnCompleted)] == [1]
    asked = model_server.asked("llm")[-1]
    assert "You tell stories." in asked["messages"][0]["content"]
    assert "handed this conversation over to you" in asked["messages"][-1]["content"]


async def test_the_turn_of_a_handoff_has_the_tokens_of_both_and_the_time_from_the_users_words(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host="prompt: You greet.\nhandoffs: [teller]\n", teller="prompt: You tell stories.\n")
    model_server.script("llm", call("handoff_conversation", '{"target": "teller"}'), ["Once upon a time."])
    async with workers.running(agents_dir=folder, prices=f"other=9/9, {Config().llm_model}=2/10"):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "Tell me a story.")
        await page.ends()
    (completed,) = page.told(ev.TurnCompleted)
    assert completed.usage == ev.Usage(input_tokens=14, output_tokens=6, microdollars=14 * 2 + 6 * 10)
    assert completed.latency.first_audio_sent is not None


async def test_a_handoff_to_nobody_is_refused_and_the_agent_goes_on(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(tmp_path / "agents", host="prompt: You greet.\nhandoffs: [teller]\n", teller="prompt: You tell stories.\n")
    model_server.script("llm", call("handoff_conversation", '{"target": "king"}'), ["There is no king here."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "Give me the king.")
        await page.ends()
    assert said(page) == ["There is no king here."]
    assert page.told(ev.HandoffStarted) == []


async def test_a_realtime_agent_hands_over_to_the_cascade_and_back(
    workers: Workers, page: Page, google: GeminiServer, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(
        tmp_path / "agents",
        triage="model: gemini\nprompt: You send people on.\nvoice: Aoede\nhandoffs: [closer]\n",
        closer="prompt: You close.\nhandoffs: [triage]\n",
    )
    async with workers.running(agents_dir=folder):
        await page.open(agent="triage")
        await page.until(ev.ProviderConnected)
        google.script(Turn(calls=(hand_over("closer"),)))
        model_server.script("llm", ["Good bye. "], call("handoff_conversation", '{"target": "triage"}'))
        await a_turn(page, "I am done.")
        google.script(Turn(says="Welcome back."))
        await asks(page, "Wait, one more thing.")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert [(one.agent, one.text) for one in page.told(ev.AgentSaid)] == [("closer", "Good bye."), ("triage", "Welcome back.")]
    assert [(one.source, one.target, one.history) for one in page.told(ev.HandoffCompleted)] == [
        ("triage", "closer", "log"),
        ("closer", "triage", "seed"),
    ]
    assert ("model", "Good bye.") in seeded_with(google.sessions[-1])


async def test_who_was_handed_the_conversation_answers_before_it_hands_back(
    workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = agents(
        tmp_path / "agents",
        host="prompt: You greet.\nhandoffs: [teller]\n",
        teller="prompt: You tell stories.\nhandoffs: [host]\n",
    )
    model_server.script("llm", call("handoff_conversation", '{"target": "teller"}'), ["Once upon a time."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await a_turn(page, "Tell me a story.")
        offered = [[tool["function"]["name"] for tool in asked.get("tools", ())] for asked in model_server.asked("llm")]
        model_server.script("llm", call("handoff_conversation", '{"target": "host"}'), ["I am back."])
        await asks(page, "That is enough.")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert offered[-2:] == [["handoff_conversation"], []]
    assert [(one.source, one.target) for one in page.told(ev.HandoffCompleted)] == [("host", "teller"), ("teller", "host")]
    assert said(page) == ["Once upon a time.", "I am back."]


async def test_an_operator_hands_over(workers: Workers, page: Page, model_server: ModelServer, tmp_path: Path) -> None:
    folder = agents(tmp_path / "agents", host="prompt: You greet.\nhandoffs: [teller]\n", teller="prompt: You tell.\narrival: Say hello.\n")
    model_server.script("llm", ["Hello from the teller."])
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        await page.until(ev.SessionStarted)
        await page.says(gateway.HandoffRequested(target="teller", reason="as asked"))
        await page.until(ev.AgentSaid)
        await page.ends()
    assert [(one.by, one.reason) for one in page.told(ev.HandoffStarted)] == [("operator", "as asked")]
    assert [(one.agent, one.text) for one in page.told(ev.AgentSaid)] == [("teller", "Hello from the teller.")]


async def test_an_agent_that_there_is_not_is_said_to_be_unknown(workers: Workers, page: Page, tmp_path: Path) -> None:
    folder = agents(tmp_path / "agents", host="prompt: You greet.\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="hots")
        ended = await page.event(ev.SessionEnded)
    assert ended.error is not None
    assert "hots" in ended.error.message


async def test_a_provider_without_a_key_is_refused_with_what_to_do(workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    async with workers.running():
        await page.open("gemini")
        ended = await page.event(ev.SessionEnded)
    assert ended.error is not None
    assert ended.error.code == "PROVIDER_UNAVAILABLE"
    assert "GEMINI_API_KEY" in ended.error.message


@pytest.mark.parametrize("asked", [{"mode": "gemini"}, {"agent": "triage"}])
async def test_a_session_in_text_is_written_by_a_model_of_the_provider_of_one_that_speaks_itself(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path, asked: dict[str, Any]
) -> None:
    folder = agents(tmp_path / "agents", triage=f"model: gemini:{LIVE}\n")
    async with workers.running(agents_dir=folder):
        await page.open(**asked, output="text")
        started = await page.event(ev.SessionStarted)
        await page.ends()
    assert (started.output, started.model) == ("text", capabilities.TEXT_MODELS["gemini"])
    assert google.attempts == 0, "nobody speaks"


async def test_a_function_that_there_is_not_is_named_in_the_log_and_passed_over(
    workers: Workers, page: Page, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.publish_functions([Function(name="look_up", description="Look something up.", parameters={"type": "object"})])
    folder = agents(tmp_path / "agents", host="tools: [look_up, lok_up]\n")
    async with workers.running(agents_dir=folder):
        await page.open(agent="host")
        started = await page.event(ev.SessionStarted)
        await page.ends()
    assert started.tools == ("look_up",)
    assert "agent host: there is no function lok_up; it begins without" in caplog.text
