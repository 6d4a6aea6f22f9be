"""Names of keys and of modes as people say them."""

from __future__ import annotations

from typing import get_args

import pytest

from voxbridge.services.tools.packs.terminals.functions import Key
from voxbridge.shared.spoken_modes import NAMES, TIMES_LIMIT, WORDS_LIMIT, Mode, auto, mode, pressed


@pytest.mark.parametrize(
    ("said", "key", "times"),
    [
        ("Escape.", "escape", 1),
        ("press control C", "ctrl-c", 1),
        ("Press Control-C.", "ctrl-c", 1),
        ("Hit the enter key, please.", "enter", 1),
        ("down three times", "down", 3),
        ("Page down twice", "page-down", 2),
        ("up, up, up", "up", 3),
        ("control c control c", "ctrl-c", 2),
        ("Yes.", "y", 1),
        ("number two", "2", 1),
        (" ".join(["up"] * TIMES_LIMIT), "up", TIMES_LIMIT),
    ],
)
def test_a_key_is_known_by_its_names(said: str, key: str, times: int) -> None:
    assert pressed(said) == (key, times)


@pytest.mark.parametrize(
    "said", ["", "What does it say?", "down enter", "press everything", "the escape room", "up " * (TIMES_LIMIT + 1), "x" * 10_000]
)
def test_what_names_no_key_or_several_is_none(said: str) -> None:
    assert pressed(said) is None


def test_each_name_is_of_a_key_that_can_be_pressed() -> None:
    assert set(NAMES.values()) == set(get_args(Key))


@pytest.mark.parametrize(
    ("said", "wanted"),
    [("Auto off.", False), ("turn auto on", True), ("switch auto mode off please", False), ("the auto is off", None), ("auto", None)],
)
def test_auto_is_turned_on_and_off_by_the_whole_utterance(said: str, wanted: bool | None) -> None:
    assert auto(said) is wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("Chat mode.", "chat"),
        ("Switch to key mode, please.", "key"),
        ("go back to A.I. mode", "ai"),
        ("Back to the officer mode", "ai"),
        ("use keyboard mode", "key"),
        ("dictation mode on", "chat"),
        ("What is chat mode?", None),
        ("Claude, please add a chat mode", None),
        ("chat", None),
        ("chat mode" + " " * WORDS_LIMIT, None),
    ],
)
def test_a_mode_is_asked_for_by_the_whole_utterance(said: str, wanted: Mode | None) -> None:
    assert mode(said) == wanted
