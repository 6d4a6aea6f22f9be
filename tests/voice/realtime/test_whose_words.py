"""Assignment of words to replies, and of results to answers, when several of them are under way on Gemini Live."""

from __future__ import annotations

import pytest

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import Page, Workers
from tests.voice.realtime_calls import UTTERANCE, a_turn, asked_in_text, asks, connected
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
STORY = "Once upon a time there was a king."


async def test_an_answer_that_begins_with_a_call_takes_no_word_to_the_reply_that_is_still_heard(
    workers: Workers, page: Page, google: GeminiServer
) -> None:
    call = Call("get_time", {"place": "Oslo"})
    google.script(Turn(says=STORY), Turn(hears="What time is it?", calls=(call,), after="It is noon.", blocking=True))
    async with workers.running():
        await connected(page, plays=False)
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.ended(1))
        await page.speaks(UTTERANCE)
        called = await page.event(ev.ToolCalled)
        await page.executes(called, {"time": "12:00"})
        await page.when(lambda: page.ended(2))
        for generation in (1, 2):
            await page.says(gateway.PlaybackReported(generation=generation, played_ms=page.sent_ms(generation), state="finished"))
        await page.until(ev.TurnCompleted, number=2)
        await page.ends()
    assert [(one.turn, one.text) for one in page.told(ev.AgentSaid)] == [(1, STORY), (2, "It is noon.")]
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["completed", "completed"]


async def test_results_that_wait_for_another_connection_are_answered_together(workers: Workers, page: Page, google: GeminiServer) -> None:
    calls = (Call("get_time", {"place": "Oslo"}), Call("get_weather", {"place": "Oslo"}))
    google.script(Turn(says="Hello."), Turn(calls=calls, blocking=True), Turn(says="Noon and snow."), Turn(says="You are welcome."))
    async with workers.running():
        await connected(page)
        await a_turn(page)
        await asks(page, "What is it like in Oslo?")
        first, second = await page.event(ev.ToolCalled), await page.event(ev.ToolCalled, 2)
        await google.stop()
        await page.until(ev.ProviderLost)
        await page.executes(first, {"time": "12:00"})
        await page.executes(second, {"sky": "snow"})
        await page.until(ev.ToolDelivered, 2)
        await google.start()
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await a_turn(page, "Thanks.", count=3)
        await page.ends()
    assert [(one.turn, one.text) for one in page.told(ev.AgentSaid)] == [(1, "Hello."), (2, "Noon and snow."), (3, "You are welcome.")]
    told = asked_in_text(google.sessions[-1])
    assert [("12:00" in text, "snow" in text) for text in told] == [(True, True), (False, False)]
