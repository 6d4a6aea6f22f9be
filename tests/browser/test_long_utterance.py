"""One utterance of more than two minutes, spoken in a real browser and transcribed by the real model, which is nearly all waiting."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import RATE, shared_words, silence, spoken, words

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
