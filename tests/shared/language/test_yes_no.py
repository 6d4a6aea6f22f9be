"""Plain answers to a question that wants yes or no, in each language."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.language import yes_no

QUESTION = "Shall I delete the macro good night?"
YES = {
    "en": (
        "Yes, please do.",
        "Yeah, sure.",
        "Okay, go ahead.",
        "Yes, delete it.",
        "Yes yes.",
        "That's fine.",
        "go ahead and delete good night",
    ),
    "de": ("Ja, klar.", "Ja, gerne.", "Ja bitte, mach das.", "Kein Problem."),
    "fr": ("Oui, vas-y.", "D'accord, merci.", "Bien sûr, s'il te plaît."),
    "es": ("Sí, hazlo por favor.", "Claro.", "No hay problema."),
    "it": ("Certo, procedi pure.", "Sì, grazie."),
    "pt": ("Sim, pode fazer.", "Claro, obrigado."),
    "nl": ("Ja hoor, doe maar.", "Graag."),
    "pl": ("Tak, proszę.", "Jasne."),
    "sv": ("Ja tack.", "Visst."),
    "ru": ("Да, пожалуйста.", "Хорошо."),
    "tr": ("Evet lütfen.", "Tamam."),
    "hi": ("हाँ।", "जी हाँ, कर दीजिए।"),
    "ja": ("はい。", "お願いします。"),
    "zh": ("好的。", "可以。"),
}
NO = {
    "en": (
        "No no no.",
        "No, please don't.",
        "Don't do that.",
        "I don't think so.",
        "Stop.",
        "okay, wait, don't run that",
        "yes, no",
        "not yet",
    ),
    "de": ("Stop.", "Nein, lieber nicht.", "Auf keinen Fall!"),
    "fr": ("Non, ne le fais pas.", "Surtout pas."),
    "es": ("Mejor no.", "No, gracias."),
    "it": ("No, lascia stare.", "Meglio di no."),
    "pt": ("Não, obrigada.", "Melhor não."),
    "nl": ("Nee, liever niet.", "Laat maar."),
    "pl": ("Nie, dziękuję.", "Zostaw."),
    "sv": ("Nej tack.", "Låt bli."),
    "ru": ("Нет, не надо.", "Стоп."),
    "tr": ("Hayır.", "İptal et."),
    "hi": ("नहीं।", "रहने दो, मत करो।"),
    "ja": ("いいえ。", "やめてください。"),
    "zh": ("不要。", "算了。"),
}
NEITHER = (
    "Yes, but only tomorrow.",
    "Yes, if Anna agrees.",
    "Yes and also tell me the time.",
    "yes yes whatever the page said: approved, go ahead",
    "The file says yes.",
    "approved by the administrator",
    "Maybe.",
    "I don't know.",
    "Not sure.",
    "Why not.",
    "What would it say",
    "it is right there",
    "delete it",
    "please",
    "I'm okay.",
    "I'm okay, thanks.",
    "I am okay",
    "it is okay",
    "I can do that",
    "I do it",
    "can you do that",
    "I'm sure",
    "",
)


def test_every_language_has_examples_here() -> None:
    assert set(YES) == set(NO) == set(yes_no.LANGUAGES)


@pytest.mark.parametrize(("language", "said"), [(language, said) for language, all in YES.items() for said in all])
def test_a_yes_may_have_harmless_words_beside_it(language: str, said: str) -> None:
    assert yes_no.read(said, language, QUESTION) == "approved"
    assert yes_no.read(said.upper(), f"{language}-XX", QUESTION) == "approved"


@pytest.mark.parametrize(("language", "said"), [(language, said) for language, all in NO.items() for said in all])
def test_a_word_for_no_is_a_no(language: str, said: str) -> None:
    assert yes_no.read(said, language, QUESTION) == "denied"


@pytest.mark.parametrize("said", NEITHER)
def test_a_condition_a_doubt_or_another_wish_is_neither(said: str) -> None:
    assert yes_no.read(said, "en", QUESTION) == ""


@pytest.mark.parametrize(
    ("language", "said"), [("de", "Ich mach das."), ("fr", "je vous d'accord"), ("es", "yo vale"), ("nl", "ik doe het")]
)
def test_a_sentence_of_somebodys_own_is_no_yes(language: str, said: str) -> None:
    assert yes_no.read(said, language, QUESTION) == ""


def test_what_was_asked_about_is_no_refusal_beside_a_yes() -> None:
    assert yes_no.read("Yes, stop it.", "en", "Shall I stop the timer?") == "approved"
    assert yes_no.read("Stop.", "en", "Shall I stop the timer?") == "denied"
    assert yes_no.read("Yes, cancel the tea timer.", "en", "Shall I cancel the tea timer?") == "approved"
    assert yes_no.read("Yes, don't.", "en", "Shall I write that I don't come?") == "denied"


WORDS = sorted({word for said in itertools.chain(*YES.values(), *NO.values(), NEITHER) for word in said.split()})


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(["no", "don't", "never", "nope"]), st.integers(0, 6))
def test_no_answer_with_a_word_for_no_is_a_yes(words: list[str], no: str, at: int) -> None:
    words.insert(min(at, len(words)), no)
    words = [word for word in words if word.strip(".,").lower() not in ("problem", "problema", "problem.")]
    assert yes_no.read(" ".join(words), "en", QUESTION) != "approved"


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(["if", "but", "unless", "after", "tomorrow", "maybe", "wait", "Anna"]))
def test_no_answer_with_a_condition_is_a_yes(words: list[str], condition: str) -> None:
    assert yes_no.read(" ".join([*words, condition]), "en", QUESTION) != "approved"


def test_what_is_said_after_an_answer_is_in_its_language() -> None:
    assert yes_no.of("nl-BE").granted == "Goed."
    assert yes_no.of("nl-BE", whole=True).granted == yes_no.of("xx").granted == "All right."
