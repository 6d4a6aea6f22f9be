"""Pieces of a growing text: their cost, and the result when some are lost or a listener joins late."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.bus import moments
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.bus.partials import LIMIT, Composer, Pieces

WORDS = [f"word{number}" for number in range(1_000)]


def told(text: str, *, turn: int = 1, generation: int = 1) -> PartialTranscript:
    return PartialTranscript("assistant", text, turn=turn, generation=generation)


def growing(words: int) -> list[PartialTranscript]:
    return [told(" ".join(WORDS[:count])) for count in range(1, words + 1)]


def size(piece: PartialTranscript) -> int:
    return len(msgspec.msgpack.encode(piece))


@pytest.mark.parametrize("words", [30, 300, 1_000])
def test_a_text_costs_as_much_more_as_it_is_longer(words: int) -> None:
    pieces = Pieces()
    texts = growing(words)
    assert sum(size(pieces.cut(text)) for text in texts) < 150 * words


def test_whoever_hears_all_pieces_has_each_text() -> None:
    pieces, composer = Pieces(), Composer()
    assert [composer.take(pieces.cut(text)) for text in growing(300)] == growing(300)


def test_a_piece_begins_where_the_text_changed_and_cuts_off_what_stood_there() -> None:
    pieces, composer = Pieces(), Composer()
    texts = ["I scream 🍦 for", "I scream 🍦 four", "I scream 🍦", "Ice cream 🍦!", "Ice cream 🍦"]
    sent = [pieces.cut(told(text)) for text in texts[:3]]
    assert [(piece.offset, piece.text) for piece in sent] == [(0, "I scream 🍦 for"), (13, "ur"), (10, "")]
    assert [composer.take(piece) for piece in sent] == [told(text) for text in texts[:3]]
    assert [composer.take(pieces.cut(told(text))) for text in texts[3:]] == [told(text) for text in texts[3:]]


def test_a_lost_piece_shows_nothing_wrong_and_a_whole_text_mends_it_soon() -> None:
    pieces, composer = Pieces(), Composer()
    shown = [composer.take(piece) for number, piece in enumerate(map(pieces.cut, growing(300))) if number != 200]
    missing = [number for number, text in enumerate(shown) if text is None]
    assert missing == list(range(200, 200 + len(missing)))
    assert 0 < len(missing) < 40
    assert [text for text in shown if text is not None] == [*growing(300)[:200], *growing(300)[201 + len(missing) :]]


def test_a_lost_change_of_what_was_heard_is_noticed_although_the_lengths_fit() -> None:
    pieces, composer = Pieces(), Composer()
    first, changed, longer = (pieces.cut(told(text)) for text in ("a red fox", "a big fox", "a big fox runs"))
    assert composer.take(first) == told("a red fox")
    assert (changed.offset, longer.offset) == (2, len("a red fox"))
    assert composer.take(longer) is None


def test_a_piece_of_another_reply_is_not_joined_on() -> None:
    composer = Composer()
    composer.take(told("Hello"))
    for turn, generation in ((1, 2), (2, 1)):
        pieces = Pieces()
        pieces.cut(told("Hello", turn=turn, generation=generation))
        assert composer.take(pieces.cut(told("Hello you", turn=turn, generation=generation))) is None


def test_who_begins_to_listen_has_the_text_with_the_next_message() -> None:
    pieces, late = Pieces(), Composer()
    texts = growing(300)
    assert [late.take(piece) for piece in [pieces.cut(text) for text in texts[:200]][-5:]] == [None] * 5
    pieces.forget()
    assert late.take(pieces.cut(texts[200])) == texts[200]
    assert late.take(pieces.cut(texts[201])) == texts[201]


def test_both_sides_may_speak_at_once() -> None:
    pieces, composer = Pieces(), Composer()
    user = [PartialTranscript("user", " ".join(WORDS[:count]), turn=2) for count in range(1, 50)]
    both = [text for pair in zip(user, growing(49), strict=True) for text in pair]
    assert [composer.take(pieces.cut(text)) for text in both] == both


def test_a_message_is_bounded_and_so_is_a_text() -> None:
    pieces, composer = Pieces(), Composer()
    most = "\N{ICE CREAM}" * LIMIT
    piece = pieces.cut(told(most + "and more"))
    assert size(piece) < 4 * LIMIT + 200
    assert composer.take(piece) == told(most)
    assert composer.take(pieces.cut(told(most + "and still more"))) == told(most)
    over = PartialTranscript("assistant", "x", turn=1, generation=1, offset=LIMIT)
    assert composer.take(over) is None
    assert composer.take(told("x" * (LIMIT + 1))) == told("x" * LIMIT)


def test_an_offset_before_the_text_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        moments.decode(msgspec.msgpack.encode({"type": "partial", "role": "user", "text": "a", "turn": 1, "offset": -1}))


@given(st.lists(st.tuples(st.text("abc", max_size=12), st.booleans(), st.booleans()), max_size=40))
def test_what_is_shown_is_what_was_told_whatever_is_lost(steps: list[tuple[str, bool, bool]]) -> None:
    pieces, composer = Pieces(), Composer()
    for text, lost, joined in steps:
        if joined:
            pieces.forget()
        piece = pieces.cut(told(text))
        if not lost:
            shown = composer.take(piece)
            assert shown == told(text) or (shown is None and piece.offset)
