"""Segmentation of a reply into pieces for synthesis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.cascade.segmenter import FIRST_CLAUSE, LONGEST, cut

WORDS = st.lists(st.text(alphabet="abcdefgXYZ,.!?;:'-0123456789é…\n", min_size=1, max_size=14), min_size=0, max_size=60).map(" ".join)


GROWING = st.sampled_from(
    [
        ("en", "It starts on Jan. 5, 2025 at noon. The U.S. Army came. Prof. Smith left at 5 p.m. and said “no.” Then it was over. "),
        ("de", "Das ist Nr. 5. Er kam ca. 5 Uhr, z. B. am 3. Mai. Dann ging er! "),
        ("hi", "नमस्ते। डॉ. शर्मा कैसे हैं? मैं ठीक हूँ। "),
        ("ar", "مرحبا؟ كيف حالك؟ بخير. "),
        ("ja", "こんにちは。「はい。」と言った。元気ですか？"),
    ]
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(WORDS, st.booleans())
def test_no_text_is_lost_or_moved(text: str, first: bool) -> None:
    pieces, rest = cut(text, first=first)
    assert squeezed("".join(pieces) + rest) == squeezed(text)
    assert all(piece == piece.strip() and piece for piece in pieces)


@given(WORDS, st.lists(st.integers(1, 12), min_size=1, max_size=80))
def test_text_that_comes_in_bits_loses_nothing_and_no_piece_is_over_long(text: str, sizes: list[int]) -> None:
    spoken: list[str] = []
    waiting, at = "", 0
    for size in sizes:
        waiting += text[at : at + size]
        at += size
        pieces, waiting = cut(waiting, first=not spoken)
        spoken += pieces
    assert squeezed("".join(spoken) + waiting) == squeezed(text[:at])
    assert all(len(piece) <= LONGEST + 12 for piece in spoken)
    assert len(waiting) <= LONGEST


@given(st.text(min_size=LONGEST + 1, max_size=4 * LONGEST))
def test_text_without_an_end_is_cut_at_the_limit(text: str) -> None:
    pieces, rest = cut(text, first=False)
    assert squeezed("".join(pieces) + rest) == squeezed(text)
    assert len(rest) <= LONGEST


@pytest.mark.parametrize(
    ("text", "pieces", "rest"),
    [
        ("It is noon. Enjoy", ["It is noon."], "Enjoy"),
        ("It is noon.", [], "It is noon."),
        ("Really?! Yes", ["Really?!"], "Yes"),
        ('He said "no." Then we', ['He said "no."'], "Then we"),
        ("It costs 3.5 euros. Or", ["It costs 3.5 euros."], "Or"),
        ("Pi is 3.", [], "Pi is 3."),
        ("It is noon. ", ["It is noon."], ""),
        ("It starts on Jan. ", [], "It starts on Jan. "),
        ("It starts on Jan. 5, 2025 at noon. Then", ["It starts on Jan. 5, 2025 at noon."], "Then"),
        ("The U.S. Army came. It", ["The U.S. Army came."], "It"),
        ("Prof. Smith is here. Yes", ["Prof. Smith is here."], "Yes"),
        ("I have 5. Then I have 6. Done so", ["I have 5.", "Then I have 6."], "Done so"),
        ("Ask Dr. Who about e.g. tea. He", ["Ask Dr. Who about e.g. tea."], "He"),
        ("At 9 a.m. we begin. So", ["At 9 a.m. we begin."], "So"),
        ("1. Boil water. 2. Wait. 3.", ["1. Boil water.", "2. Wait."], "3."),
        ("One\nTwo\nThree", ["One", "Two"], "Three"),
        ("你好。再见。", ["你好。"], "再见。"),
        ("Wait… what", [], "Wait… what"),
        ("", [], ""),
        ("   ", [], "   "),
    ],
)
def test_sentences_end_where_a_reader_would_say(text: str, pieces: list[str], rest: str) -> None:
    assert cut(text, first=False) == (pieces, rest)


@pytest.mark.parametrize(
    ("language", "text", "pieces", "rest"),
    [
        ("de", "Das ist Nr. 5. Gut so", ["Das ist Nr. 5."], "Gut so"),
        ("de-CH", "Er kam ca. 5 Uhr. Dann", ["Er kam ca. 5 Uhr."], "Dann"),
        ("de", "Das ist z. B. gut. Ja doch", ["Das ist z. B. gut."], "Ja doch"),
        ("fr", "M. Dupont est là. Oui", ["M. Dupont est là."], "Oui"),
        ("es", "El Sr. García vino. Sí", ["El Sr. García vino."], "Sí"),
        ("hi", "नमस्ते। आप कैसे हैं। मैं", ["नमस्ते।", "आप कैसे हैं।"], "मैं"),
        ("hi", "डॉ. शर्मा आए। ठीक", ["डॉ. शर्मा आए।"], "ठीक"),
        ("ar", "مرحبا؟ كيف حالك؟ بخير", ["مرحبا؟", "كيف حالك؟"], "بخير"),
        ("ja", "「はい。」と言った。次", ["「はい。」", "と言った。"], "次"),
        ("xx", "Hello. You", ["Hello."], "You"),
    ],
)
def test_sentences_end_by_the_rules_of_their_language(language: str, text: str, pieces: list[str], rest: str) -> None:
    assert cut(text, first=False, language=language) == (pieces, rest)


@given(GROWING, st.lists(st.integers(1, 9), min_size=1, max_size=200))
def test_however_a_text_comes_it_is_cut_alike(given: tuple[str, str], sizes: list[int]) -> None:
    language, text = given
    whole, _ = cut(text, first=False, language=language)
    found: list[str] = []
    waiting, at = "", 0
    for size in [*sizes, len(text)]:
        waiting += text[at : at + size]
        at += size
        pieces, waiting = cut(waiting, first=False, language=language)
        found += pieces
    assert found == whole


@pytest.mark.parametrize("space", ["\u0085", "\u00a0", "\u2003", "\u2028", "\u202f", "\u3000"])
@pytest.mark.parametrize("language", ["en", "fr", "ja", "xx"])
def test_a_wide_space_before_a_full_stop_is_a_space(space: str, language: str) -> None:
    assert cut(f"Twelve{space}. Then", first=False, language=language) == ([f"Twelve{space}."], "Then")


@pytest.mark.parametrize("at", range(70, 95))
def test_a_sentence_is_not_over_where_a_small_letter_can_take_it_on(at: int) -> None:
    text = "It starts on Jan. 5, 2025 at noon. The U.S. Army came. Prof. Smith left at 5 p.m. and said “no.” Then it was over. "
    first, rest = cut(text[:at], first=False)
    assert first + cut(rest + text[at:], first=False)[0] == cut(text, first=False)[0]


def test_a_journal_of_before_is_cut_as_it_was() -> None:
    assert cut("The U.S. Army came. It", first=False, rules=inputs.SENTENCES - 1) == (["The U.S.", "Army came."], "It")
    assert cut("He left at 5 p.m. ", first=False, rules=inputs.GOES_ON - 1) == (["He left at 5 p.m."], "")
    assert cut("He left at 5 p.m. ", first=False) == ([], "He left at 5 p.m. ")
    assert cut("Wait… what", first=False, rules=inputs.SENTENCES - 1) == (["Wait…"], "what")


def test_the_first_piece_may_end_at_a_clause_and_only_the_first() -> None:
    text = "Well, that is a fine question, and I know the answer, perhaps"
    assert cut(text, first=True) == (["Well, that is a fine question,"], "and I know the answer, perhaps")
    assert cut(text, first=False) == ([], text)
    assert len("Well, that is a fine question,") >= FIRST_CLAUSE


def test_a_clause_before_the_limit_is_too_short_to_be_spoken_alone() -> None:
    edge = "a" * (FIRST_CLAUSE - 1) + ","
    assert cut(f"{edge} b", first=True) == ([edge], "b")
    assert cut(f"{edge[1:]} b", first=True) == ([], f"{edge[1:]} b")


def test_a_number_with_a_comma_is_no_clause() -> None:
    assert cut("It has a population of 1,250,000", first=True) == ([], "It has a population of 1,250,000")
