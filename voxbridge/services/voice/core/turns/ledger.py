"""The turns that are open: each is opened once, is somebody's until it is over, and is completed once. Pure.

A turn is a reply's, a stopped or withdrawn reply's, or a connection's that is to answer it. `settle` looks at the end of each step for
turns that are nobody's any more: whatever became of them, they are over. The numbers of open turns are all that is kept.
"""

from __future__ import annotations

from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.core.transition import Draft
from voxbridge.shared.events import voice as ev


def begin(d: Draft) -> int:
    """Open the next turn; returns its number."""
    d.state.turns += 1
    d.state.open = (*d.state.open, d.state.turns)
    return d.state.turns


def complete(d: Draft, number: int, reason: ev.TurnReason, *, latency: ev.Latency | None = None, usage: ev.Usage | None = None) -> None:
    """A turn is over; nothing if it was over before."""
    if number not in d.state.open:
        return
    d.state.open = tuple(one for one in d.state.open if one != number)
    d.append(ev.TurnCompleted(number=number, reason=reason, latency=latency or ev.Latency(), usage=usage or ev.Usage()))


def settle(d: Draft) -> None:
    """Complete the turns that nobody answers any more."""
    if d.state.open:
        owned = _owned(d.state)
        for number in d.state.open:
            if number not in owned:
                complete(d, number, "interrupted")


def _owned(state: State) -> set[int]:
    owned = {one.turn for one in (state.reply, state.cut, state.withdrawn, *state.trailing) if one is not None}
    if state.line is not None:
        owned.add(state.line.going_on)
    return owned
