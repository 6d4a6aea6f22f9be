"""Rate at which a client receives a growing caption."""

from __future__ import annotations

from itertools import pairwise

from voxbridge.services.gateway.core.captions import EVERY_S, Captions
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.bus.partials import Pieces

TURN = EVERY_S / 4


def said(text: str, *, generation: int = 1) -> PartialTranscript:
    return PartialTranscript("assistant", text, turn=1, generation=generation)


def asked(text: str) -> PartialTranscript:
    return PartialTranscript("user", text, turn=1)


def test_the_first_words_wait_for_nothing_and_of_the_next_the_newest_are_shown_in_their_time() -> None:
    captions, pieces = Captions(), Pieces()
    texts = [said("word " * count) for count in range(1, 5)]
    shown = [captions.take(pieces.cut(text), 5.0 + number * TURN) for number, text in enumerate(texts)]
    assert shown == [[texts[0]], [], [], []]
    due = captions.due()
    assert due == 5.0 + EVERY_S
    assert captions.release(due - TURN) == []
    assert captions.release(due) == [texts[3]]
    assert captions.due() is None
    assert captions.take(pieces.cut(said("word " * 5)), due + TURN) == []
    assert captions.due() == due + EVERY_S


def test_a_text_that_goes_on_slowly_is_never_held() -> None:
    captions = Captions()
    texts = [said("word " * count) for count in range(1, 100)]
    assert [captions.take(text, number * 2 * EVERY_S) for number, text in enumerate(texts)] == [[text] for text in texts]
    assert captions.due() is None


def test_a_minute_of_words_is_shown_ten_times_a_second_at_most_and_to_its_end() -> None:
    captions, pieces, shown = Captions(), Pieces(), []
    for number in range(6_000):
        now = number / 100
        due = captions.due()
        if due is not None and due <= now:
            shown += [(due, text) for text in captions.release(due)]
        shown += [(now, text) for text in captions.take(pieces.cut(said("w " * (number + 1))), now)]
    shown += [(61.0, text) for text in captions.release(61.0)]
    assert min(later - earlier for (earlier, _), (later, _) in pairwise(shown)) >= EVERY_S - 1e-9
    assert 590 <= len(shown) <= 602
    assert shown[-1][1] == said("w " * 6_000)


def test_what_is_held_goes_ahead_of_another_reply_and_of_whatever_is_told_next() -> None:
    captions = Captions()
    captions.take(said("One"), 0.0)
    captions.take(said("One two"), 0.01)
    assert captions.take(said("Three", generation=2), 0.02) == [said("One two"), said("Three", generation=2)]
    captions.take(said("Three four", generation=2), 0.03)
    assert captions.release(0.04, early=True) == [said("Three four", generation=2)]
    assert captions.take(said("Three four five", generation=2), 0.05) == []
    assert captions.due() == 0.04 + EVERY_S


def test_each_side_has_a_time_of_its_own() -> None:
    captions = Captions()
    captions.take(asked("What"), 0.0)
    captions.take(said("It"), 0.09)
    captions.take(asked("What time"), 0.09)
    captions.take(said("It is"), 0.095)
    assert captions.release(EVERY_S) == [asked("What time")]
    assert captions.due() == 0.09 + EVERY_S


def test_what_cannot_be_joined_on_leaves_what_is_shown() -> None:
    captions, pieces, long = Captions(), Pieces(), "word " * 100
    captions.take(pieces.cut(said(long)), 0.0)
    captions.take(pieces.cut(said(long + "two")), 0.01)
    pieces.cut(said(long + "too"))
    assert captions.take(pieces.cut(said(long + "too many")), 0.02) == []
    assert captions.release(EVERY_S) == [said(long + "two")]
