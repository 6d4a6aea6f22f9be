"""Sessions on real servers: the test plays the gateway, and a server on loopback the models."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.voice.conftest import MakePage, Page, Workers, left
from tests.voice.model_server import Fault, ModelServer, Status, call
from tests.voice.replaying import causes_come_first, encoded, replay, stored
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core.turns import turns
from voxbridge.services.voice.session.session import ECHO_GENERATION
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.audio import frames
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import fold
from voxbridge.shared.store.store import Store

UTTERANCE = silence(500) + speech(1_500) + silence(600)


async def test_a_spoken_turn_is_heard_answered_logged_with_its_causes_and_folds_to_the_live_state(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("stt", ["What time is it?"])
    model_server.script("llm", ["It is noon. ", "Enjoy your lunch."])
    async with workers.running() as worker:
        await page.open()
        await page.until(ev.SessionStarted)
        session = worker._sessions[page.sid]
        await page.speaks(UTTERANCE)
        turn = await page.until(ev.TurnCompleted)
        await page.ends()
        await page.when(lambda: "ended" in page.states)
        live = session.state
        log = await page.everything()
    assert [one.text for one in page.told(ev.UserSaid)] == ["What time is it?"]
    (said,) = page.told(ev.AgentSaid)
    assert (said.text, said.unheard, said.interrupted) == ("It is noon. Enjoy your lunch.", "", False)
    assert isinstance(turn.event, ev.TurnCompleted)
    assert turn.event.reason == "completed"
    assert turn.event.usage == ev.Usage(input_tokens=7, output_tokens=3)
    names = [
        "session.owned", "session.started", "speech.started", "speech.ended", "user.said", "agent.said", "turn.completed", "session.ended",
    ]  # fmt: skip
    assert [name for name, *_ in stored(log)] == names
    assert page.states[-1] == "ended"
    assert {"user_speaking", "thinking", "listening"} <= set(page.states)
    prefixes = [prefix for prefix, _ in page.frames]
    assert [prefix.sequence for prefix in prefixes] == list(range(len(prefixes)))
    assert [bool(prefix.flags & frames.LAST) for prefix in prefixes] == [False] * (len(prefixes) - 1) + [True]
    assert causes_come_first(log)
    assert all(one.cause is not None for one in log if one.writer == "voice" and not one.type.endswith(".journal"))
    folded = fold(step.step, step.initial(page.sid), inputs.Input, "voice", log)
    assert encoded(folded.state) == encoded(live)
    again, appended = replay(page.sid, log)
    assert encoded(again) == encoded(live)
    assert appended == stored(log)
    assert [one.id for one in log if one.writer == "voice"] == [f"{page.sid}.voice.{n}" for n in range(folded.number)]


async def test_echo_sends_each_frame_back_and_asks_no_model(workers: Workers, page: Page, model_server: ModelServer) -> None:
    async with workers.running():
        await page.open("echo")
        await page.until(ev.SessionStarted)
        await page.speaks(UTTERANCE)
        await page.when(lambda: sum(len(pcm) for _, pcm in page.frames) == len(UTTERANCE))
        await page.ends()
    assert b"".join(pcm for _, pcm in page.frames) == UTTERANCE
    assert {(prefix.kind, prefix.flags, prefix.generation) for prefix, _ in page.frames} == {
        (frames.PCM16, frames.RATE_16K, ECHO_GENERATION)
    }
    assert model_server.requests == []


async def test_a_barge_in_is_a_flush_after_which_nothing_of_the_old_reply_is_sent(
    workers: Workers, page: Page, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "REPORT_WAIT_MS", 10_000)
    model_server.script("llm", ["This is a very long answer."])
    model_server.script("tts", [6_000])
    async with workers.running():
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Tell me everything"))
        await page.when(lambda: page.frames)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=10, state="playing"))
        await page.speaks(silence(500) + speech(1_500))
        await page.when(lambda: any(prefix.kind == frames.FLUSH for prefix, _ in page.frames))
        await page.says(gateway.PlaybackReported(generation=1, played_ms=100, state="flushed"))
        await page.speaks(silence(600))  # without it, the words would arrive before the report
        await page.when(lambda: any(prefix.generation == 2 and prefix.flags & frames.LAST for prefix, _ in page.frames))
        await page.ends()
    kinds = [(prefix.kind, prefix.generation) for prefix, _ in page.frames]
    flush = kinds.index((frames.FLUSH, 1))
    assert set(kinds[:flush]) == {(frames.PCM16, 1)}
    assert {generation for _, generation in kinds[flush + 1 :]} == {2}
    assert [prefix.sequence for prefix, _ in page.frames] == list(range(len(kinds)))
    said = page.told(ev.AgentSaid)[0]
    assert said.interrupted
    assert said.played_ms == 100
    assert said.unheard


async def test_who_speaks_on_before_the_answer_is_heard_is_answered_once_and_folds_to_the_live_state(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("stt", ["And so,"], ["ask not."])
    model_server.script("llm", [Fault.HANG], ["Well said."])
    async with workers.running() as worker:
        await page.open(filler=False)
        await page.until(ev.SessionStarted)
        session = worker._sessions[page.sid]
        await page.speaks(UTTERANCE)
        await model_server.until_asked("llm")
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted)
        await page.ends()
        await page.when(lambda: "ended" in page.states)
        live = session.state
        log = await page.everything()
    assert [(one.text, one.turn, one.continues) for one in page.told(ev.UserSaid)] == [("And so,", 1, False), ("ask not.", 1, True)]
    assert [one["content"] for one in model_server.asked("llm")[-1]["messages"][1:]] == ["And so, ask not."]
    assert [(one.text, one.turn) for one in page.told(ev.AgentSaid)] == [("Well said.", 1)]
    assert [(one.number, one.reason) for one in page.told(ev.TurnCompleted)] == [(1, "completed")]
    again, appended = replay(page.sid, log)
    assert encoded(again) == encoded(live)
    assert appended == stored(log)


async def test_a_call_is_made_and_its_result_spoken(workers: Workers, page: Page, model_server: ModelServer) -> None:
    function = Function(name="open_page", description="Open a page.", parameters={"type": "object"}, kind="browser")
    model_server.script("llm", ["One moment.", *call("open_page", '{"url": "/"}', pieces=3)], ["It is open."])
    async with workers.running():
        await page.open(functions=(function,))
        await page.until(ev.SessionStarted, tools=("open_page",))
        await page.says(gateway.TextReceived(text="Open the page"))
        called = (await page.until(ev.ToolCalled)).event
        assert isinstance(called, ev.ToolCalled)
        assert (called.kind, called.arguments) == ("browser", {"url": "/"})
        await page.says(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result={"ok": True}))
        await page.until(ev.TurnCompleted)
        await page.ends()
    assert [one.text for one in page.told(ev.AgentSaid)] == ["One moment. It is open."]
    messages = model_server.asked("llm")[1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[-1]["tool_call_id"] == called.call_id


TWICE_A_REQUEST = 2
"""Attempts of each request: the client of the models retries once by itself."""


@pytest.mark.parametrize("fault", [Status(503), Fault.DROP])
async def test_models_that_are_away_for_a_moment_are_a_pause_in_the_turn(
    workers: Workers, page: Page, model_server: ModelServer, fault: Any
) -> None:
    model_server.script("llm", *[[fault]] * TWICE_A_REQUEST)
    model_server.script("tts", *[[fault]] * TWICE_A_REQUEST)
    async with workers.running():
        await page.open(filler=False)  # a filler would consume the faults meant for the answer
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Hello"))
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [(one.part, one.handled) for one in page.told(ev.ProviderFailed)] == [("llm", True), ("tts", True)]
    assert [one.interrupted for one in page.told(ev.AgentSaid)] == [False]


@pytest.mark.parametrize("fault", [Status(500), Fault.DROP])
async def test_a_language_model_that_fails_is_an_apology_and_a_fact_in_the_log(
    workers: Workers, page: Page, model_server: ModelServer, fault: Any
) -> None:
    model_server.script("llm", *[[fault]] * TWICE_A_REQUEST)
    async with workers.running(model_patience_s=0):
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Hello"))
        await page.until(ev.TurnCompleted, reason="failed")
        await page.says(gateway.TextReceived(text="Hello again"))
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    failures = page.told(ev.ProviderFailed)
    assert [(one.part, one.error.code, one.handled) for one in failures] == [("llm", "PROVIDER_UNAVAILABLE", False)]
    assert page.told(ev.AgentSaid)[0].text == "Sorry, I can't answer right now. Please try again."


async def test_a_voice_that_fails_leaves_the_words_in_the_log(workers: Workers, page: Page, model_server: ModelServer) -> None:
    model_server.script("tts", *[[Status(500)]] * TWICE_A_REQUEST)
    async with workers.running(model_patience_s=0):
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Hello"))
        await page.until(ev.TurnCompleted, reason="failed")
        await page.ends()
    assert [(one.part, one.handled) for one in page.told(ev.ProviderFailed)] == [("tts", False)]
    assert [(one.text, one.unheard) for one in page.told(ev.AgentSaid)] == [("", "All right.")]


async def test_a_microphone_that_falls_silent_in_the_middle_of_speech_ends_the_turn(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    async with workers.running():
        await page.open()
        await page.until(ev.SessionStarted)
        await page.speaks(silence(500) + speech(1_500))
        ended = await page.until(ev.SpeechEnded)
        assert isinstance(ended.event, ev.SpeechEnded)
        assert 1_900 <= ended.event.audio_ms <= 2_000
        await page.until(ev.TurnCompleted)
        await page.ends()


async def test_a_session_that_nobody_uses_ends(workers: Workers, page: Page, store: Store) -> None:
    async with workers.running(idle_timeout_s=1):
        await page.open()
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.reason == "idle"
        await left(store, page)


async def test_a_worker_takes_no_more_sessions_than_it_has_room_for_until_one_ends(workers: Workers, pages: MakePage) -> None:
    first, second, third = pages(), pages(), pages()
    async with workers.running(max_sessions=2) as worker:
        await asyncio.gather(first.open(), second.open())
        await asyncio.gather(first.until(ev.SessionStarted), second.until(ev.SessionStarted))
        assert (worker.stats()["sessions"], worker.stats()["room"]) == (2, 0)
        assert worker.health()["room"] is False
        await third.open()
        await first.says(gateway.TextReceived(text="Hello"))
        await first.until(ev.TurnCompleted)
        assert third.told(ev.SessionOwned) == []
        await first.ends()
        await third.until(ev.SessionStarted)
        assert (worker.stats()["sessions"], worker.stats()["room"]) == (2, 0)


async def test_two_workers_share_the_requests_and_none_is_taken_twice(workers: Workers, pages: MakePage) -> None:
    asked = [pages() for _ in range(12)]
    async with workers.running(max_sessions=6), workers.running(max_sessions=6):
        await asyncio.gather(*(one.open() for one in asked))
        await asyncio.gather(*(one.until(ev.SessionStarted) for one in asked))
        owners = [[one.worker for one in page.told(ev.SessionOwned)] for page in asked]
    assert all(len(found) == 1 for found in owners)
    assert sorted(sum(found == [owner] for found in owners) for owner in {found[0] for found in owners}) == [6, 6]


async def test_a_request_whose_client_was_told_that_nobody_came_is_not_taken(workers: Workers, pages: MakePage) -> None:
    stale, fresh = pages(), pages()
    await stale.open(age_s=10.5)
    async with workers.running():
        await fresh.open()
        await fresh.until(ev.SessionStarted)
        info = await fresh.log.js.consumer_info("EV", "voice")
        assert info.num_pending == 0
    assert stale.told(ev.SessionOwned) == []


async def test_sessions_leave_no_task_subscription_or_lease_behind(workers: Workers, pages: MakePage, store: Store) -> None:
    async with workers.running() as worker:
        warm_up = await pages().open()
        await warm_up.says(gateway.TextReceived(text="Hello"))
        await warm_up.until(ev.TurnCompleted)
        await warm_up.ends()
        await left(store, warm_up)
        place = worker._place
        before = len(place.log.nc._subs), len(place.audio_nc._subs), len(place.log._followers)
        tasks = _voice_tasks()
        for _ in range(5):
            asked = [pages() for _ in range(10)]
            await asyncio.gather(*(one.open() for one in asked))
            await asyncio.gather(*(one.until(ev.SessionStarted) for one in asked))
            await asyncio.gather(*(one.speaks(UTTERANCE) for one in asked[:3]))
            await asyncio.gather(*(one.until(ev.TurnCompleted) for one in asked[:3]))
            await asyncio.gather(*(one.says(gateway.TextReceived(text="Hello")) for one in asked[3:]))
            await asyncio.gather(*(one.ends() for one in asked))
            await asyncio.gather(*(left(store, one) for one in asked))
        assert worker._sessions == {}
        assert worker._requests._opening == {}
        assert worker._tasks == set()
        assert (len(place.log.nc._subs), len(place.audio_nc._subs), len(place.log._followers)) == before
        assert _voice_tasks() == tasks


def _voice_tasks() -> list[str]:
    """Return the names of the voice service's own running tasks."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return sorted(name for name in names if name.startswith(("Session", "Speaker", "VoiceService", "Feed._", "Orphans", "Warmup")))
