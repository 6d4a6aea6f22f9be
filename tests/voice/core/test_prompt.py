"""The part of a conversation that the language model is sent."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.voice.core.prompt import token_estimate
from voxbridge.services.voice.core.prompt.prompt import (
    EARLIER_CHARACTERS,
    PERSONA,
    SUMMARY_SHARE,
    WINDOW_CHARACTERS,
    begins,
    forget,
    instructions,
    is_cut,
    room,
    shortened,
    window,
    with_summary,
)
from voxbridge.services.voice.core.state import NOTHING
from voxbridge.shared.agents.model import Agent, ModelName
from voxbridge.shared.language.conversation import Message, ToolUse


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Draw turns as `turns` keeps them: a notice may come first, calls stand beside their results."""
    history: list[Message] = []
    if draw(st.booleans()):
        history.append(Message(role="assistant", text="Hi, I'm listening."))
    for turn in range(draw(st.integers(0, 12))):
        history.append(Message(role="user", text="u" * draw(st.integers(1, 1_500))))
        for round in range(draw(st.integers(0, 2))):
            uses = tuple(
                ToolUse(call_id=f"{turn}.{round}.{n}", name="f", arguments={"a": "x" * draw(st.integers(0, 300))})
                for n in range(draw(st.integers(1, 3)))
            )
            history.append(Message(role="assistant", text="", uses=uses))
            history += [Message(role="tool", call_id=use.call_id, text="r" * draw(st.integers(0, 900))) for use in uses]
        if draw(st.booleans()):
            history.append(Message(role="assistant", text="a" * draw(st.integers(1, 1_000))))
    return history


def size(messages: list[Message]) -> int:
    return sum(token_estimate.size(one.text) + sum(token_estimate.size(str(use.arguments)) for use in one.uses) for one in messages)


@given(histories())
def test_a_window_is_whole_turns_that_end_with_the_newest(history: list[Message]) -> None:
    system, *recent = window("Be kind.", history)
    assert system == Message(role="system", text="Be kind.")
    if recent:
        assert recent[0].role == "user"
        assert recent[-1].role == history[-1].role
        assert recent[-1].text.endswith(history[-1].text)
    else:
        assert all(one.role != "user" for one in history)
    called = [use.call_id for one in recent for use in one.uses]
    assert called == [one.call_id for one in recent if one.role == "tool"], "each use has its result, each result its use"
    assert all(pair != ("user", "user") for pair in zip([one.role for one in recent], [one.role for one in recent[1:]], strict=False))


