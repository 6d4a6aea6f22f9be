"""Differences between the generations of Gemini Live, through the real voice service: the ways to pass history and text, and reported
refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini.server import GeminiServer, Refusal
from tests.fakes.gemini.session import Session
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import MakePage, Page, Workers
from tests.voice.realtime_calls import UTTERANCE, a_turn, asked_in_text, asks, connected, restored, said, seeded_with
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.providers.realtime.base import ConnectionLost, Setup
from voxbridge.services.voice.providers.realtime.gemini import connection as gemini_connection
from voxbridge.services.voice.providers.realtime.gemini.connection import Gemini
from voxbridge.shared.events import voice as ev
from voxbridge.shared.language.conversation import Message

pytestmark = pytest.mark.timeout(120)
NATIVE: Final = "gemini-2.5-flash-native-audio-latest"
PREVIEW: Final = "gemini-3.1-flash-live-preview"
LIVE: Final = "gemini-3.8-live"
UNKNOWN: Final = "gemini-4.0-live"
ALL: Final = (NATIVE, PREVIEW, LIVE, UNKNOWN)
ANN: Final = [("user", "I am Ann."), ("model", "Hello Ann.")]


@pytest.fixture
def google(google: GeminiServer) -> GeminiServer:
    google.options.history_only.add(UNKNOWN)
    return google


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder for the agents' files."""
    folder = tmp_path / "agents"
    folder.mkdir()
    return folder


def write(folder: Path, model: str) -> None:
    """Write two agents on one model, the first of which hands over to the second."""
    (folder / "triage.yaml").write_text(f"model: gemini:{model}\nprompt: You send people on.\nvoice: Aoede\nhandoffs: [advisor]\n")
    (folder / "advisor.yaml").write_text(f"model: gemini:{model}\nprompt: You advise.\nvoice: Charon\n")


HANDS_OVER: Final = Turn(calls=(Call("handoff_conversation", {"target": "advisor", "reason": "money"}),))


def lost(page: Page) -> list[int]:
    """Return the codes with which connections were lost."""
    return [one.close_code for one in page.told(ev.ProviderLost)]


def knows(session: Session) -> str:
    """Return the model's whole conversation."""
    return "\n".join(f"{line.role}: {line.text}" for line in session.history)


@pytest.mark.parametrize("model", ALL)
async def test_typed_words_are_taken_from_the_first_on_and_no_connection_is_lost(
    workers: Workers, page: Page, google: GeminiServer, model: str
) -> None:
    async with workers.running():
        await connected(page, model=model)
        for count, answer in enumerate(("One.", "Two.", "Three."), 1):
            google.script(Turn(says=answer))
            await a_turn(page, f"Question {count}?", count=count)
        await page.ends()
    assert said(page) == ["One.", "Two.", "Three."]
    assert lost(page) == []
    (session,) = google.sessions
    assert asked_in_text(session) == ["Question 1?", "Question 2?", "Question 3?"]
    assert "historyConfig" not in session.setup


@pytest.mark.parametrize("model", ALL)
async def test_a_connection_without_a_handle_is_told_the_conversation_and_the_next_question_is_heard(
    workers: Workers, page: Page, google: GeminiServer, model: str
) -> None:
    async with workers.running():
        await connected(page, model=model)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        google.handles.all_refused = True
        google.kill()
        await page.until(ev.SessionRestored)
        google.script(Turn(hears="Who am I?", says="You are Ann."))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert restored(page) == ["reseeded"]
    assert said(page) == ["Hello Ann.", "You are Ann."]
    newest = google.sessions[-1]
    assert seeded_with(newest) == ANN
    assert not newest.awaits_history
    assert "user: I am Ann.\nmodel: Hello Ann." in knows(newest)
    assert 1007 not in lost(page)
    if model == NATIVE:
        assert "historyConfig" not in newest.setup
        assert "User: I am Ann.\nYou: Hello Ann." in newest.instruction
    else:
        assert newest.setup["historyConfig"] == {"initialHistoryInClientContent": True}
        assert "Hello Ann." not in newest.instruction


@pytest.mark.parametrize("model", ALL)
async def test_a_question_that_a_fault_left_unanswered_is_asked_again_behind_the_history(
    workers: Workers, page: Page, google: GeminiServer, model: str
) -> None:
    async with workers.running():
        await connected(page, model=model)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        google.handles.all_refused = True
        google.reply = lambda session: None if session.number == 1 else Turn(says="You are Ann.")
        await asks(page, "Who am I?")
        await google.until(lambda: len(asked_in_text(google.sessions[0])) == 2)
        google.kill()
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert said(page) == ["Hello Ann.", "You are Ann."]
    newest = google.sessions[-1]
    assert seeded_with(newest)[:2] == ANN
    assert any("Who am I?" in text for text in asked_in_text(newest))
    assert 1007 not in lost(page)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("handles", [True, False])
