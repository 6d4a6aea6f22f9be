"""A connection that is driven from step to step, and what its inputs and outputs look like."""

from __future__ import annotations

import json
from typing import Any

from voxbridge.services.gateway.core import inputs
from voxbridge.services.gateway.core.inputs import Input
from voxbridge.services.gateway.core.outputs import Append, Output, Outputs, Send
from voxbridge.services.gateway.core.resume_rules import Known
from voxbridge.services.gateway.core.state import Connection, Origin, Phase
from voxbridge.services.gateway.core.state import fresh as fresh_connection
from voxbridge.services.gateway.core.step import step
from voxbridge.shared import events
from voxbridge.shared.bus import moments

SID = "0" * 32
START = {"type": "start", "mode": "local"}


class Driven:
    """A connection, its latest state and its outputs."""

    def __init__(self, state: Connection) -> None:
        self.state = state

    def take(self, input: Input) -> Outputs:
        """Return the outputs of this input."""
        self.state, outputs = step(self.state, input)
        return outputs

    def read(self, recorded: events.Recorded) -> Outputs:
        """Return the outputs of this event of the log."""
        return self.take(inputs.EventRead(recorded))

    def hear(self, moment: moments.Moment) -> Outputs:
        """Return the outputs of this moment."""
        return self.take(inputs.MomentReceived(moment))

    def resumed(self, known: Known, snapshot: dict[str, Any] | None = None, now_ms: int = 0) -> Outputs:
        """Return the outputs of the session that was found."""
        return self.take(inputs.Resumed(known, snapshot, now_ms))

    def tick(self, now_ms: int, *, owned: bool | None) -> Outputs:
        """Return the outputs of a tick."""
        return self.take(inputs.Tick(now_ms, owned))

    @property
    def phase(self) -> Phase:
        """Return the phase that the connection is in."""
        return self.state.phase

    @property
    def last_seq(self) -> int:
        """Return the position up to which the client was told."""
        return self.state.last_seq


def say(connection: Driven, message: Any, now_ms: int = 0) -> list[Output]:
    return list(connection.take(inputs.TextMessage(json.dumps(message).encode(), now_ms)))


def recorded(event: events.Event, seq: int) -> events.Recorded:
    kind = events.kind_of(event)
    return events.Recorded(
        seq=seq, id=str(seq), sid=SID, ts=0, cause=None, writer=kind.writer, visible=kind.visible, type=kind.name, v=1, event=event
    )


def fresh(*, v1: bool = True) -> Driven:
    return Driven(fresh_connection(Origin("g", "g-1", "hash"), sid=SID, v1=v1, resume_token="token"))


def requested(*, v1: bool = True) -> Driven:
    connection = fresh(v1=v1)
    say(connection, START)
    connection.take(inputs.Opened())
    return connection


def live(*, v1: bool = True) -> Driven:
    connection = requested(v1=v1)
    connection.read(recorded(events.voice.SessionStarted(mode="local", model="m", voice="v", output="audio"), 10))
    return connection


def audible(connection: Driven) -> bool:
    return connection.state.takes_audio


def error_of(outputs: list[Output]) -> dict[str, Any]:
    assert len(outputs) == 1
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["type"] == "error"
    return outputs[0].message


def appended(outputs: list[Output]) -> list[events.Event]:
    return [output.event for output in outputs if isinstance(output, Append)]


def called(call_id: str = "c1", name: str = "open_page", kind: Any = "browser", seq: int = 20) -> events.Recorded:
    return recorded(events.voice.ToolCalled(call_id=call_id, name=name, arguments={"page": "/"}, kind=kind, turn=1, deadline_ms=1), seq)
