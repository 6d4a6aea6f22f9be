"""Faults that were reported of other systems, and the behaviour here."""

from __future__ import annotations

import pytest

from tests.answers import answers, apologies
from tests.fakes.gemini.server import GeminiServer, Refusal
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import MakePage, Page, Workers
from tests.voice.realtime_calls import BARGE_IN, UTTERANCE, a_turn, asked_in_text, asks, connected, restored, said, seeded_with, user_said
from tests.voice.replaying import replay, stored
from voxbridge.services.voice.core.cascade.speaking import APOLOGIES
from voxbridge.services.voice.core.realtime import connection
from voxbridge.services.voice.core.turns import rounds
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
PLACE = {"type": "object", "properties": {"place": {"type": "string"}}}
FUNCTION = Function(name="get_time", description="The time in a place.", parameters=PLACE)
SLOW = Function(name="slow", description="Takes its time.", parameters={"type": "object", "properties": {}}, timeout_s=0.05)


async def test_go_away_then_silence(workers: Workers, page: Page, google: GeminiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that announces its end may send nothing more: a timer moves the call, not the next message."""
    monkeypatch.setattr(connection, "MARGIN_MS", 800)
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Once upon a time there was a king.", stops_at_ms=600), Turn(says="who had no crown."))
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) >= 300)
        await google.go_away("1s", then_silent=True)
        second = await google.opened(2)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert said(page)[-1] == "who had no crown."
    assert "Once upon" in asked_in_text(second)[0]
    assert google.sessions[0].closed_at is not None
    assert second.opened_at >= google.sessions[0].closed_at


async def test_go_away_during_an_open_tool_call(workers: Workers, page: Page, google: GeminiServer) -> None:
    """The connection is kept until the call is answered over it."""
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Hello."), Turn(calls=(Call("get_time", {}),), after="It is noon.", blocking=True))
        await a_turn(page)
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        await google.go_away("50s")
        await page.until(ev.ProviderGoAway)
        assert len(google.sessions) == 1
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await google.opened(2)
        await page.until(ev.ProviderConnected, resumed_by="handle")
        await page.ends()
    assert [one.how for one in page.told(ev.ToolDelivered)] == ["response"]
    assert said(page) == ["Hello.", "It is noon."]


async def test_a_result_that_arrives_after_rotation(workers: Workers, page: Page, google: GeminiServer) -> None:
    """A new connection ignores the response to a call that it did not make: the result is sent as content."""
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Hello."), Turn(calls=(Call("get_time", {}),), blocking=True))
        await a_turn(page)
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        google.kill()
        await page.until(ev.ProviderConnected, 2)
        google.script(Turn(says="It is noon."))
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert [one.how for one in page.told(ev.ToolDelivered)] == ["content"]
    assert google.sessions[1].answers == []
    assert any("12:00" in text for text in asked_in_text(google.sessions[1]))


async def test_a_refused_handle_is_followed_by_the_history_and_by_no_second_greeting(
    workers: Workers, page: Page, google: GeminiServer
) -> None:
    """Another system started again, without its memory, and greeted again."""
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        google.handles.all_refused = True
        google.kill()
        await page.until(ev.SessionRestored)
        google.script(Turn(says="You are Ann."))
        await asks(page, "Who am I?")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert restored(page) == ["reseeded"]
    assert seeded_with(google.sessions[-1]) == [("user", "I am Ann."), ("model", "Hello Ann.")]
    assert said(page) == ["Hello Ann.", "You are Ann."]


async def test_a_poisoned_handle_is_not_tried_for_ever(workers: Workers, page: Page, google: GeminiServer) -> None:
    """A conversation kills each connection that resumes it."""
    async with workers.running():
        await connected(page)
        await a_turn(page)
        for kept in google.handles.issued.values():
            kept.poisoned = True
        google.kill()
        await google.opened(2)
        await page.speaks(UTTERANCE)
        await page.until(ev.ProviderConnected, resumed_by="seed")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert sum(session.resumed for session in google.sessions) <= connection.DEATHS_LIMIT
    assert restored(page)[-1] == "reseeded"


async def test_barge_in_one_frame_after_the_call_was_issued(workers: Workers, page: Page, google: GeminiServer) -> None:
    """The reply is cut off and the call cancelled; its late result is dropped, nothing is stuck, and the user is answered."""
    async with workers.running():
        page._plays = False
        await connected(page)
        google.script(
            Turn(says="Let me see what the clock says.", calls=(Call("get_time", {}),), after="It is noon.", blocking=True, cancels=True),
            Turn(hears="Never mind.", says="All right."),
        )
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        await page.speaks(BARGE_IN)
        await page.until(ev.GenerationCancelled, by="barge_in")
        await page.until(ev.ToolCancelled, reason="provider")
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.ToolDelivered, how="dropped")
        await page.until(ev.UserSaid, text="Never mind.")
        await page.when(lambda: page.ended(2))
        await page.says(gateway.PlaybackReported(generation=2, played_ms=page.sent_ms(2), state="finished"))
        await page.until(ev.TurnCompleted, number=2, reason="completed")
        await page.ends()
    assert page.flushed(1)
    assert [(one.number, one.reason) for one in page.told(ev.TurnCompleted)] == [(1, "interrupted"), (2, "completed")]
    assert answers(page.heard)[-1] == "All right."
    assert "It is noon." not in answers(page.heard)
    assert all(session.answers == [] for session in google.sessions)


async def test_a_timeout_after_an_intermediate_result(
    workers: Workers, page: Page, google: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress does not disarm the deadline: a call whose executor then falls silent is ended, and the model is told."""
    monkeypatch.setattr(rounds, "CALL_MARGIN_MS", 100)
    async with workers.running() as worker:
        await worker._store.publish_functions([SLOW])
        await connected(page)
        google.script(Turn(calls=(Call("slow", {}),), after="It took too long.", blocking=True))
        await asks(page, "Do it.")
        called = await page.event(ev.ToolCalled)
        await page.writes_as_tools(tools.ToolStarted(call_id=called.call_id, name="slow", attempt=1))
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [(one.call_id, one.reason) for one in page.told(ev.ToolCancelled)] == [(called.call_id, "timed_out")]
    assert google.sessions[0].answers[0]["response"]["code"] == "TIMED_OUT"


async def test_a_cancelled_call_that_may_not_run_twice_has_its_late_result_recorded_and_not_spoken(
    workers: Workers, page: Page, google: GeminiServer
) -> None:
    """The provider cancels a call after its effect; the result must not be spoken as if it were wanted."""
    async with workers.running():
        await connected(page)
        google.script(Turn(says="Booking.", calls=(Call("book", {}),), blocking=True, cancels=True))
        await asks(page, "Book it.")
        called = await page.event(ev.ToolCalled)
        google.script(Turn(hears="Stop it.", says="All right, I stopped."))
        await page.speaks(BARGE_IN)
        await page.until(ev.ToolCancelled, reason="provider")
        await page.executes(called, {"booked": True})
        await page.until(ev.ToolDelivered)
        await page.until(ev.AgentSaid, text="All right, I stopped.")
        await page.ends()
        log = await page.everything()
    assert [one.how for one in page.told(ev.ToolDelivered)] == ["dropped"]
    assert any(isinstance(one.event, tools.ToolCompleted) for one in log)
    assert all(session.answers == [] for session in google.sessions)


async def test_two_jobs_inside_one_poll_interval_with_a_cap_of_one(workers: Workers, pages: MakePage) -> None:
    """A worker never exceeds its limit, however close together the requests come."""
    first, second = pages(), pages()
    async with workers.running(max_sessions=1) as worker:
        await first.open("echo")
        await second.open("echo")
        await first.when(lambda: first.told(ev.SessionStarted) or second.told(ev.SessionStarted))
        assert worker.stats()["sessions"] == 1
        async with workers.running(max_sessions=1):
            await first.until(ev.SessionStarted)
            await second.until(ev.SessionStarted)
            assert worker.stats()["sessions"] == 1
            await first.ends()
            await second.ends()


async def test_played_words_survive_an_interruption(workers: Workers, page: Page, google: GeminiServer) -> None:
    """Words heard before the user spoke stay in the history; the rest does not count as said."""
    async with workers.running():
        page._plays = False
        await connected(page)
        story = "Once upon a time there was a king who had three daughters and no crown."
        google.script(Turn(says=story, stops_at_ms=3_000), Turn(hears="Stop.", says="All right."))
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) > 0)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=0, state="playing"))
        await page.when(lambda: page.sent_ms(1) >= 2_400)  # sent only a little ahead of playback, so that most of it can have been heard
        await page.speaks(BARGE_IN)
        await page.when(lambda: page.flushed(1))
        await page.says(gateway.PlaybackReported(generation=1, played_ms=1_500, state="flushed"))
        cut = await page.event(ev.AgentSaid, interrupted=True)
        await page.until(ev.AgentSaid, 2)
        google.handles.all_refused = True
        google.kill()
        await page.until(ev.ProviderConnected, resumed_by="seed")
        await page.ends()
    assert cut.text
    assert story.startswith(cut.text)
    assert ("model", cut.text) in seeded_with(google.sessions[-1])