async def test_a_handoff_goes_on_with_the_conversation(
    workers: Workers, page: Page, google: GeminiServer, agents: Path, model: str, handles: bool
) -> None:
    write(agents, model)
    if not handles:
        google.options.reject_empty_resumption = {model}
    async with workers.running(agents_dir=agents):
        await page.open(agent="triage")
        await page.until(ev.ProviderConnected)
        google.script(Turn(says="Hello Ann."), HANDS_OVER, Turn(says="I am the advisor."))
        await a_turn(page, "I am Ann.")
        await asks(page, "I want advice.")
        done = await page.event(ev.HandoffCompleted)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        google.script(Turn(hears="Who am I?", says="You are Ann."))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 3, reason="completed")
        await page.ends()
    assert said(page) == ["Hello Ann.", "I am the advisor.", "You are Ann."]
    assert lost(page) == []
    newest = google.sessions[-1]
    assert newest.instruction.startswith("You advise.")
    assert done.history == ("handle" if handles and model == NATIVE else "seed")
    assert "user: I am Ann.\nmodel: Hello Ann." in knows(newest)
    assert "user: Who am I?" in knows(newest)


@pytest.mark.parametrize("model", ALL)
async def test_a_summary_in_the_instructions_declares_no_history(workers: Workers, page: Page, google: GeminiServer, model: str) -> None:
    """A model that waits for a declared history that never comes would ignore the user."""
    async with workers.running():
        await connected(page, model=model)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        google.refuse(*[Refusal(code=1011)] * (realtime_connection.SEED_TRIES - 1))
        google.kill()
        await page.until(ev.SessionRestored)
        google.script(Turn(hears="Who am I?", says="You are Ann."))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert restored(page) == ["fresh"]
    newest = google.sessions[-1]
    assert "historyConfig" not in newest.setup
    assert seeded_with(newest) == []
    assert newest.instruction.count("User: I am Ann.") == 1


async def test_a_model_that_begins_no_resumable_conversation_goes_on_without_handles(
    workers: Workers, pages: MakePage, google: GeminiServer
) -> None:
    """`reject_empty_resumption`: the client notices nothing, and the next call of the same process is not refused first."""
    google.options.reject_empty_resumption = {NATIVE}
    async with workers.running():
        page = await connected(pages(), model=NATIVE)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        assert [session.close_code for session in google.sessions] == [1008, None]
        google.kill()
        await page.until(ev.SessionRestored)
        google.script(Turn(says="You are Ann."))
        await a_turn(page, "Who am I?", count=2)
        await page.ends()
        other = await connected(pages(), model=NATIVE)
        await a_turn(other)
        await other.ends()
    refused, *others = google.sessions
    assert refused.setup["sessionResumption"] == {}
    assert len(others) == 3
    assert all("sessionResumption" not in session.setup for session in others)
    assert (restored(page), said(page)) == (["reseeded"], ["Hello Ann.", "You are Ann."])
    assert page.told(ev.ResumptionUpdated) == []
    assert 1008 not in lost(page)


async def test_a_model_that_keeps_the_first_agents_instructions_is_not_resumed_for_a_handoff(
    workers: Workers, page: Page, google: GeminiServer, agents: Path
) -> None:
    """`sticky_instruction`: the second agent would speak as the first one. It resumes only conversations that it began itself."""
    google.options.sticky_instruction = {LIVE}
    write(agents, LIVE)
    async with workers.running(agents_dir=agents):
        await page.open(agent="triage")
        await page.until(ev.ProviderConnected)
        google.script(Turn(says="Hello Ann."), HANDS_OVER, Turn(says="I am the advisor."))
        await a_turn(page, "I am Ann.")
        await asks(page, "I want advice.")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.until(ev.ResumptionUpdated, 2)
        google.kill()
        await page.until(ev.SessionRestored)
        google.script(Turn(says="You are Ann."))
        await a_turn(page, "Who am I?", count=3)
        await page.ends()
    first, second, third = google.sessions
    assert first.instruction.startswith("You send people on.")
    assert (second.resumed, second.instruction[:11]) == (False, "You advise.")
    assert (third.resumed, third.instruction[:11]) == (True, "You advise.")
    assert [one.agent for one in page.told(ev.AgentSaid)] == ["triage", "advisor", "advisor"]


async def test_a_rotation_closes_the_old_connection_before_it_resumes(workers: Workers, page: Page, google: GeminiServer) -> None:
    """`reject_resume_while_open`: an overlap is answered with 1011, and the page would be told of a fault."""
    google.options.reject_resume_while_open = True
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        await page.until(ev.ResumptionUpdated)
        await google.go_away("50s")
        await page.until(ev.ProviderConnected, 2)
        google.script(Turn(says="You are Ann."))
        await a_turn(page, "Who am I?", count=2)
        await page.ends()
    assert [session.resumed for session in google.sessions] == [False, True]
    assert (lost(page), restored(page)) == ([], [])
    assert said(page) == ["Hello Ann.", "You are Ann."]


