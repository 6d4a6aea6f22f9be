"""Figures of calls on a realtime model: handoffs, rotations, kills and drains as rows of the table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

import msgspec

from bench import figures
from bench.report import Figure

LONG_TURNS: Final = 60
LONG_TEXT: Final = "I have more to tell you about my savings. " * 48
"""Text that the caller types in each of these turns: 2,016 characters, so that the full history exceeds what a model is given verbatim."""
DRAINED: Final = 20
"""Calls on the worker that is stopped."""
STANDBY: Final = "a second voice worker that waits"


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff. Times in ms."""

    ms: float
    ready_ms: float
    """Until the stand-in confirmed the setup of the new connection."""

    stand_in_ms: float
    """CPU time of the stand-in until it had sent the second agent's first audio, including its concurrent other work."""

    kept: bool
    """The new connection knew what both had said before."""

    lost: int
    unresumable: bool


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """A replaced connection. Longest gaps in ms."""

    gap_ms: float
    theirs_ms: float
    """Between two audio messages of the stand-in, over both connections."""

    again_ms: float
    """Microphone audio that was sent over both connections."""

    lost: int


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose worker was killed."""

    ms: float
    effects: int
    results: int
    """Times that the model was told the function's result."""

    kept: bool
    lost: int


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """A stopped worker. Times in ms: until the last call continued on another worker, and the longest silence of each call."""

    moved_ms: float
    pauses_ms: list[float]


def of_handoffs(found: dict[str, list[Handoff]]) -> list[Figure]:
    """Return the figures of handoffs, by kind."""
    every = [one for handoffs in found.values() for one in handoffs]
    what = "handoff, the model's toolCall → first audio of the next agent at the caller, raw"
    result = []
    for kind, handoffs in found.items():
        ready = statistics.median(one.ready_ms for one in handoffs)
        spent = statistics.median(one.stand_in_ms for one in handoffs)
        note = f"{ready:.1f} ms of it until the new connection is set up; the stand-in spent {spent:.1f} ms of CPU meanwhile"
        value = statistics.median(one.ms for one in handoffs)
        result.append(Figure(area="live_calls", what=f"{what}, {kind}, median", unit="ms", value=value, note=note))
    without = [one for one in every if one.unresumable]
    share = 100 * statistics.fmean(one.kept for one in every)
    note = f"{sum(one.kept for one in without)} of {len(without)} with resumable=false beside the call"
    result += [
        Figure(
            area="live_calls",
            what="handoffs that kept the history",
            key="live_calls.kept",
            unit="%",
            value=share,
            target=100,
            aim="at least",
            note=note,
        ),
        Figure(area="live_calls", what="the caller's frames lost over them", unit="", value=sum(one.lost for one in every), target=0),
    ]
    return result


def of_late_ones(remembered: Sequence[bool]) -> Figure:
    """Return the share of handoffs whose next agent knew the first turn."""
    return Figure(
        area="live_calls",
        what=f"handoffs after {LONG_TURNS} turns and {LONG_TURNS * len(LONG_TEXT):,} characters whose next agent knew the first turn",
        unit="%",
        value=100 * statistics.fmean(remembered),
        target=100,
        aim="at least",
        note=f"{sum(remembered)} of {len(remembered)}",
    )


def of_others(rotations: Sequence[Rotation], kills: Sequence[Kill], drain: Drain) -> list[Figure]:
    """Return the figures of rotations, kills and the drain."""
    beyond = max(one.gap_ms - one.theirs_ms for one in rotations)
    gap = max(one.gap_ms for one in rotations)
    wrong = sum(one.effects != 1 for one in kills)
    untold = sum(one.results != 1 for one in kills)
    pauses = figures.series(drain.pauses_ms)
    theirs, again = max(one.theirs_ms for one in rotations), statistics.median(one.again_ms for one in rotations)
    note = f"{again:,.0f} ms of the microphone are heard again"
    calls = f"SIGTERM to a worker with {DRAINED} calls"
    return [
        Figure(
            area="live_calls",
            what="GoAway: input frames lost",
            key="live_calls.go_away_lost",
            unit="",
            value=sum(one.lost for one in rotations),
            target=0,
        ),
        Figure(
            area="live_calls",
            what="GoAway: longest gap in output beyond the provider's own",
            key="live_calls.go_away",
            unit="ms",
            value=beyond,
            target=20,
            raw=gap,
            subtracted=f"the longest gap of the stand-in in the same rotation, {theirs:.1f} ms at most",
            note=note,
        ),
        Figure(
            area="live_calls",
            what="worker killed, a function open → audio, longest",
            key="live_calls.killed",
            unit="ms",
            value=max(one.ms for one in kills),
            target=4_000,
            needs=STANDBY,
            note=f"{len(kills)} kills",
        ),
        Figure(area="live_calls", what="of these, without exactly one effect", unit="", value=wrong, target=0),
        Figure(area="live_calls", what="of these, the result not told the model exactly once", unit="", value=untold, target=0),
        Figure(area="live_calls", what="of these, history not intact", unit="", value=sum(not one.kept for one in kills), target=0),
        Figure(area="live_calls", what="of these, frames lost", unit="", value=sum(one.lost for one in kills)),
        Figure(area="live_calls", what=f"{calls} → all moved", unit="ms", value=drain.moved_ms, target=10_000),
        Figure(
            area="live_calls",
            what=f"{calls}: longest pause of a caller",
            key="live_calls.drained",
            unit="ms",
            value=pauses.longest,
            target=500,
            needs=STANDBY,
        ),
        Figure(area="live_calls", what="the same, p50 of the callers", unit="ms", value=pauses.p50),
    ]
