"""What of a conversation the language model is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.voice.outputs import Message, ToolUse
from services.voice.prompt import PERSONA, WINDOW_CHARACTERS, instructions, window


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Turns as `turns` remembers them: a notice may come first, calls stand beside their results."""
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
    return sum(len(one.text) + sum(len(str(use.arguments)) for use in one.uses) for one in messages)


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
        # Messages of the user that nobody answered are one turn, joined by a space each.
        assert size(recent) <= max(WINDOW_CHARACTERS, size(newest)) + len(users)


@given(histories())
def test_nothing_is_left_out_of_a_conversation_that_fits(history: list[Message]) -> None:
    first = next((index for index, one in enumerate(history) if one.role == "user"), len(history))
    if size(history) <= WINDOW_CHARACTERS:
        assert sum(len(one.text.replace(" ", "")) for one in window("", history)[1:]) == sum(
            len(one.text.replace(" ", "")) for one in history[first:]
        )


def test_at_the_bound_a_turn_is_in_and_one_character_more_is_out() -> None:
    def turns(characters: int) -> list[Message]:
        return [
            Message(role="user", text="u" * (characters - 10)),
            Message(role="assistant", text="a" * 5),
            Message(role="user", text="v" * 5),
        ]

    assert len(window("", turns(WINDOW_CHARACTERS))) == 4
    assert [one.text for one in window("", turns(WINDOW_CHARACTERS + 1))] == ["", "vvvvv"]


def test_the_instructions_begin_with_the_persona_so_that_they_stay_warm() -> None:
    assert instructions("") == instructions("  \n") == PERSONA
    assert instructions(" You sell tea. ") == f"{PERSONA}\n\nYou sell tea."
