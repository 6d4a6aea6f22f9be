"""Ends of turns reported by the provider: after the user has heard all, of a turn that waits for the user, and their token counts.

Gemini Live waits for playback before it sends `turnComplete`. The stand-in is delayed here until the caller has heard the reply.
"""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.fakes.gemini import model
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn, content
from tests.voice.conftest import Page, Workers
from tests.voice.realtime_calls import BARGE_IN, UTTERANCE, asked_in_text, asks, connected, restored, said, user_said
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
TOKENS = 110
"""Tokens of a turn in the stand-in: input, thoughts and output."""
COUNTED = {
    "promptTokenCount": 70,
    "toolUsePromptTokenCount": 7,
    "responseTokenCount": 30,
    "thoughtsTokenCount": 3,
    "totalTokenCount": TOKENS,
}
HELLO, ORDER = Turn(hears="Hello?", says="Hello there."), Turn(hears="A pizza, please.", says="At once.")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Event that is set when the stand-in may end its turns."""
    event, complete = asyncio.Event(), model.Model._complete

    async def late(self: model.Model, turn: Turn) -> None:
        await event.wait()
        await complete(self, turn)

    monkeypatch.setattr(model.Model, "_complete", late)
    return event


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same token counts for each turn."""
    monkeypatch.setattr(model, "usage", lambda turn: COUNTED)


def counted(page: Page) -> int:
    """Return the tokens of all turns and of the rest of the session."""
    usages = [one.usage for one in page.told(ev.TurnCompleted, ev.SessionEnded) if one.usage is not msgspec.UNSET]
    return sum(one.input_tokens + one.output_tokens for one in usages)


async def test_a_turn_that_was_heard_before_it_was_over_is_not_asked_for_again(
    workers: Workers, page: Page, google: GeminiServer, heard: asyncio.Event
) -> None:
    google.script(Turn(says="Hello there."), Turn(says="At once."))
    async with workers.running():
        await connected(page)
        await asks(page, "Hello?")
        await page.until(ev.TurnCompleted)
        heard.set()
        await asks(page, "A pizza, please.")
        await page.until(ev.TurnCompleted, 2)
        await page.ends()
    assert asked_in_text(google.sessions[0]) == ["Hello?", "A pizza, please."]
    assert said(page) == ["Hello there.", "At once."]
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["completed", "completed"]
    assert counted(page) == 2 * TOKENS


async def test_the_same_of_a_turn_that_was_spoken(workers: Workers, page: Page, google: GeminiServer, heard: asyncio.Event) -> None:
    google.script(HELLO, ORDER)
    async with workers.running():
        await connected(page)
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted)
        heard.set()
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2)
        await page.ends()
    assert asked_in_text(google.sessions[0]) == []
    assert (user_said(page), said(page)) == (["Hello?", "A pizza, please."], ["Hello there.", "At once."])


async def test_what_was_heard_to_its_end_is_not_asked_again_of_the_next_connection(
    workers: Workers, page: Page, google: GeminiServer, heard: asyncio.Event
) -> None:
    google.script(Turn(says="Hello there."), Turn(says="At once."))
    async with workers.running():
        await connected(page)
        await asks(page, "Hello?")
        await page.until(ev.TurnCompleted)
        google.kill()
        await page.until(ev.SessionRestored)
        heard.set()
        await asks(page, "A pizza, please.")
        await page.until(ev.TurnCompleted, 2)
        await page.ends()
    assert asked_in_text(google.sessions[-1]) == ["A pizza, please."]
    assert said(page) == ["Hello there.", "At once."]
    assert len(restored(page)) == 1


async def test_a_model_that_waits_for_the_user_to_go_on_is_not_asked_for_an_answer(
    workers: Workers, page: Page, google: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = model.Model._complete

    async def waiting(self: model.Model, turn: Turn) -> None:
        if turn.says:
            await complete(self, turn)
        else:
            self.turns += 1
            await self._session.send(content(turnComplete=True, waitingForInput=True))

    monkeypatch.setattr(model.Model, "_complete", waiting)
    google.script(Turn(hears="I would like to, um,"), ORDER)
    async with workers.running():
        await connected(page)
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted)
        await page.when(lambda: page.states[-1] == "listening")
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2)
        await page.ends()
    assert asked_in_text(google.sessions[0]) == []
    assert page.told(ev.ProviderFailed) == []
    assert user_said(page) == ["I would like to, um,", "A pizza, please."]
    assert said(page) == ["At once."]
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["completed", "completed"]


async def test_tokens_of_an_interrupted_turn_count(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(hears="Hello?", says="Hello there, and let me tell you.", stops_at_ms=400), ORDER)
    async with workers.running():
        await connected(page, plays=False)
        await page.speaks(UTTERANCE)
        await page.when(lambda: page.frames)
        await page.speaks(BARGE_IN)
        await page.until(ev.AgentSaid, interrupted=True)
        await page.until(ev.AgentSaid, text="At once.")
        await page.ends()
    assert counted(page) == 2 * TOKENS


async def test_tokens_that_are_told_behind_a_turn_count(
    workers: Workers, page: Page, google: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def complete(self: model.Model, turn: Turn) -> None:
        self.turns += 1
        await self._session.send(content(turnComplete=True))
        await self._session.send({"usageMetadata": COUNTED})

    monkeypatch.setattr(model.Model, "_complete", complete)
    google.script(HELLO, ORDER, HELLO)
    async with workers.running():
        await connected(page)
        for number in (1, 2, 3):
            await page.speaks(UTTERANCE)
            await page.until(ev.TurnCompleted, number)
        await page.ends()
    assert counted(page) in (2 * TOKENS, 3 * TOKENS), "those of the last turn may come after the call's end"
