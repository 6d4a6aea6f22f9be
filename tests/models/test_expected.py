"""The names that a prompt leads a recogniser to expect."""

from __future__ import annotations

import pytest

from voxbridge.services.models.engines import expected


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Tell Claude, ask Codex, its diff, the build terminal, AI mode, in Build.", {"claude", "codex", "build"}),
        ("Gemini, in night watch, in logs.", {"gemini", "night", "watch", "logs"}),
        ("The weather is fine. We met Ann in March", {"ann", "march"}),
        ("in, in a, in 7.", set()),
        ("Tell Jürgen, in 水曜日.", {"jürgen", "水曜日"}),
        ("", set()),
    ],
)
def test_names_are_told_from_words(prompt: str, names: set[str]) -> None:
    assert expected.names(prompt) == names


@pytest.mark.parametrize(("text", "there"), [("Ask Claude's opinion", True), ("in BUILD.", True), ("rebuild it", False), ("", False)])
def test_a_name_is_found_as_a_word_of_its_own(text: str, there: bool) -> None:
    assert expected.has_one(text, frozenset({"claude", "build"})) is there
