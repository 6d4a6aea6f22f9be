"""Passages and entities."""

from __future__ import annotations

import gc
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.knowledge.core.entities import Entity, certain_names, found_in
from voxbridge.services.knowledge.core.passages import LIMIT, passages

TEXT = """Before.

# Batteries
In 2016 Northvolt was founded by Peter Carlsson. Northvolt stopped on 22 November 2024.

## Code
Call `pay_out()` or load_config in ConfigReader; write to sales@example.com or see https://example.com/x.
"""


def test_a_passage_has_its_headings_and_its_line() -> None:
    found = passages("notes.md", TEXT)
    assert [(one.headings, one.line) for one in found] == [(("notes",), 1), (("Batteries",), 3), (("Batteries", "Code"), 6)]
    assert found[0].text == "Before."


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="#`~"), max_size=4_000)
    | st.lists(st.sampled_from(["word ", "A sentence. ", "\n\n", "x" * 950]), max_size=40).map("".join)
)
def test_no_word_is_lost_and_no_passage_is_longer_than_the_limit(text: str) -> None:
    found = passages("t", text)
    assert all(0 < len(one.text) <= LIMIT for one in found)
    kept = "".join(" ".join((*one.headings, one.text)) for one in found)
    assert {letter for letter in text if letter.isalnum()} <= set(kept)


def test_entities_are_found_by_rules() -> None:
    _, batteries, code = (found_in(one.text, one.headings, certain_names(TEXT)) for one in passages("notes.md", TEXT))
    assert set(batteries.entities) == {
        Entity("heading", "Batteries"), Entity("name", "Northvolt"), Entity("name", "Peter Carlsson"), Entity("date", "22 November 2024"),
    }  # fmt: skip
    assert {(entity.kind, entity.name) for entity in code.entities} >= {
        ("code", "pay_out()"), ("code", "load_config"), ("code", "ConfigReader"), ("address", "sales@example.com"),
        ("link", "https://example.com/x"),
    }  # fmt: skip


def test_headings_alone_are_a_document() -> None:
    found = passages("plan.md", "# Plan\n## Ship the pumps\n## Hire an engineer\n### Later\n")
    assert [(one.headings, one.text) for one in found] == [
        (("Plan", "Ship the pumps"), "Ship the pumps"),
        (("Plan", "Hire an engineer", "Later"), "Later"),
    ]


COMMON = {"price", "prices", "rise", "study", "pump"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Lisbon is old. Prices rise.", {"Lisbon"}),
        ("Northvolt stopped. The northvolt works stand.", set()),
        ("Studies say so. Pumps' work. Priced well. It is.", set()),
        ("Köln is old.", {"Köln"}),
        ("Ox is short.", set()),
    ],
)
def test_a_name_that_only_begins_sentences_is_one_if_it_is_no_common_word(text: str, names: set[str]) -> None:
    assert {entity.name for entity in found_in(text, (), certain_names(text, COMMON)).entities} == names


def test_entities_of_one_sentence_stand_together_once_for_each_sentence() -> None:
    text = "We saw Ada Byron and Bob Stone. Later Ada Byron and Bob Stone left. We met Cy Young."
    found = found_in(text, (), certain_names(text))
    ada, bob = Entity("name", "Ada Byron"), Entity("name", "Bob Stone")
    assert found.together == ((ada, bob), (ada, bob))


def test_the_first_word_of_a_sentence_is_a_name_only_where_it_is_one_elsewhere() -> None:
    text = "Lisbon is old. Prices rise in Lisbon. Prices fell."
    assert {entity.name for entity in found_in(text, (), certain_names(text)).entities} == {"Lisbon"}


@pytest.mark.parametrize("piece", ["# " + " " * 998 + "x", "A ", "a.b", "`", '."', "A_", "aA", "x@", "a()", "https://", "A-", "January "])
def test_a_text_that_is_made_to_be_slow_is_not(piece: str) -> None:
    def took(size: int) -> float:
        text = piece * (size // len(piece))
        gc.disable()  # a collection of all that other tests have left takes longer than the text
        try:
            began = time.process_time()
            names = certain_names(text)
            for one in passages("t", text):
                found_in(one.text, one.headings, names)
            return time.process_time() - began
        finally:
            gc.enable()

    took(1_000)
    # Eight times the text takes about eight times as long; where it grew with the square, it would be sixty-four.
    assert took(80_000) < 24 * took(10_000) + 0.1
