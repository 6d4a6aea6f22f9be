"""The rules that settle a step, in the order in which they are asked. Pure.

An input is handled by the module of its kind (`step`), which knows nothing of the others. What follows from the new state for all of them
is decided here: each rule looks at the whole state, and does nothing unless something is due. The order is part of the behaviour. `why` of
a rule says what would go wrong if it stood elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from voxbridge.services.voice.core import allowance, announcing, child, ending, handoff
from voxbridge.services.voice.core.realtime import connection, faults, noises
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import filler, ledger, written


class Rule(NamedTuple):
    """One rule: its name, what it does, and why it stands where it stands."""

    name: str
    apply: Callable[[Transition], None]
    why: str


def _end_after_the_last_words(t: Transition) -> None:
    """End a session that has lost its last model, when what it had said is heard."""
    if t.pending.ending is not None and t.state.phase == "open" and t.reply is None and t.speech.cut is None:
        ending.end(t, "provider_lost", t.pending.ending)


ORDER: Final = (
    Rule("last words", _end_after_the_last_words, "An ended session has nothing to hand over, to go on with or to say."),
    Rule(
        "handoff",
        handoff.settle,
        "Before `announce` and `turns`: a reply that is made goes over to the target, else its turn would be completed without it.",
    ),
    Rule("fault", faults.settle, "Before `announce`: the model goes on with what was cut off before anything new is said."),
    Rule(
        "leave",
        connection.leave_if_due,
        "After `fault`: what is still owed keeps the connection. Before `announce`, which would begin on a connection that is left.",
    ),
    Rule("filler", filler.watch, "Before `announce`: filler words give way to an answer first, and do not count as somebody who speaks."),
    Rule("announce", announcing.announce, "After all that may still speak in this step, before all that looks at what is said."),
    Rule("noise", noises.watch, "After `announce`: an interruption that something is said to is settled."),
    Rule("written", written.tell, "After `announce`: it tells the text of the reply that this step ends with."),
    Rule(
        "turns",
        ledger.settle,
        "After all that takes a turn over or lets go of it: a turn that nobody owns now is completed as interrupted.",
    ),
    Rule("child", child.settle, "After `turns`: a child that has answered has no open turn."),
    Rule("allowance", allowance.settle, "After `announce`, as the last that may end a session: what is being said is heard."),
    Rule("answer", connection.watch, "Last: the timer is for what the model owes after all of them."),
)


def settle(t: Transition) -> None:
    """Ask every rule once."""
    for rule in ORDER:
        rule.apply(t)
