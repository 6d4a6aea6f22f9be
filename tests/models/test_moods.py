"""Wishes and what only has their words: denied, past, told, supposed. None of those forces a call."""

from __future__ import annotations

import pytest

from bench.choice import moods as bench_moods
from bench.choice import sets
from voxbridge.services.models.api import routers
from voxbridge.services.models.choice.moods import is_question, mood
from voxbridge.services.models.choice.router import Router
from voxbridge.services.models.core import chatml

READS = {function.name for function in sets.functions() if function.effect == "read"}


@pytest.fixture(scope="module")
def router() -> Router:
    """Return a router of the installation's functions."""
    tools = [chatml.Tool(one.name, one.description, one.parameters, one.utterances) for one in sets.functions()]
    return Router([routers.known(tool) for tool in tools], routers.read_meanings())


def decided(router: Router, said: str) -> str:
    """Return the mode of a request that begins a conversation."""
    return routers.decide(router, [chatml.Message("user", said)], READS).mode


def test_none_of_two_hundred_sentences_forces_a_call_that_it_does_not_want(router: Router) -> None:
    found = bench_moods.sentences()
    assert len(found) >= 200
    forced = [one for one in found if decided(router, one.said) == "call"]
    assert forced == []


def test_what_is_told_or_asked_about_can_only_be_a_call_of_what_reads(router: Router) -> None:
    for one in bench_moods.sentences():
        if one.kind != "denied":
            decision = routers.decide(router, [chatml.Message("user", one.said)], READS)
            assert decision.mode == "words" or set(decision.shortlist) <= READS, one


def test_what_is_denied_wants_words(router: Router) -> None:
    denied = [one.said for one in bench_moods.sentences() if one.kind == "denied"]
    assert [said for said in denied if decided(router, said) != "words"] == []


@pytest.mark.parametrize(
    "said",
    [
        "stell keinen Timer", "stell bitte keinen Timer auf fünf Minuten", "kein Timer bitte", "macro löschen bitte nicht",
        "bitte timer nicht canceln", "lösche das Makro gute Nacht nicht", "no pongas un temporizador", "no borres la macro buenas noches",
        "ne mets pas de minuteur", "ne supprime jamais la macro", "non impostare un timer", "non cancellare la macro buonanotte",
        "não apague a macro boa noite", "nie ustawiaj timera", "zet geen timer", "ställ ingen timer", "ikke sett en timer",
        "не ставь таймер", "タイマーを設定しないで", "不要设置定时器", "타이머 설정하지 마", "टाइमर मत लगाओ",
    ],
)  # fmt: skip
def test_what_is_denied_in_another_language_is_denied(said: str) -> None:
    assert mood(said) == "denied"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("vergiss nicht den Timer auf fünf Minuten zu stellen", "wish"),
        ("n'oublie pas de mettre un minuteur", "wish"),
        ("stell einen Timer auf fünf Minuten", "wish"),
        ("set a timer called Knie", "wish"),
        ("no cookies please", "wish"),
        ("convert 5 to non negative", "wish"),
        ("run pip install in the terminal", "wish"),
        ("I wonder if you could set a timer", "wish"),
        ("what would be nine times nine", "wish"),
        ("what would you recommend", "wish"),
        ("I wonder if Codex could write the tests", "told"),
        ("what would Claude do about the login bug", "told"),
    ],
)
def test_other_words_of_other_languages_deny_nothing(said: str, expected: str) -> None:
    assert mood(said) == expected


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("is Claude better than Codex", True),
        ("what could I ask Claude next?", True),
        ("what does control c do", True),
        ("should I run the tests in Build", True),
        ("could Codex do that", True),
        ("could you tell Codex to stop", False),
        ("have Claude add a test", False),
        ("do the morning check", False),
        ("what about telling Claude", False),
        ("tell Claude to stop, would you", False),
        ("Server is slow, restart it", False),
    ],
)
def test_a_question_only_asks(said: str, question: bool) -> None:
    assert is_question(said) == question


@pytest.mark.parametrize("index", range(len(bench_moods.WISHES)))
def test_the_wishes_themselves_are_wishes(index: int) -> None:
    wish = bench_moods.WISHES[index][0]
    for said in (wish, f"please {wish}", f"no, {wish}", f"I said {wish}", f"could you {wish}", f"{wish}, but do not tell anyone"):
        assert mood(said) == "wish", said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("what does the word password mean", "told"),
        ("what does this cron expression mean", "wish"),
        ("don't forget to remind me of the milk", "wish"),
        ("don't set a timer, set an alarm", "told"),
        ("I don't need the cleanup macro any more", "wish"),
        ("have the researcher look into it", "wish"),
        ("did you delete the macro", "told"),
        ("was the macro deleted", "asked"),
        ("what did I say about Anna", "asked"),
        ("why don't you set a timer", "told"),
        ("", "wish"),
        ("please", "wish"),
        ("no " * 400 + "don't", "denied"),
    ],
)
def test_moods(said: str, expected: str) -> None:
    assert mood(said) == expected


def test_a_sentence_of_any_length_is_read_in_time_that_grows_with_it() -> None:
    assert mood("the the " * 20_000) == "wish"


def test_nothing_that_people_say_to_want_a_function_is_held_back() -> None:
    lost = {
        said: mood(said)
        for function in sets.functions()
        for said in function.utterances
        if mood(said) != "wish" and not (mood(said) == "asked" and function.effect == "read")
    }
    assert lost == {}
