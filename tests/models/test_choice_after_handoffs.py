"""Requests with notes of handoffs: what the user said counts, and not what the model is told beside it."""

from __future__ import annotations

import pytest

from tests.models.test_choice_after_calls import router
from voxbridge.services.models.api.routers import decide
from voxbridge.services.models.core.chatml import Call, Message
from voxbridge.shared.agents.notes import note

HANDED = note("advisor has handed this conversation over to you, closer. Reason: decided. Summary: Emma will repair her old bicycle.")
SUM_UP = note("Sum up in one sentence what was decided, and ask if that is right.")
GO_ON = note("It is your turn now. Go on with what the user wants.")


def user(*texts: str) -> Message:
    return Message("user", " ".join(texts))


@pytest.mark.parametrize("notes", [(HANDED,), (HANDED, SUM_UP), (HANDED, GO_ON), (SUM_UP,)])
def test_notes_say_nothing_of_what_the_user_wants(notes: tuple[str, ...]) -> None:
    for said, mode in (("Good, then I will repair it. That is all. Thank you.", "words"), ("set a timer for ten minutes", "call")):
        assert decide(router(), [user(said, *notes)]) == decide(router(), [user(said)])
        assert decide(router(), [user(said, *notes)]).mode == mode
        apart = [user(said), Message("assistant", call=Call("c1", "handoff_conversation", "{}")), Message("tool", "{}"), user(*notes)]
        assert decide(router(), apart) == decide(router(), [user(said)])


def test_what_was_answered_is_not_called_again_for_a_handoff() -> None:
    answered = [user("set a timer for ten minutes"), Message("assistant", "It is set."), user(HANDED, GO_ON)]
    decision = decide(router(), answered)
    assert (decision.mode, decision.shortlist[0]) == ("unsure", "set_timer")


def test_without_a_word_of_the_user_the_agent_speaks() -> None:
    assert decide(router(), [user(HANDED, SUM_UP)]).mode == "words"
