"""A spoken conversation: speech is transcribed, answers are heard, and both are in the log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import HUMAN_WORDS, Sound, human, shared_words, silence, spoken, transcribed, words
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)


def test_a_person_is_understood_and_the_answer_is_heard(product: Product, hear: Callable[[Sound], Studio]) -> None:
    studio = hear(_device(human()))
    sid = studio.start()
    studio.until_said("user", "better")
    studio.until("(s) => s.conversation.filter((e) => e.kind === 'said' && e.final).at(-1)?.role === 'assistant' && s.turn > 0")
    studio.until_quiet()

    said = " ".join(line["text"] for line in studio.said("user"))
    assert shared_words(HUMAN_WORDS, said) >= 0.7, said
    assert shared_words(said, studio.captions().inner_text()) == 1
    assert shared_words(said, " ".join(event["data"]["text"] for event in product.logged(sid, "user.said"))) == 1
    _check_heard(product, studio, sid)


def test_a_question_is_answered_with_a_function_and_the_answer_says_so(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"question": spoken(product.models, "What time is it in Tokyo?")})
    sid = studio.start()
    studio.until_quiet()
    studio.say("question")
    studio.until_said("user", "time.*Tokyo")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'call' && e.name === 'current_time' && e.status === 'done')")
    answer = studio.until_said("assistant", r"\d")

    card = studio.captions().get_by_role("group").filter(has_text="Current time")
    expect(card).to_be_visible()
    card.locator("summary").click()
    expect(card.get_by_role("region", name="Result")).to_contain_text("Tokyo")
    (called,) = product.logged(sid, "tool.called", name="current_time")
    (completed,) = product.logged(sid, "tool.completed", name="current_time")
    assert "tokyo" in str(called["data"]["arguments"]).lower()
    assert set(words(str(completed["data"]["result"]))) & set(words(answer)), (completed["data"]["result"], answer)
    assert completed["data"]["call_id"] == called["data"]["call_id"]
    expect(studio.page.get_by_text("Last turn", exact=True)).to_be_visible()
    studio.until_quiet()
    _check_heard(product, studio, sid)


def test_a_typed_conversation_goes_on_by_voice_and_in_text_again(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"question": spoken(product.models, "What time is it in Tokyo?")})
    studio.type("Hello there.")
    sid = studio.connected()
    studio.until_said("assistant", r"\w")
    studio.until_quiet()
    studio.button("Talk").click()
    expect(studio.button("Mute")).to_be_enabled()
    studio.until_quiet()
    studio.say("question")
    studio.until_said("user", "time.*Tokyo")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'call' && e.name === 'current_time' && e.status === 'done')")
    studio.until_quiet()
    studio.picture("typed-then-spoken")
    studio.button("Go on in text").click()
    expect(studio.button("Talk")).to_be_visible()
    turn = studio.snapshot()["turn"]
    studio.type("What time is it in Rome?")
    studio.until("(s, turn) => s.turn > turn", turn)
    studio.until_quiet()
    assert "Rome" in str(product.logged(sid, "tool.called", name="current_time")[-1]["data"]["arguments"])
    assert [one["data"]["output"] for one in product.logged(sid, "output.requested")] == ["audio", "text"]


def test_a_timer_speaks_up_when_it_ends(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"request": spoken(product.models, "Set a timer for five seconds.")})
    sid = studio.start()
    studio.until_quiet()
    studio.say("request")
    studio.until_said("user", "timer")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'done')")
    (started,) = product.logged(sid, "task.started")
    (completed,) = product.logged(sid, "task.completed")
    assert 4 <= (completed["ts"] - started["ts"]) / 1e6 <= 8
    announce = completed["data"]["announce"]
    studio.until("(s, t) => s.conversation.some((e) => e.role === 'assistant' && e.final && e.text.includes(t))", announce)
    studio.until_quiet()
    _check_heard(product, studio, sid)


def _device(speech: Sound) -> Sound:
    """Return a recording with time for the greeting before the speech, and for the answer after it."""
    return np.concatenate((silence(5), speech, silence(60)))


def _check_heard(product: Product, studio: Studio, sid: str) -> None:
    """Check that the sound of the loudspeaker matches the answers on the page and in the log."""
    played = studio.played()
    heard = transcribed(product.models, played.sound, played.rate)
    logged = " ".join(event["data"]["text"] for event in product.log(sid) if event["type"] == "agent.said")
    shown = " ".join(line["text"] for line in studio.said("assistant"))
    assert words(logged) == words(shown)
    assert shared_words(logged, heard) >= 0.7, (logged, heard)
