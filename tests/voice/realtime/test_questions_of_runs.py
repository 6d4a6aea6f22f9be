"""Questions of runs to a user of a realtime model: the model asks, and no word that was for it is the answer."""

from __future__ import annotations

import pytest

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn
from tests.voice.conftest import Page, Workers
from tests.voice.realtime_calls import UTTERANCE, asked_in_text, asks, connected
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
QUESTION = "Which city shall it be?"
WAITING = tools.RunWaiting(run_id="r1", name="trip", reason="ask", step="where", question=QUESTION, expires_ts=1)


@pytest.mark.parametrize("typed", [False, True], ids=["spoken", "typed"])
async def test_the_users_next_words_answer_what_the_model_asked(workers: Workers, page: Page, google: GeminiServer, typed: bool) -> None:
    google.script(Turn(says="So, which city shall it be?"), Turn(hears="" if typed else "Lisbon.", says="Very well."))
    async with workers.running():
        await connected(page)
        await page.writes_as_tools(WAITING)
        await page.until(ev.AgentSaid)
        assert QUESTION in asked_in_text(google.sessions[-1])[-1]
        if typed:
            await asks(page, "Lisbon.")
        else:
            await page.speaks(UTTERANCE)
        answer = await page.event(ev.RunAnswered)
        assert (answer.run_id, answer.step, answer.text) == ("r1", "where", "Lisbon.")
        await page.ends()


async def test_an_answer_to_the_models_own_question_is_not_the_runs(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(says="Hello, how are you?"), Turn(says="Good. And you?"))
    async with workers.running():
        await connected(page)
        await page.writes_as_tools(WAITING)
        await page.until(ev.AgentSaid)
        await asks(page, "Fine, thanks.")
        await page.until(ev.AgentSaid, 2)
        await page.ends()
    assert page.told(ev.RunAnswered) == []
