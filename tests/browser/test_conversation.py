"""A spoken conversation: speech is transcribed, answers are heard, and both are in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import HUMAN_WORDS, RATE, Sound, human, shared_words, silence, spoken, transcribed, words
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)

STORY: Final = """
On Monday morning my brother and I left the old house by the river and walked to the station.
The train was late, because there had been a storm in the mountains during the night.
A friendly woman sold us warm bread and apples, and we waited on a wooden bench.
When the train came at last, we found two seats beside a window and put our bags under them.
Behind the first tunnel the rain stopped, and we saw green fields with horses and sheep.
A boy across from us was reading a book about pirates, and he told us the best parts of it.
At noon we changed trains in a small town that had a market and a very tall church.
My brother bought a yellow umbrella there, although the sky was blue again by then.
The second train was full of children who were going to the sea with their teacher.
They sang songs the whole way, and one of them lost a shoe somewhere under the seats.
We all looked for it together, and the guard found it next to the door.
In the afternoon we could smell salt in the air, and then we saw the first white boats.
My grandmother was waiting for us on the platform with her little brown dog.
She had baked a cake with cherries, and we ate it in the garden behind her house.
Later we walked along the beach and collected shells until it was dark.
The lighthouse was turning slowly, and far away a ship was blowing its horn.
Before we went to bed, she showed us pictures of our mother when she was a child.
I could not sleep for a long time, because the waves were so loud that night.
The next day we helped a neighbor to paint his fence, and he gave us fresh fish.
My brother cooked it with lemon and butter, and everybody wanted some more.
In the evening a teacher from the village played the piano, and two old sailors were dancing.
One of them had a parrot at home that could say good morning in seven languages.
On Thursday it was so hot that we stayed in the shade and read the newspaper to each other.
A black cat came through the window and slept on my brother's hat for the whole afternoon.
When the wind came up again, we borrowed a small boat and sailed around the island.
The water was so clear that we could see stones and silver fish at the bottom.
We found a quiet bay with pine trees and had bread, cheese and tomatoes for lunch.
On the way back my brother caught a crab, looked at it, and let it go again.
We stayed there for a whole week, and it was over much too soon.
On the last evening we made a fire and promised to come back in the winter.
That is the whole story of our journey, and now I have to say goodbye.
"""
"""A story of more than two minutes, without a pause at which anybody would take the speaker for done."""


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


def test_who_speaks_for_over_two_minutes_is_heard_from_the_first_word_to_the_last(product: Product, open_studio: OpenStudio) -> None:
    told = [line.strip() for line in STORY.strip().splitlines()]
    parts = [spoken(product.models, line) for line in told]
    story = np.concatenate([sound for part in parts for sound in (part, silence(0.2))])
    assert len(story) >= 121 * RATE
    studio = open_studio(clips={"story": story})
    sid = studio.start()
    studio.until_quiet()
    studio.page.set_default_timeout(240_000)
    studio.say("story")
    studio.until_said("user", "goodbye")
    said = " ".join(event["data"]["text"] for event in product.logged(sid, "user.said"))
    understood = {line: shared_words(line, said) for line in told}
    assert shared_words(" ".join(told), said) >= 0.8, said
    assert min(understood.values()) >= 0.5, understood
    assert words(said) == words(" ".join(line["text"] for line in studio.said("user")))


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