async def test_an_empty_end_of_turn_is_asked_again_and_then_owned_up_to(workers: Workers, page: Page, google: GeminiServer) -> None:
    """A model ends its turn without a word."""
    async with workers.running():
        await connected(page)
        google.script(Turn(empty=True), Turn(says="Yes."))
        await asks(page, "Are you there?")
        await page.until(ev.TurnCompleted, reason="completed")
        google.script(Turn(empty=True), Turn(empty=True))
        await asks(page, "And now?")
        await page.until(ev.TurnCompleted, reason="failed")
        await page.ends()
    failures = page.told(ev.ProviderFailed)
    assert [one.handled for one in failures] == [True, True, False]
    assert answers(page.heard) == ["Yes."]
    assert apologies(page.heard) == [APOLOGIES["llm"]]


async def test_a_call_that_the_model_wrote_as_text_passes_the_same_gate(workers: Workers, page: Page, google: GeminiServer) -> None:
    """The text is not read aloud, and the call is a normal one: an event, an executor, a result."""
    async with workers.running() as worker:
        await worker._store.publish_functions([FUNCTION])
        await connected(page)
        google.script(Turn(says='get_time(place="Oslo")', text_only=True), Turn(says="In Oslo it is noon."))
        await asks(page, "What time is it in Oslo?")
        called = await page.event(ev.ToolCalled)
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert (called.name, called.arguments) == ("get_time", {"place": "Oslo"})
    assert said(page) == ["In Oslo it is noon."]


async def test_the_same_words_said_twice_are_both_kept(workers: Workers, page: Page, google: GeminiServer) -> None:
    """A guard against repeated transcripts must not drop a user's repeated words."""
    async with workers.running():
        await connected(page)
        google.script(Turn(hears="Yes.", says="Sure?"), Turn(hears="Yes.", says="Good."))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert user_said(page) == ["Yes.", "Yes."]
    assert [one.turn for one in page.told(ev.UserSaid)] == [1, 2]


async def test_replay_of_the_log_is_a_no_op_diff(workers: Workers, page: Page, google: GeminiServer) -> None:
    """All events of a call on a realtime model follow from its inputs."""
    async with workers.running():
        await connected(page)
        google.script(Turn(hears="Hello?", says="Hello."), Turn(calls=(Call("get_time", {}),), after="It is noon.", blocking=True))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, reason="completed")
        await asks(page, "What time is it?")
        called = await page.event(ev.ToolCalled)
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, 2, reason="completed")
        google.refuse(Refusal(code=1011))
        google.kill()
        await page.until(ev.SessionRestored)
        await page.ends()
        log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)
