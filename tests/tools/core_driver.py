"""Inputs of the tools core for tests, and a state that takes them by the clock of the test."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from voxbridge.services.tools.core.inputs import Accepted, Alarm, Counted, Mode, Raised, Returned, Scheduled
from voxbridge.services.tools.core.outputs import Count
from voxbridge.services.tools.core.state import State
from voxbridge.services.tools.core.step import step
from voxbridge.shared import events
from voxbridge.shared.agents.functions import Approval, Effect
from voxbridge.shared.events.voice import Failure, ToolCalled, ToolCancelled
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

MS = 1_000
T0 = 1_700_000_000_000_000
BROKEN = Failure(code="INTERNAL", message="broken")


def log_input(event: events.Event, seq: int, at: int = T0) -> LogInput:
    kind = events.kind_of(event)
    return LogInput(
        events.Recorded(
            seq=seq, id=f"s.voice.{seq}", sid="s", ts=at, cause=None, writer="voice", visible=True, type=kind.name, v=1, event=event
        )
    )


def called(call_id: str = "c1", seq: int = 1, at: int = T0, deadline_ms: int = 0, a: int = 1) -> LogInput:
    event = ToolCalled(call_id=call_id, name="fn", arguments={"a": a}, kind="server", turn=1, deadline_ms=deadline_ms, account="me")
    return log_input(event, seq, at)


def cancelled(call_id: str = "c1", seq: int = 2, reason: str = "barge_in") -> LogInput:
    return log_input(ToolCancelled(call_id=call_id, name="fn", reason=reason), seq)


def accepted(
    call_id: str = "c1",
    mode: Mode = "call",
    *,
    timeout_ms: int = 5_000,
    idempotent: bool = False,
    effect: Effect = "read",
    approval: Approval = "never",
    outlives: bool = False,
    by_turn: bool = True,
) -> Accepted:
    rules = Accepted(call_id=call_id, mode=mode, timeout_ms=timeout_ms, idempotent=idempotent, effect=effect)
    return replace(rules, approval=approval, outlives=outlives, by_turn=by_turn)


def returned(call_id: str = "c1", attempt: int = 1, **result: Any) -> Returned:
    return Returned(call_id=call_id, attempt=attempt, result=result)


def raised(call_id: str = "c1", attempt: int = 1) -> Raised:
    return Raised(call_id=call_id, attempt=attempt, error=BROKEN)


def scheduled(call_id: str = "c1", attempt: int = 1, after_ms: int = 60_000) -> Scheduled:
    return Scheduled(
        call_id=call_id, attempt=attempt, alarm=Alarm(after_ms=after_ms, announce="Ready.", spoken="Set.", label="pasta", result={"n": 1})
    )


class Told:
    """A state and all outputs, by time. `room` is what the account answers where a task is counted; None where it has not answered."""

    def __init__(self, *, room: bool | None = True) -> None:
        self.room = room
        self.state = State()
        self.now = T0
        self.outputs: list[Any] = []

    def take(self, *inputs: Any, after_ms: int = 0) -> list[Any]:
        last: list[Any] = []
        self.now += after_ms * MS
        for input in inputs:
            self.state, last = step(self.state, input, self.now)
            if self.room is not None:
                for asked in [output for output in last if isinstance(output, Count) and not output.forced and not output.listed]:
                    counted = Counted(call_id=asked.call_id, account=asked.account, room=self.room)
                    self.state, more = step(self.state, counted, self.now)
                    last = [*last, *more]
            self.outputs += last
        return last

    @property
    def events(self) -> list[events.Event]:
        return [output.event for output in self.outputs if isinstance(output, Append)]


def appended(outputs: list[Any]) -> list[events.Event]:
    return [output.event for output in outputs if isinstance(output, Append)]
