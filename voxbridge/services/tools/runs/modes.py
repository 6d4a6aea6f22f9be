"""All runs of one place: which may be open beside which, and the inputs of each. Pure.

Owns the modes of documents and the bounds on the number of runs. A run's id is taken once: a start that is delivered again starts nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.tools.runs import ending, machine
from voxbridge.services.tools.runs.inputs import Broken, Cancel, Input, Start, TimerFired
from voxbridge.services.tools.runs.outputs import Finished, Output, Refused
from voxbridge.services.tools.runs.state import Queued, Runs
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import RunCancelled, RunWaiting
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.fold import Append

RUNS_LIMIT: Final = 16
"""Runs that are open or wait."""

ENDED_KEPT: Final = 256
"""Ids of ended runs that are remembered, so that a late start starts nothing."""

Steps = tuple[Runs, list[Output]]


def step(state: Runs, input: Input, now: int) -> Steps:
    """Take one input at `now` (µs of the Unix clock)."""
    if isinstance(input, Start):
        return _started(state, input, now)
    run = state.open.get(input.run_id)
    if run is None:
        return _withdrawn(state, input, now) if isinstance(input, Cancel) else (state, [])
    if isinstance(input, Cancel):
        return _put(state, input.run_id, machine.cancelled(run, input.reason, now), now)
    if isinstance(input, Broken):
        return _put(state, input.run_id, ending.over(run, "", input.error, now, is_open=True), now)
    if isinstance(input, TimerFired):
        return _put(state, input.run_id, machine.woken(run, now), now)
    return _put(state, input.run_id, machine.took(run, input, now), now)


def _started(state: Runs, start: Start, now: int) -> Steps:
    run_id, document = start.run_id, start.document
    if run_id in state.open:
        return state, machine.resumed(state.open[run_id])
    if run_id in state.ended or any(one.start.run_id == run_id for one in state.queue):
        return state, []
    same = [run for run in state.open.values() if (run.kind, run.name) == (start.kind, document.name)]
    waiting = [one for one in state.queue if _is_same(one, start)]
    if len(state.open) + len(state.queue) >= RUNS_LIMIT:
        return _refused(state, start, Code.OVERLOADED, f"{RUNS_LIMIT} macros are running or waiting already; wait for one to end.")
    if document.mode == "single" and same:
        return _refused(state, start, Code.CONFLICT, f"{document.name} is running already. Wait for it, or cancel it.")
    if document.mode == "parallel" and len(same) >= document.limit:
        message = f"{document.name} runs {document.limit} times already, as often as it may."
        return _refused(state, start, Code.OVERLOADED, message)
    if document.mode == "queued" and (same or waiting):
        if len(waiting) >= document.limit:
            message = f"{document.limit} runs of {document.name} wait already, as many as may."
            return _refused(state, start, Code.OVERLOADED, message)
        return _enqueued(state, start, now)
    if document.mode == "restart" and same:
        return _restarted(state, start, [run.id for run in same], now)
    return _opened(state, start, now)


def _opened(state: Runs, start: Start, now: int) -> Steps:
    try:
        opened = machine.opened(start, now)
    except VoxbridgeError as error:
        failure = Failure(code=error.code, message=error.message, retryable=error.retryable)
        return _ended(state, start.run_id), [Refused(start.run_id, failure)]
    return _put(state, start.run_id, opened, now)


def _enqueued(state: Runs, start: Start, now: int) -> Steps:
    waiting = RunWaiting(run_id=start.run_id, name=start.document.name, reason="queued")
    return replace(state, queue=(*state.queue, Queued(start, now))), [Append(waiting)]


def _restarted(state: Runs, start: Start, running: list[str], now: int) -> Steps:
    """Cancel the runs of the same document, and those that wait; the new one begins when the last of them has ended."""
    outputs: list[Output] = []
    for one in [one for one in state.queue if _is_same(one, start)]:
        state, more = _withdrawn(state, Cancel(run_id=one.start.run_id, reason="it was started anew"), now)
        outputs += more
    state, more = _enqueued(state, start, now)
    outputs += more
    for run_id in running:
        state, more = _put(state, run_id, machine.cancelled(state.open[run_id], "it was started anew", now), now)
        outputs += more
    return state, outputs


def _withdrawn(state: Runs, cancel: Cancel, now: int) -> Steps:
    """Drop a start that waits."""
    found = next((one for one in state.queue if one.start.run_id == cancel.run_id), None)
    if found is None:
        return state, []
    state = _ended(replace(state, queue=tuple(one for one in state.queue if one is not found)), cancel.run_id)
    name, ms = found.start.document.name, max(0, now - found.since) // 1_000
    event = RunCancelled(run_id=cancel.run_id, name=name, reason=cancel.reason, ms=ms)
    return state, [Append(event), Finished(cancel.run_id, None, cancel.reason)]


def _put(state: Runs, run_id: str, steps: machine.Steps, now: int) -> Steps:
    """Return the state with what became of a run, and begin the starts that waited for its end."""
    run, outputs = steps
    if run is not None:
        return replace(state, open={**state.open, run_id: run}), outputs
    state = _ended(replace(state, open={one: run for one, run in state.open.items() if one != run_id}), run_id)
    while (following := _following(state)) is not None:
        state = replace(state, queue=tuple(one for one in state.queue if one is not following))
        state, more = _begun(state, following, now)
        outputs = [*outputs, *more]
    return state, outputs


def _following(state: Runs) -> Queued | None:
    """Return the first start that waits for nothing any more."""
    running = {(run.kind, run.name) for run in state.open.values()}
    return next((one for one in state.queue if (one.start.kind, one.start.document.name) not in running), None)


def _begun(state: Runs, following: Queued, now: int) -> Steps:
    start = following.start
    try:
        run, outputs = machine.opened(start, now)
    except VoxbridgeError as error:
        failure = Failure(code=error.code, message=error.message, retryable=error.retryable)
        return _ended(state, start.run_id), [Refused(start.run_id, failure)]
    if run is None:
        return _ended(state, start.run_id), outputs
    return replace(state, open={**state.open, start.run_id: run}), outputs


def _refused(state: Runs, start: Start, code: Code, message: str) -> Steps:
    return _ended(state, start.run_id), [Refused(start.run_id, Failure(code=code, message=message, retryable=code == Code.OVERLOADED))]


def _ended(state: Runs, run_id: str) -> Runs:
    return replace(state, ended=(*state.ended[-(ENDED_KEPT - 1) :], run_id))


def _is_same(one: Queued, start: Start) -> bool:
    return (one.start.kind, one.start.document.name) == (start.kind, start.document.name)