@given(histories())
def test_a_window_is_bounded_unless_one_turn_alone_is_larger(history: list[Message]) -> None:
    recent = list(window("", history)[1:])
    users = [index for index, one in enumerate(history) if one.role == "user"]
    if users:
        newest = history[users[-1] :]
        # Consecutive unanswered messages of the user are one turn, joined by one space each.
        assert size(recent) <= max(WINDOW_CHARACTERS, size(newest) + WINDOW_CHARACTERS // SUMMARY_SHARE) + len(users)


@given(histories())
def test_nothing_is_left_out_of_a_conversation_that_fits(history: list[Message]) -> None:
    first = next((index for index, one in enumerate(history) if one.role == "user"), len(history))
    if size(history) <= WINDOW_CHARACTERS:
        assert sum(len(one.text.replace(" ", "")) for one in window("", history)[1:]) == sum(
            len(one.text.replace(" ", "")) for one in history[first:]
        )


def test_a_turn_larger_than_the_window_has_its_results_shortened_first() -> None:
    uses = tuple(ToolUse(call_id=str(number), name="f", arguments={}) for number in range(2))
    history = [
        Message(role="user", text="What do both of them say? " + "u" * 200),
        Message(role="assistant", uses=uses),
        *(Message(role="tool", call_id=use.call_id, text="7" * 4_000) for use in uses),
    ]
    _, asked, called, *results = window("", history)
    assert (asked, called) == (history[0], history[1])
    assert size([asked, called, *results]) <= 1.5 * WINDOW_CHARACTERS
    assert all(result.text.endswith("… (shortened)") and result.text.startswith("777") for result in results)


def test_a_text_larger_than_the_window_keeps_its_beginning_and_its_end() -> None:
    text = "Here is my story. " + "कहानी " * 1_365 + "What do you think of it?"
    _, one = window("", [Message(role="user", text=text)])
    assert size([one]) <= 1.5 * WINDOW_CHARACTERS
    assert one.text.startswith("Here is my story. ")
    assert one.text.endswith("What do you think of it?")


@given(st.text(max_size=3_000), st.integers(0, 3_000))
def test_a_text_is_cut_to_a_size_and_not_further(text: str, limit: int) -> None:
    for cut, more in ((token_estimate.first(text, limit), len(text)), (token_estimate.last(text, limit), len(text))):
        assert token_estimate.size(cut) <= limit
        assert more == len(cut) or token_estimate.size(text[: len(cut) + 1]) > limit or token_estimate.size(text[-len(cut) - 1 :]) > limit


@given(st.lists(st.integers(0, 500), max_size=20), st.integers(0, 5_000))
def test_a_level_is_as_high_as_all_together_have_room(taken: list[int], limit: int) -> None:
    most = token_estimate.level(taken, limit)
    assert sum(min(one, most) for one in taken) <= limit
    assert most == max(taken, default=0) or sum(min(one, most + 1) for one in taken) > limit


def test_at_the_bound_a_turn_is_in_and_one_character_more_is_out() -> None:
    def turns(characters: int) -> list[Message]:
        return [
            Message(role="user", text="u" * (characters - 10)),
            Message(role="assistant", text="a" * 5),
            Message(role="user", text="v" * 5),
        ]

    assert len(window("", turns(WINDOW_CHARACTERS))) == 4
    assert not is_cut(turns(WINDOW_CHARACTERS))
    _, one = window("", turns(WINDOW_CHARACTERS + 1))
    assert is_cut(turns(WINDOW_CHARACTERS + 1))
    assert one.text.startswith("(Note: This was said before, shortened:\nUser: uuu")
    assert "\nYou: aaaaa\n" in one.text
    assert one.text.endswith(")\n\nvvvvv")


def test_a_vendors_model_is_given_more_than_one_of_ones_own() -> None:
    def by(provider: str, *, realtime: bool = False) -> int:
        model = ModelName(provider)
        return room(Agent(name="a", realtime=model) if realtime else Agent(name="a", llm=model))

    assert [by("anthropic"), by("gemini"), by("openai"), by("gemini", realtime=True)] == [100_000] * 4
    assert by("openai", realtime=True) == 64_000
    assert [by(""), by("local"), by("my-vllm")] == [WINDOW_CHARACTERS] * 3


def turn(number: int, *, result: int = 0) -> list[Message]:
    """Return the messages of a turn: a question, a call with a result of this length, and the answer."""
    use = ToolUse(call_id=f"fc_{number}", name="look_up", arguments={"q": number})
    called = [Message(role="assistant", uses=(use,)), Message(role="tool", call_id=use.call_id, text="r" * result)] if result else []
    return [
        Message(role="user", text=f"Question {number}. My name is Ann." if number == 0 else f"Question {number}. " + "q" * 100),
        *called,
        Message(role="assistant", text=f"Answer {number}. " + "a" * 200),
    ]


@pytest.mark.parametrize("limit", [WINDOW_CHARACTERS, 100_000])
def test_a_window_moves_in_steps_and_else_only_grows(limit: int) -> None:
    history: list[Message] = []
    earlier = NOTHING
    sent: list[tuple[Message, ...]] = []
    for number in range(250):
        history += turn(number, result=3_000 if limit > WINDOW_CHARACTERS else 300)
        if number == 150:  # as `turns` drops the oldest messages
            earlier, history = forget(history[:80], earlier), history[80:]
        sent.append(window("Be kind.", history, limit=limit, earlier=earlier))
    moved = [number for number, (before, after) in enumerate(pairwise(sent)) if after[: len(before)] != before]
    gaps = [after - before for before, after in pairwise(moved[1:]) if 149 not in (before, after)]
    assert len(moved) > 3
    assert min(gaps) >= (7 if limit > WINDOW_CHARACTERS else 2), "the first one but, which only makes room"
    assert all(size(list(one)) <= limit for one in sent)


def test_of_what_a_window_has_no_room_for_the_beginning_stays_known() -> None:
    history = [message for number in range(80) for message in turn(number, result=4_000)]
    for limit in (WINDOW_CHARACTERS, 64_000, 100_000):
        _, first, *_ = window("", history, limit=limit)
        assert "My name is Ann." in first.text
        assert "rrr" not in first.text
        assert len(first.text) < limit / SUMMARY_SHARE + 200
    assert "My name is Ann." in with_summary("", history, limit=100_000)


def test_what_is_let_go_for_good_leaves_a_summary_that_stays_bounded() -> None:
    earlier = NOTHING
    for start in range(0, 2_000, 100):
        gone = [message for number in range(start, start + 100) for message in turn(number)]
        earlier = forget(gone, earlier)
        assert earlier.text.startswith("User: Question 0. My name is Ann.\nYou: Answer 0.")
        assert f"Answer {start + 99}." in earlier.text
        assert len(earlier.text) <= EARLIER_CHARACTERS
    (_, only) = window("", [Message(role="user", text="Who am I?")], earlier=earlier)
    assert "My name is Ann." in only.text
    assert only.text.endswith("Who am I?")
    assert is_cut([Message(role="user", text="Who am I?")], earlier=earlier)
    assert "My name is Ann." in with_summary("", [], earlier=earlier)


@given(st.lists(st.text(max_size=300), max_size=40), st.integers(40, 4_000))
def test_what_is_shortened_fits(lines: list[str], limit: int) -> None:
    found = shortened(lines, limit)
    assert len(found) <= limit
    if sum(token_estimate.size(line) + 1 for line in lines) <= limit and all(token_estimate.size(line) <= limit // 8 for line in lines):
        assert found == "\n".join(filter(None, lines))


def test_a_conversation_without_a_question_is_not_told() -> None:
    assert begins([Message(role="assistant", text="Hi.")]) == 1
    assert window("", [Message(role="assistant", text="Hi.")], earlier=NOTHING) == (Message(role="system", text=""),)


def test_the_instructions_begin_with_the_persona_so_that_they_stay_warm() -> None:
    assert instructions("") == instructions("  \n") == PERSONA
    assert instructions(" You sell tea. ") == f"{PERSONA}\n\nYou sell tea."
