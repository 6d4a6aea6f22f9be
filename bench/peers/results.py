"""What a comparison found: the systems, those that could not be measured, and the figures that have a target.

Owns the form of `peers.json` and how figures follow from measurements. Pure but for reading and writing that file. Does not measure.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import figures
from bench.client import EchoResult
from bench.peers.handoff import Handoffs
from bench.peers.systems import OURS, RELAY
from bench.report import OUT, Figure, shown

RESULTS: Final = OUT / "peers.json"
P99_LIMIT_MS: Final = 200.0
MANY: Final = 50
"""Sessions with which the product's CPU is judged."""

CPU_SHARE: Final = 0.5
SESSIONS_TARGET: Final = 75
HANDOFF_TARGET_MS: Final = 12.0
AGAINST: Final = "pipecat"


class Measured(msgspec.Struct, kw_only=True):
    """One system. `failed` says what ended its measurement early; what is there was measured before."""

    name: str
    title: str
    version: str
    sdk: str
    python: str
    settings: str
    side: list[EchoResult] = []
    """Side by side, one for each round."""

    rungs: list[EchoResult] = []
    handoffs: Handoffs | None = None
    no_handoff: str = ""
    failed: str = ""

    @property
    def held(self) -> int:
        """The most sessions on its core whose p99 stayed within the limit; of the side by side too, which may lie between rungs."""
        tried = sorted(((one.sessions, one.rtt_ms.p99) for one in (*self.rungs, *self.middle())), key=lambda rung: rung[0])
        return figures.sustained(tried, P99_LIMIT_MS)

    def middle(self) -> list[EchoResult]:
        """The round with the median CPU."""
        return sorted(self.side, key=cpu)[len(self.side) // 2 :][:1]

    def at(self, sessions: int) -> EchoResult | None:
        """The rung with so many sessions."""
        return next((one for one in self.rungs if one.sessions == sessions), None)

    def most_up_to(self, sessions: int) -> EchoResult | None:
        """The load with the most sessions up to so many that it held: a rung, or side by side."""
        held = (one for one in (*self.rungs, *self.middle()) if one.sessions <= min(sessions, self.held))
        return max(held, key=lambda one: one.sessions, default=None)


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that was asked for and is not among the systems, and why."""

    name: str
    title: str
    version: str
    error: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run found."""

    taken_at: str
    quick: bool
    machine: dict[str, Any]
    load_before: float
    load_after: float
    sessions: int
    """Of each system, side by side."""

    one_core: bool
    """The systems had a core, and what measures them the others."""

    noisy: list[str]
    systems: list[Measured]
    absent: list[Absent]
    figures: list[Figure]

    def system(self, name: str) -> Measured | None:
        """One of the systems."""
        return next((one for one in self.systems if one.name == name), None)


def save(found: Comparison, path: Path = RESULTS) -> None:
    """Write `peers.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))


def load(path: Path = RESULTS) -> Comparison:
    """Read `peers.json`; raises `FileNotFoundError`, `msgspec.DecodeError`."""
    return msgspec.json.decode(path.read_bytes(), type=Comparison)


def cpu(result: EchoResult) -> float:
    """µs of all processes for each frame that was sent."""
    return sum(result.cpu_us.values())


def median(results: list[EchoResult], name: str) -> float | None:
    """The median of the rounds' p50 or p99, ms; nothing when a round has none, because too much of it was lost."""
    values = [getattr(one.rtt_ms, name) for one in results]
    return None if not values or None in values else statistics.median(values)


def median_cpu(results: list[EchoResult]) -> float | None:
    """The median of the rounds' CPU for each frame, µs."""
    return statistics.median(map(cpu, results)) if results else None


def judged(systems: list[Measured], absent: list[Absent], *, quick: bool) -> list[Figure]:
    """The figures of the product that have a target, and what they are read beside."""
    by_name = {one.name: one for one in systems}
    ours = by_name[OURS]
    found: list[Figure] = []
    for other in systems:
        mine, its = median_cpu(ours.side), median_cpu(other.side)
        if other is not ours and mine and its:
            sessions = other.side[0].sessions
            found.append(_share(f"CPU per frame, {sessions} sessions each, in those of {other.title}", mine / its))
    if AGAINST in by_name:
        found.append(_against(ours, by_name[AGAINST]))
    found.extend(_not_there(one) for one in absent if one.name == AGAINST)
    relay = by_name.get(RELAY)
    at_many, beside = ours.at(MANY), relay.at(MANY) if relay else None
    if at_many and beside:
        found.append(_share(f"CPU per frame, {MANY} sessions each, in those of {relay.title if relay else ''}", cpu(at_many) / cpu(beside)))
    found.append(
        Figure(
            area="peers",
            what=f"sessions of the product on one core with p99 ≤ {P99_LIMIT_MS:g} ms",
            unit="",
            value=ours.held,
            target=None if quick else SESSIONS_TARGET,
            aim="at least",
        )
    )
    if ours.handoffs is not None and ours.handoffs.ms:
        kept = ours.handoffs
        everything = kept.plain_kept + kept.unresumable_kept == kept.plain + kept.unresumable
        found.append(
            Figure(
                area="peers",
                what="handoff in the product, tool call → first audio of the next agent, without the stand-in's own CPU time, median",
                unit="ms",
                value=statistics.median(kept.own_ms),
                target=HANDOFF_TARGET_MS,
                note=(
                    f"{len(kept.ms)} calls, history kept in {'all' if everything else 'not all'}; "
                    f"with it {shown(statistics.median(kept.ms), 'ms')}"
                ),
            )
        )
    return found


def _share(what: str, value: float) -> Figure:
    return Figure(area="peers", what=what, unit="×", value=value, baseline=1)


def _against(ours: Measured, other: Measured) -> Figure:
    """The target: ours with `MANY` sessions, the other with as many, or with the most that it holds."""
    mine, its = ours.at(MANY), other.most_up_to(MANY)
    what = f"CPU per frame of the whole product, {MANY} sessions, in those of {other.title}"
    if mine is None or its is None:
        why = ours.failed or other.failed or "one of them did not hold enough sessions"
        return Figure(area="peers", what=what, unit="×", value=None, target=CPU_SHARE, note=why)
    note = ""
    if its.sessions < MANY:
        note = f"{other.title} with {its.sessions} sessions: {cpu(its):.0f} µs"
        beyond = other.at(MANY)
        if beyond is not None:
            note += f"; with {MANY} it does not keep up: {beyond.lost / beyond.frames:.0%} lost at {cpu(beyond):.0f} µs a frame sent"
    return Figure(area="peers", what=what, unit="×", value=cpu(mine) / cpu(its), baseline=1, target=CPU_SHARE, note=note)


def _not_there(absent: Absent) -> Figure:
    what = f"CPU per frame of the whole product, {MANY} sessions, in those of {absent.title}"
    return Figure(area="peers", what=what, unit="×", value=None, target=CPU_SHARE, note=f"it could not be measured: {absent.error}")
