"""Messages of programs to the officer: signed, bounded, taken once and not too often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.terminals.core.marks import of_sequence
from voxbridge.shared.terminals import peers
from voxbridge.shared.terminals.peers import AGE_US, EVERY_US, NAME_LIMIT, SEQUENCE_LIMIT, TEXT_LIMIT, Message, read, taken, written

NOW = 1_800_000_000_000_000


def content(sequence: bytes) -> bytes:
    """Return a sequence without what opens and closes it, as the emulator gives it."""
    return sequence.removeprefix(b"\x1b]").removesuffix(b"\x1b\\")


@pytest.mark.parametrize(
    "message",
    [
        Message(NOW, "", "The tests need another fixture."),
        Message(NOW, "reviewer", "Fertig; weiter geht's: 你好"),
        Message(NOW, "n" * NAME_LIMIT, "😀" * TEXT_LIMIT),
    ],
)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    sequence = written(message, "secret")
    assert len(sequence) <= SEQUENCE_LIMIT
    assert of_sequence(content(sequence), "", "secret") == message
    assert of_sequence(content(sequence), "", "another") is None
    assert of_sequence(content(sequence), "", "") is None, "a terminal of before that has no secret"


@pytest.mark.parametrize(
    "message",
    [
        Message(NOW, "", ""),
        Message(NOW, "", "x" * (TEXT_LIMIT + 1)),
        Message(NOW, "n" * (NAME_LIMIT + 1), "text"),
        Message(NOW, "", "two\nlines"),
        Message(NOW, "", "\x1b]0;title\x07"),
        Message(NOW, "", "\u202eright to left"),
        Message(-1, "", "text"),
    ],
)
def test_a_message_beyond_a_limit_is_none(message: Message) -> None:
    assert of_sequence(content(written(message, "secret")), "", "secret") is None


@given(st.binary(max_size=200))
def test_nothing_else_is_a_message(noise: bytes) -> None:
    found = of_sequence(f"{peers.NUMBER};".encode() + noise, "", "secret")
    assert found is None
    assert read(noise.decode("latin-1"), "secret") is None


@pytest.mark.parametrize(
    ("at", "last", "now", "counts"),
    [
        (NOW, 0, NOW, True),
        (NOW, NOW, NOW, False),
        (NOW + EVERY_US, NOW, NOW + EVERY_US, True),
        (NOW + EVERY_US - 1, NOW, NOW + EVERY_US, False),
        (NOW, 0, NOW + AGE_US, True),
        (NOW, 0, NOW + AGE_US + 1, False),
        (NOW + AGE_US + 1, 0, NOW, False),
    ],
)
def test_a_message_counts_once_while_it_is_new_and_not_too_soon(at: int, last: int, now: int, counts: bool) -> None:
    assert taken(Message(at, "", "text"), last=last, now=now) is counts
