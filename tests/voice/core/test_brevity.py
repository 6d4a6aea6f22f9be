"""Length of a spoken reply: how much a small model may say, and where one that talks in circles is stopped."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.cascade.brevity import SENTENCES_LIMIT, is_long, kept
from voxbridge.shared.events import voice as ev

ONE, TWO, THREE, FOUR = "It is noon.", "The sun shines.", "Birds sing here.", "Nobody works today."


def test_so_many_sentences_are_said() -> None:
    assert kept([], [ONE, TWO, THREE], most=SENTENCES_LIMIT) == ([ONE, TWO, THREE], False)
    assert kept([], [ONE, TWO, THREE, FOUR], most=SENTENCES_LIMIT) == ([ONE, TWO, THREE], True)
    assert kept([ONE, TWO, THREE], [FOUR], most=SENTENCES_LIMIT) == ([], True)
    assert kept([ONE, TWO, THREE], [FOUR], most=None) == ([FOUR], False)


def test_a_clause_is_no_sentence_of_its_own() -> None:
    assert kept(["Well, that is a question,"], ["and a good one.", ONE, TWO, FOUR], most=SENTENCES_LIMIT) == (
        ["and a good one.", ONE, TWO],
        True,
    )


@pytest.mark.parametrize(
    ("said", "pieces", "left"),
    [
        (["I can help you with that."], ["It is noon.", "I can help you with that!"], ["It is noon."]),
        (["You can use the calculator."], ["You can use the timer.", "You can use the notes.", "You can use the clock."], 2),
        ([], ["I am here and I am here and I am here and I am here and I am here."], ["I am here and"]),
        (["No."], ["No.", "No.", "No, no, no."], ["No.", "No.", "No, no, no."]),
        ([], ["It was very, very, very good."], ["It was very, very, very good."]),
    ],
)
def test_what_is_said_again_ends_the_reply(said: list[str], pieces: list[str], left: list[str] | int) -> None:
    found, over = kept(said, pieces, most=None)
    assert found == (pieces[:left] if isinstance(left, int) else left)
    assert over is (found != pieces)


@pytest.mark.parametrize(
    "said",
    [
        "Tell me a story about a horse.",
        "explain how rain is made",
        "what are the steps to make tea",
        "give me five reasons",
        "name ten famous painters names",
        "Erzähl mir eine Geschichte.",
        "Raconte-moi une histoire.",
        "write a poem",
        "in detail please",
    ],
)
def test_who_asks_for_something_long_gets_it(said: str) -> None:
    assert is_long(said)


@pytest.mark.parametrize("said", ["What time is it?", "Who are you?", "thank you", "what can you do", "is it cold", ""])
def test_a_plain_question_is_answered_in_a_few_sentences(said: str) -> None:
    assert not is_long(said)


LONG = ("I can tell the time. ", "I can set a timer. ", "I can keep notes. ", "Also much more. ", "Ask me again. ")


def replied(question: str, *written: str, own: bool = True, rules: int = inputs.RULES) -> tuple[Conversation, list[str]]:
    """Return a conversation in which this was asked and written, and what was to be said."""
    call = Conversation()
    call.state.settings = msgspec.structs.replace(call.state.settings, speak_results=own, rules=rules)
    call.speak(question)
    call.write(*written)
    assert call.state.speech.reply is not None
    return call, [piece.text for piece in call.state.speech.reply.pieces]


def test_the_installations_own_model_is_stopped_after_a_few_sentences() -> None:
    call, said = replied("What can you do?", *LONG)
    assert said == [one.strip() for one in LONG[:SENTENCES_LIMIT]]
    call.synthesize()
    call.play(9_000, "finished")
    call.synthesize()
    call.play(9_000, "finished")
    call.synthesize()
    call.play(9_000, "finished")
    spoken = call.events(ev.AgentSaid)[-1]
    assert (spoken.text, spoken.unheard) == (" ".join(said), ""), "what was not said is in no history"


def test_who_asks_for_more_or_another_model_is_not_stopped() -> None:
    assert len(replied("Explain what you can do.", *LONG)[1]) == len(LONG)
    assert len(replied("What can you do?", *LONG, own=False)[1]) == len(LONG)


def test_a_call_of_before_that_rule_is_answered_as_it_was() -> None:
    assert len(replied("What can you do?", *LONG, rules=inputs.BRIEF - 1)[1]) == len(LONG)


def test_a_model_that_talks_in_circles_is_stopped_whoever_runs_it() -> None:
    _, said = replied(
        "Explain it.", "This is how it works. ", "You press the button. ", "This is how it works. ", "Then it rains. ", own=False
    )
    assert said == ["This is how it works.", "You press the button."]
