"""Thoughts of a reasoning model, which are told nobody, wherever the stream cuts their tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.language.thoughts import Thoughts


def told(*pieces: str) -> str:
    """Return what is told of a text that comes in these pieces."""
    thoughts = Thoughts()
    return "".join([*map(thoughts.take, pieces), thoughts.rest()])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>secret</think>\n\nHello.", "Hello."),
        ("<THINKING>secret</THINKING>Hello.", "Hello."),
        ("Well. <think>a</think> And <think>b</think> so.", "Well. And so."),
        ("<think>never ended", ""),
        ("stray </think>end", "stray end"),
        ("a < b and <b>bold</b>", "a < b and <b>bold</b>"),
        ("it ends with <thi", "it ends with <thi"),
        ("<thinks>not a tag</thinks>", "<thinks>not a tag</thinks>"),
        ("", ""),
    ],
)
def test_thoughts_are_left_out_in_one_piece_and_letter_by_letter(text: str, left: str) -> None:
    assert told(text) == told(*text) == left


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "thi", "nk>", "/", " word", "SECRET", "\n"]), max_size=14), st.data())
def test_how_the_stream_cuts_a_text_changes_nothing(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(min_value=0, max_value=len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert told(*pieces) == told(text)
    assert "SECRET" not in told(f"<think>{text.replace('</think>', ' ')}SECRET")
