"""The core of the awareness service: `step(state, input, now) -> (state, outputs)`, for one account. Pure.

A report of a client is taken once, by its position; the end of a call once, by session and position. A source that is switched off is
forgotten at once, and erased; so is a report that came past the switch. Entries age out of the projection, and the log is cut where all
that it says is in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from voxbridge.services.awareness.core.inputs import CallEnded, Erased, Forget, Input, Settled
from voxbridge.services.awareness.core.outputs import Erase, Output
from voxbridge.services.awareness.core.state import (
    COUNTED_PAGES,
    ENDS_REMEMBERED,
    FACTS_KEPT,
    PROBLEMS_KEPT,
    VISITS_KEPT,
    Erasure,
    State,
    view,
)
from voxbridge.shared import events
from voxbridge.shared.awareness.view import SOURCES, Fact, Problem, Visit
from voxbridge.shared.events import gateway
from voxbridge.shared.events.awareness import AwarenessChanged
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

_DAY_US: Final = 86_400_000_000
KEPT_US: Final = {"pages": 7 * _DAY_US, "errors": _DAY_US, "context": 30 * _DAY_US}
"""Microseconds after which an entry says nothing of what the user does now, by source."""

INPUTS_KEPT: Final = 10_000
"""Inputs after which everything before is erased, and a checkpoint stands for it."""

AGE_US: Final = 30 * _DAY_US
"""Age of the oldest input at which the same happens."""


def step(state: State, input: Input | LogInput, now: int) -> tuple[State, Sequence[Output]]:
    """Apply one input. Return the new state and the outputs, which the shell must perform in order."""
    state = replace(state, inputs=state.inputs + 1, since=state.since or now)
    match input:
        case LogInput(recorded=recorded):
            return _reported(state, recorded)
        case CallEnded():
            return _ended(state, input), ()
        case Settled():
            return _settled(state, now)
        case Forget():
            return _erase(replace(state, visits=(), counts={}, problems=(), facts=(), ends=()), SOURCES, state.taken)
        case Erased(sources=sources, up_to=up_to):
            return replace(state, erasing=tuple(one for one in state.erasing if one != Erasure(sources, up_to))), ()


def concerns(state: State, ended: CallEnded) -> bool:
    """Check whether the end of a call changes anything: a failure while errors are kept, or the success of what had failed."""
    if "errors" in state.off:
        return False
    return bool(ended.message) or any(one.function == ended.function for one in state.problems)


def _reported(state: State, recorded: events.Recorded) -> tuple[State, Sequence[Output]]:
    if recorded.seq <= state.taken:
        return state, ()
    state = replace(state, taken=recorded.seq)
    match recorded.event:
        case gateway.AwarenessSwitched(off=off):
            return _switched(state, off)
        case gateway.PageVisited():
            return _unless_off(state, "pages", _visited(state, recorded.event, recorded.ts))
        case gateway.ErrorReported() as event:
            met = Problem(
                id=event.error_id, kind=event.error_type, message=event.message, at=recorded.ts, page=event.page, session=event.session
            )
            return _unless_off(state, "errors", _met(state, met))
        case gateway.ContextSet():
            return _unless_off(state, "context", _stated(state, recorded.event, recorded.ts))
        case gateway.ErrorResolved(error_id=error_id):
            return replace(state, problems=tuple(one for one in state.problems if one.id != error_id)), ()
        case _:  # of a newer release, or unreadable
            return state, ()


def _unless_off(state: State, source: str, taken: State) -> tuple[State, Sequence[Output]]:
    """Return the state with a report, or the erasing of a report that another gateway let through."""
    return (taken, ()) if source not in state.off else _erase(state, (source,), state.taken)


def _visited(state: State, event: gateway.PageVisited, at: int) -> State:
    visit = Visit(id=event.visit_id, page=event.page, title=event.title, at=at, session=event.session)
    others = tuple(one for one in state.visits if (one.page, one.session) != (visit.page, visit.session))
    counts = {**state.counts, visit.page: state.counts.get(visit.page, 0) + 1}
    while len(counts) > COUNTED_PAGES:
        del counts[min((page for page in counts if page != visit.page), key=lambda page: counts[page])]
    return replace(state, visits=(visit, *others)[:VISITS_KEPT], counts=counts)


def _met(state: State, met: Problem) -> State:
    """Take an error; one that is open already is counted under its first id."""
    same = next((one for one in state.problems if _kind(one, state) == _kind(met, state)), None)
    if same is not None:
        met = replace(met, id=same.id, count=same.count + 1)
    return replace(state, problems=(met, *(one for one in state.problems if one.id != met.id))[:PROBLEMS_KEPT])


def _kind(problem: Problem, state: State) -> tuple[str, ...]:
    return problem.kind, problem.message, problem.page, problem.function, problem.session if state.apart else ""


def _stated(state: State, event: gateway.ContextSet, at: int) -> State:
    others = tuple(one for one in state.facts if one.key != event.key or (state.apart and one.session != event.session))
    stated = (Fact(key=event.key, value=event.value, at=at, session=event.session),) if event.value else ()
    return replace(state, facts=(*stated, *others)[:FACTS_KEPT])


def _ended(state: State, input: CallEnded) -> State:
    end = f"{input.sid}-{input.seq}"
    if end in state.ends:
        return state
    state = replace(state, ends=(*state.ends, end)[-ENDS_REMEMBERED:])
    if "errors" in state.off:
        return state
    if not input.message:  # the function works again
        return replace(state, problems=tuple(one for one in state.problems if one.function != input.function))
    session = "" if input.sid.startswith("@") else input.sid
    met = Problem(id=end, kind=input.code, message=input.message, at=input.at, session=session, function=input.function)
    return _met(state, met)


def _switched(state: State, off: tuple[str, ...]) -> tuple[State, Sequence[Output]]:
    off = tuple(source for source in SOURCES if source in off)
    more = tuple(source for source in off if source not in state.off)
    state = replace(
        state,
        off=off,
        visits=() if "pages" in off else state.visits,
        counts={} if "pages" in off else state.counts,
        problems=() if "errors" in off else state.problems,
        facts=() if "context" in off else state.facts,
    )
    return _erase(state, more, state.taken) if more else (state, ())


def _settled(state: State, now: int) -> tuple[State, Sequence[Output]]:
    state = replace(
        state,
        visits=tuple(one for one in state.visits if one.at > now - KEPT_US["pages"]),
        problems=tuple(one for one in state.problems if one.at > now - KEPT_US["errors"]),
        facts=tuple(one for one in state.facts if one.at > now - KEPT_US["context"]),
    )
    outputs: list[Output] = []
    if (seen := view(state)) != state.told:
        state = replace(state, told=seen)
        outputs.append(Append(AwarenessChanged(view=seen)))
    if state.inputs >= INPUTS_KEPT or state.since < now - AGE_US:
        state, erase = _erase(state, SOURCES, state.taken)
        outputs += erase
    return state, outputs


def _erase(state: State, sources: tuple[str, ...], up_to: int) -> tuple[State, Sequence[Output]]:
    """Have these sources erased. A checkpoint will stand for all before, so counting begins anew."""
    state = replace(state, erasing=(*state.erasing, Erasure(sources, up_to)), inputs=0, since=0)
    return state, (Erase(sources, up_to),)
