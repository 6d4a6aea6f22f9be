"""Pieces of a recording as one asciicast."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from voxbridge.shared.terminals.asciicast import Joined


def piece(*events: tuple[float, str, str], cols: int = 80, rows: int = 24) -> bytes:
    """Return a piece with these events."""
    header = {"version": 3, "term": {"cols": cols, "rows": rows, "type": "xterm-256color"}, "timestamp": 1_000}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (header, *events))


def joined(*pieces: tuple[int, bytes], part: int = 1_000_000) -> list[Any]:
    """Return the lines of pieces that were begun at these ms, fed in parts of so many bytes."""
    whole, made = Joined(), b""
    for begun_ms, data in pieces:
        whole.begin(begun_ms)
        made += b"".join(whole.feed(data[at : at + part]) for at in range(0, len(data), part))
    return [json.loads(line) for line in made.splitlines()]


@pytest.mark.parametrize("part", [1, 7, 1_000_000])
def test_a_piece_goes_on_where_the_one_before_it_ended(part: int) -> None:
    first = piece((0.0, "o", "a"), (1.5, "o", "b"))
    second = piece((0.25, "o", "whole screen"), (0.5, "o", "c"))
    header, *events = joined((1_000, first), (4_000, second), part=part)
    assert (header["version"], header["term"]["cols"]) == (3, 80)
    assert events == [[0.0, "o", "a"], [1.5, "o", "b"], [1.75, "o", "whole screen"], [0.5, "o", "c"]]


def test_a_piece_of_another_size_resizes_the_screen_when_it_begins() -> None:
    second = piece((0.25, "o", "whole screen"), cols=100, rows=30)
    assert joined((1_000, piece((0.5, "o", "a"))), (2_000, second))[2:] == [[0.5, "r", "100x30"], [0.25, "o", "whole screen"]]


def test_a_size_that_was_resized_to_before_is_not_told_again() -> None:
    first = piece((0.0, "o", "a"), (0.0, "r", "100x30"))
    assert joined((1_000, first), (1_000, piece((0.0, "o", "b"), cols=100, rows=30)))[1:] == [
        [0.0, "o", "a"], [0.0, "r", "100x30"], [0.0, "o", "b"],
    ]  # fmt: skip


def test_a_line_that_breaks_off_is_left_out() -> None:
    broken = piece((0.0, "o", "a")) + b'[0.1,"o","b'
    assert joined((1_000, broken), (1_000, piece((0.2, "o", "c"))))[1:] == [[0.0, "o", "a"], [0.2, "o", "c"]]


def test_a_piece_that_begins_before_the_last_event_waits_for_nothing() -> None:
    assert joined((1_000, piece((5.0, "o", "a"))), (2_000, piece((0.1, "o", "b"))))[1:] == [[5.0, "o", "a"], [0.1, "o", "b"]]


@pytest.mark.parametrize("data", [b"no asciicast\n", b'{"version":3}\n', piece() + b"[1]\n"])
def test_what_is_no_asciicast_is_an_error(data: bytes) -> None:
    whole = Joined()
    whole.begin(1_000)
    with pytest.raises(msgspec.MsgspecError):
        whole.feed(data)
