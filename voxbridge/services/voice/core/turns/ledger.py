"""Ledger of open turns: each is opened once, has an owner until it is over, and is completed once. Pure.

The owner is a reply, a stopped or withdrawn reply, or a connection that is to answer the turn. At the end of each step, `settle` completes
the turns that have no owner any more, whatever the reason. Only the numbers of open turns are kept.
"""

from __future__ import annotations

from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.events import voice as ev


def begin(t: Transition) -> int:
    """Open the next turn. Return its number."""
    t.counters.turns += 1
    t.pending.open = (*t.pending.open, t.counters.turns)
    return t.counters.turns


def complete(
    t: Transition, number: int, reason: ev.TurnReason, *, latency: ev.Latency | None = None, usage: ev.Usage | None = None
) -> None:
    """Complete a turn. Do nothing if it is not open."""
    if number not in t.pending.open:
        return
    t.pending.open = tuple(one for one in t.pending.open if one != number)
    t.append(ev.TurnCompleted(number=number, reason=reason, latency=latency or ev.Latency(), usage=usage or ev.Usage()))


def settle(t: Transition) -> None:
    """Complete the open turns without an owner as interrupted."""
    if t.pending.open:
        owned = _owned(t.state)
        for number in t.pending.open:
            if number not in owned:
                complete(t, number, "interrupted")


def _owned(state: State) -> set[int]:
    owned = {one.turn for one in (state.speech.reply, state.speech.cut, state.speech.withdrawn, *state.speech.trailing) if one is not None}
    if state.realtime is not None:
        owned.add(state.realtime.owed.turn)
    return owned
