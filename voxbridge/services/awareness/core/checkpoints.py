"""Checkpoints: the state that remains where what led to it is erased. Pure."""

from __future__ import annotations

import zlib
from functools import cache

import msgspec

from voxbridge.services.awareness.core.state import State
from voxbridge.shared import events
from voxbridge.shared.events.journal import AwarenessCheckpoint
from voxbridge.shared.step.fold import Folded


def made(state: State, *, taken: int, number: int) -> AwarenessCheckpoint:
    """Return the event that holds a state. `number` is that of the event among those of its writer."""
    return AwarenessCheckpoint(taken=taken, number=number, shape=shape(), state=msgspec.msgpack.encode(state))


def restored(recorded: events.Recorded) -> Folded[State] | None:
    """Return the fold up to a checkpoint; None for anything else. Fields that a release adds have defaults, so a state can be read for as
    long as its entries are of use."""
    event = recorded.event
    if not isinstance(event, AwarenessCheckpoint):
        return None
    state = msgspec.msgpack.decode(event.state, type=State)
    return Folded(state=state, taken=event.taken, number=event.number + 1, last_seq=recorded.seq)


@cache
def shape() -> str:
    """Return a name for the form of the state in this release."""
    return f"{zlib.crc32(msgspec.json.encode(msgspec.json.schema(State))):08x}"