async def test_news_without_a_word_mean_that_the_last_handle_is_the_last_good_one(
    workers: Workers, page: Page, google: GeminiServer
) -> None:
    """`bare_unresumable`: an empty update beside a call. The connection dies with the call open, and the answer is not lost."""
    google.options.bare_unresumable = True
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        await page.until(ev.ResumptionUpdated, resumable=True)
        google.script(Turn(calls=(Call("get_time", {}),), after="It is noon.", blocking=True, unresumable=True))
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        news = await page.event(ev.ResumptionUpdated, resumable=False)
        google.kill()
        await page.until(ev.SessionRestored)
        google.reply = lambda _: Turn(says="It is noon.")
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert news.handle == page.told(ev.ResumptionUpdated)[0].handle, "the one before stays good"
    newest = google.sessions[-1]
    assert "I am Ann." in knows(newest)
    assert any("12:00" in text for text in asked_in_text(newest))
    assert said(page)[-1] == "It is noon."


async def test_a_status_beside_the_end_of_a_turn_changes_nothing_for_the_caller(workers: Workers, page: Page, google: GeminiServer) -> None:
    """`interaction_status`: with a non-blocking call open, the end of the turn says that the interaction is in progress."""
    google.options.interaction_status = True
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Let me see.", calls=(Call("get_time", {}),), after="It is noon.", blocking=False))
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        await page.until(ev.AgentSaid)
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.AgentSaid, 2)
        await page.until(ev.TurnCompleted, reason="completed")
        google.script(Turn(says="You are welcome."))
        await asks(page, "Thanks.")
        await page.until(ev.AgentSaid, 3)
        await page.ends()
    assert said(page) == ["Let me see.", "It is noon.", "You are welcome."]
    assert {one.reason for one in page.told(ev.TurnCompleted)} == {"completed"}
    assert lost(page) == []


class Clock:
    """A clock in seconds that the test advances."""

    s = 0.0

    def __call__(self) -> float:
        return self.s


def setup(model: str, **more: object) -> Setup:
    return Setup(**{"model": model, "voice": "Puck", "language": "", "instructions": "You help.", **more})  # type: ignore[arg-type]


async def key(_: str) -> str:
    return "a-key-for-tests"


async def opens(google: GeminiServer, provider: Gemini, model: str) -> list[bool]:
    """Open a connection. Return for each attempt whether it asked for handles."""
    before = len(google.sessions)
    await (await provider.connect(setup(model))).close()
    return ["sessionResumption" in session.setup for session in google.sessions[before:]]


async def test_that_a_model_refuses_is_remembered_for_an_hour(google: GeminiServer) -> None:
    google.options.reject_empty_resumption = {NATIVE}
    clock = Clock()
    provider = Gemini(key, now=clock)
    assert await opens(google, provider, NATIVE) == [True, False]
    clock.s = gemini_connection.UNRESUMABLE_S - 1
    assert await opens(google, provider, NATIVE) == [False]
    assert await opens(google, provider, LIVE) == [True], "of each model by itself"
    clock.s = gemini_connection.UNRESUMABLE_S
    google.options.reject_empty_resumption = set()
    assert await opens(google, provider, NATIVE) == [True], "the fault may have passed"
    await provider.close()


async def test_it_is_remembered_of_so_many_models_and_the_oldest_is_forgotten(google: GeminiServer) -> None:
    models = [f"gemini-test-{number}" for number in range(gemini_connection.UNRESUMABLE_LIMIT + 1)]
    google.options.reject_empty_resumption = set(models)
    provider = Gemini(key)
    for model in models:
        assert await opens(google, provider, model) == [True, False]
    assert await opens(google, provider, models[-1]) == [False]
    assert await opens(google, provider, models[1]) == [False]
    assert await opens(google, provider, models[0]) == [True, False]
    await provider.close()


async def test_a_refusal_that_has_another_cause_is_passed_on_and_not_remembered(google: GeminiServer) -> None:
    google.options.models = {NATIVE}
    provider = Gemini(key)
    with pytest.raises(ConnectionLost) as caught:
        await provider.connect(setup(LIVE))
    assert (caught.value.close_code, caught.value.retryable) == (1008, False)
    google.options.models = None
    assert await opens(google, provider, LIVE) == [True]
    with pytest.raises(ConnectionLost) as caught:
        await provider.connect(setup(LIVE, handle="handle-unknown"))
    assert caught.value.handle_refused
    assert google.attempts == 4, "one whose handle is refused is tried again by whoever knows the history"
    await provider.close()


async def test_instructions_alone_are_no_history(google: GeminiServer) -> None:
    """A history without turns is not declared."""
    provider = Gemini(key)
    connection = await provider.connect(setup(LIVE, history=(Message(role="system", text="You help."),)))
    assert "historyConfig" not in google.sessions[0].setup
    assert google.sessions[0].contents == []
    await connection.close()
    await provider.close()
