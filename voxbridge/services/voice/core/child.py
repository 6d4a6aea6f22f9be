"""A session that a function of another session asked for: it has no client, limits of its own, and an end of its own. Pure.

It answers in text. Nobody is there who could approve anything or stop it, so its words start no macro and answer no question, and it is
offered only functions that answer while it waits. One that answers once ends with its turn; a thread of questions ends with its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import ending
from voxbridge.services.voice.core.state import Settings, State
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import Child
from voxbridge.shared.events.voice import Failure

TIMER: Final = "child"
TURN_S: Final = 300
"""Seconds that a model may take, and that one which is away or has others to serve first is asked again: nobody listens meanwhile."""

ASKING: Final = ("run_agent", "chat_with_expert")
"""Functions that ask for a child session: a child may have none."""


def of(state: State) -> Child | None:
    """Return what makes this session a child; None for a session of a client."""
    return state.request.child if state.request is not None else None


def offered(functions: Sequence[Function], child: Child | None) -> tuple[Function, ...]:
    """Return the functions that a session may offer: those of a child end while it waits, since it is over when it has answered."""
    if child is None:
        return tuple(functions)
    return tuple(function for function in functions if function.kind == "server" and function.name not in ASKING)


def settings(usual: Settings, child: Child | None) -> Settings:
    """Return the settings of a session: a child has more patience with its model."""
    if child is None:
        return usual
    patience = max(usual.model_patience_s, min(TURN_S, child.seconds))
    return replace(usual, turn_timeout_s=max(usual.turn_timeout_s, TURN_S), model_patience_s=patience)


def begin(t: Transition) -> None:
    """Set the timer of a child that was opened."""
    child = of(t.state)
    if child is not None:
        t.set_timer(TIMER, child.seconds * 1_000)


def due(t: Transition) -> None:
    """End a child whose time is over."""
    child = of(t.state)
    if child is not None and t.state.phase == "open":
        message = f"The agent took longer than {child.seconds} s."
        ending.end(t, "time_limit", Failure(code=Code.TIMED_OUT, message=message))


def settle(t: Transition) -> None:
    """End a child that has answered, or has taken all the tokens that it may."""
    child = of(t.state)
    if child is None or t.state.phase != "open":
        return
    if t.counters.tokens > child.tokens:
        message = f"The agent may take {child.tokens} tokens, and it took {t.counters.tokens}."
        ending.end(t, "token_limit", Failure(code=Code.OVERLOADED, message=message))
    elif child.kind == "run" and t.counters.turns and not t.pending.open and t.reply is None:
        ending.end(t, "completed")


def left_alone(t: Transition, reason: str) -> None:
    """End a child whose parent is over, or wants no answer any more."""
    if of(t.state) is not None and t.state.phase == "open":
        ending.end(t, reason)
