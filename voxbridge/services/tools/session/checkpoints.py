"""Checkpoints: the state of an account's calls, written into its log every thousand inputs, because that log has neither an end nor an age.

Owns their form, and the rule that one of another release is passed over. Does not own when they are written
(`voxbridge.services.tools.session.session`). A checkpoint says nothing that the journal does not: losing one costs a longer fold.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

import msgspec

from voxbridge.services.tools.core.state import State
from voxbridge.shared import events
from voxbridge.shared.events.journal import Checkpoint
from voxbridge.shared.step.fold import Folded

EVERY: Final = 1_000
"""Inputs between two checkpoints."""

STATE_LIMIT: Final = 768 * 1024
"""Bytes of a state that is written; a larger one is left out, and the fold begins at the checkpoint before."""


@cache
def shape() -> str:
    """Return a name for the form of the state in this release."""
    return hashlib.sha256(msgspec.json.encode(msgspec.json.schema(State))).hexdigest()[:16]


def made(state: State, *, taken: int, number: int) -> Checkpoint | None:
    """Return the event that holds a state; None for a state beyond `STATE_LIMIT`. `number` is that of the event."""
    encoded = msgspec.msgpack.encode(state)
    return None if len(encoded) > STATE_LIMIT else Checkpoint(taken=taken, number=number, shape=shape(), state=encoded)


def restored(recorded: events.Recorded) -> Folded[State] | None:
    """Return the fold of the log up to a checkpoint; None for one that this release does not read."""
    event = recorded.event
    if not isinstance(event, Checkpoint) or event.shape != shape():
        return None
    state = msgspec.msgpack.decode(event.state, type=State)
    return Folded(state=state, taken=event.taken, number=event.number + 1, last_seq=recorded.seq)
