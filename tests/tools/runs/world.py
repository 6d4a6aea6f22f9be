"""Runs in virtual time: calls, timers and people that a test answers for, with what must hold after every input."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from voxbridge.services.tools.runs import inputs, modes, outputs
from voxbridge.services.tools.runs.document import Document, parse
from voxbridge.services.tools.runs.state import Asking, Calling, Confirming, Deciding, Run, Runs, Stepping, Stopping
from voxbridge.shared import events
from voxbridge.shared.events import tools as ev
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.macros import trace
from voxbridge.shared.step.fold import Append

T0 = 1_700_000_000_000_000
S = 1_000_000
BROKEN = Failure(code="INTERNAL", message="broken")
_decoder = msgspec.msgpack.Decoder(inputs.Input)


def document(*steps: Any, name: str = "deploy", **fields: Any) -> Document:
    return parse({"name": name, "steps": list(steps), **fields})


class World:
    """All runs of one place. Every input goes through its bytes, as a journal has them."""

    def __init__(self) -> None:
        self.state = Runs()
        self.now = T0
        self.journal: list[tuple[int, bytes]] = []
        self.events: list[events.Event] = []
        self.calls: dict[str, outputs.StartCall] = {}
        self.started: Counter[str] = Counter()
        self.stopped: set[str] = set()
        self.timers: dict[str, int] = {}
        self.finished: dict[str, Any] = {}
        self.refused: dict[str, Failure] = {}
        self.traces: dict[str, trace.Trace] = {}

    def take(self, input: inputs.Input) -> list[outputs.Output]:
        raw = msgspec.msgpack.encode(input)
        self.journal.append((self.now, raw))
        self.state, done = modes.step(self.state, _decoder.decode(raw), self.now)
        for output in done:
            self._did(output)
        self._agrees()
        return done

    def start(self, document: Document, run_id: str = "r1", **fields: Any) -> list[outputs.Output]:
        return self.take(inputs.Start(run_id=run_id, document=document, **fields))

    def returns(self, call_id: str, **result: Any) -> None:
        del self.calls[call_id]
        self.take(inputs.Returned(run_id=call_id.split(".")[0], call_id=call_id, result=result))

    def fails(self, call_id: str, error: Failure = BROKEN, *, known: bool = True) -> None:
        del self.calls[call_id]
        self.take(inputs.Failed(run_id=call_id.split(".")[0], call_id=call_id, error=error, known=known))

    def passes(self, seconds: float) -> None:
        """Let time pass, with the timers that fire in it."""
        end = self.now + round(seconds * S)
        while self.timers and min(self.timers.values()) <= end:
            run_id, at = min(self.timers.items(), key=lambda one: one[1])
            self.now = max(self.now, at)
            del self.timers[run_id]
            self.take(inputs.TimerFired(run_id=run_id))
        self.now = end

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def kinds(self) -> list[str]:
        return [events.kind_of(event).name.removeprefix("run.") for event in self.events]

    def again(self) -> Runs:
        """Return the state that the journal leads to."""
        state = Runs()
        for at, raw in self.journal:
            state, _ = modes.step(state, _decoder.decode(raw), at)
        return state

    def _did(self, output: outputs.Output) -> None:
        match output:
            case Append(event=event):
                self.events.append(event)
                run_id: str = event.run_id  # type: ignore[attr-defined]
                followed = trace.apply(self.traces.get(run_id), event, self.now)
                if followed is not None:
                    self.traces[run_id] = followed
            case outputs.StartCall():
                self.started[output.call_id] += 1
                self.calls[output.call_id] = output
            case outputs.CancelCall():
                self.stopped.add(output.call_id)
            case outputs.SetTimer():
                self.timers[output.run_id] = output.at
            case outputs.CancelTimer():
                self.timers.pop(output.run_id, None)
            case outputs.Refused():
                self.refused[output.run_id] = output.error
            case outputs.Finished():
                assert output.run_id not in self.finished
                self.finished[output.run_id] = output.outcome

    def _agrees(self) -> None:
        """Check that events alone tell where every run stands, that a run has a timer as long as it is open, and none after."""
        assert self.timers.keys() == self.state.open.keys()
        for run in self.state.open.values():
            told = self.traces[run.id]
            assert (told.state, told.question, told.open) == stands(run)
        for run_id in self.finished:
            assert self.traces[run_id].state in ("completed", "failed", "cancelled")
            assert self.traces[run_id].open == ()
        assert {queued.start.run_id for queued in self.state.queue} == {
            run_id for run_id, one in self.traces.items() if one.state == "queued"
        }


def stands(run: Run) -> tuple[trace.State, str, tuple[tuple[str, int], ...]]:
    """Return the state, the question and the open steps of a live run, as its trace must have them."""
    phase = run.phase
    question = (
        phase.question if isinstance(phase, Asking | Deciding | Stepping) else phase.held if isinstance(phase, Calling | Stopping) else ""
    )
    if isinstance(phase, Confirming):
        return "waiting", f"Shall I run {run.name}? Please say yes or no.", ()
    frames = run.frames if run.is_open else run.frames[:-1]
    return "waiting" if question else "running", question, tuple((frame.path, frame.attempt) for frame in frames)


def attempts(world: World) -> list[tuple[str, str, int]]:
    return [(event.run_id, event.step, event.attempt) for event in world.told(ev.RunStepStarted)]
