"""Replay of a session's journal: the step must append the same events as the log has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core.state import State
from voxbridge.shared import events
from voxbridge.shared.events.journal import VoiceJournal
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(inputs.Input)
Appended = tuple[str, int | str | None, int, bytes]


def replay(sid: str, log: Sequence[events.Recorded]) -> tuple[State, list[Appended]]:
    """Return the state after every journalled input, and `(type, cause, ts, payload)` of every event that was appended."""
    by_seq = {one.seq: one for one in log}
    state, appended, number = step.initial(sid), list[Appended](), 0
    for entry in log:
        if not isinstance(entry.event, VoiceJournal):
            continue
        assert entry.event.first == number, "the journal has a gap"
        for taken in entry.event.inputs:
            input = _decoder.decode(taken.input) if taken.seq is None else LogInput(by_seq[taken.seq])
            cause = f"voice#{number}" if taken.seq is None else taken.seq
            state, outputs = step.step(state, input, taken.at)
            number += 1
            appended += [(events.kind_of(o.event).name, cause, taken.at, encoded(o.event)) for o in outputs if isinstance(o, Append)]
    return state, appended


def stored(log: Sequence[events.Recorded]) -> list[Appended]:
    """Return the same for the events that the voice service wrote."""
    mine = [one for one in log if one.writer == "voice" and not isinstance(one.event, VoiceJournal)]
    return [(one.type, one.cause, one.ts, encoded(one.event)) for one in mine]


def encoded(value: Any) -> bytes:
    """Return comparable bytes of a value."""
    return msgspec.msgpack.encode(value)


def causes_come_first(log: Sequence[events.Recorded]) -> bool:
    """Return whether each event of the voice service comes after the inputs that caused it."""
    journalled = 0
    for one in log:
        if isinstance(one.event, VoiceJournal):
            journalled = one.event.first + len(one.event.inputs)
        elif one.writer == "voice":
            if isinstance(one.cause, str) and int(one.cause.removeprefix("voice#")) >= journalled:
                return False
            if isinstance(one.cause, int) and one.cause >= one.seq:
                return False
    return True
