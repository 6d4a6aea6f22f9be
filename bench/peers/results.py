"""Results of a comparison: the systems, those that could not be measured, and the figures that have a target.

Owns the format of `peers.json` and how figures are computed from measurements. Pure except for reading and writing that file.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import figures
from bench.clients.client import EchoResult
from bench.peers.handoff import Handoffs
from bench.peers.systems import OURS, RELAY
from bench.report import OUT, Figure, beside

RESULTS: Final = OUT / "peers.json"
P99_LIMIT_MS: Final = 200.0
MANY: Final = 50
"""Sessions of the product and of the relay on the SDK, in addition to what is judged with fewer."""

CPU_SHARE: Final = 0.5
SESSIONS_TARGET: Final = 75
SMOOTH_MS: Final = 100.0
SMOOTH_TARGET: Final = 200
"""Calls on one core that are to keep p99 within `SMOOTH_MS` and to lose no frame."""

HANDOFF_MORE_MS: Final = 5.0
"""Milliseconds that a handoff may take longer than on the bare SDK, raw."""

AGAINST: Final = "pipecat"
SHARE_KEY: Final = "peers.share"


class Measured(msgspec.Struct, kw_only=True):
    """A system. `failed` says what ended its measurement early; earlier measurements are kept."""

    name: str
    title: str
    version: str
    sdk: str
    python: str
    settings: str
    side: list[EchoResult] = []
    """Results side by side, one for each round."""

    rungs: list[EchoResult] = []
    handoffs: Handoffs | None = None
    no_handoff: str = ""
    failed: str = ""

    @property
    def held(self) -> int:
        """Most sessions on its core whose p99 stayed within the limit; includes the side-by-side load, which may lie between rungs."""
        tried = sorted(((one.sessions, one.rtt_ms.p99) for one in (*self.rungs, *self.middle())), key=lambda rung: rung[0])
        return figures.sustained(tried, P99_LIMIT_MS)

    @property
    def smooth(self) -> int:
        """Most sessions on its core that kept p99 within `SMOOTH_MS` and lost no frame."""
        tried = sorted((*self.rungs, *self.middle()), key=lambda one: one.sessions)
        return figures.sustained([(one.sessions, None if one.lost else one.rtt_ms.p99) for one in tried], SMOOTH_MS)

    def middle(self) -> list[EchoResult]:
        """Return the round with the median CPU."""
        return sorted(self.side, key=cpu)[len(self.side) // 2 :][:1]

    def at(self, sessions: int) -> EchoResult | None:
        """Return the rung with so many sessions, or None."""
        return next((one for one in self.rungs if one.sessions == sessions), None)


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """A requested peer that could not be installed, and why."""

    name: str
    title: str
    version: str
    error: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run found."""

    taken_at: str
    quick: bool
    machine: dict[str, Any]
    load_before: float
    load_after: float
    sessions: int
    """Sessions of each system, side by side."""

    one_core: bool
    """The systems had one core, and the tools that measure them had the others."""

    noisy: list[str]
    systems: list[Measured]
    absent: list[Absent]
    figures: list[Figure]

    def system(self, name: str) -> Measured | None:
        """Return the system of this name, or None."""
        return next((one for one in self.systems if one.name == name), None)


def save(found: Comparison, path: Path = RESULTS) -> None:
    """Write `peers.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))


def load(path: Path = RESULTS) -> Comparison:
    """Read `peers.json`; raises `FileNotFoundError`, `msgspec.DecodeError`."""
    return msgspec.json.decode(path.read_bytes(), type=Comparison)


def cpu(result: EchoResult) -> float:
    """Return the µs of CPU of all processes per sent frame."""
    return sum(result.cpu_us.values())


def median(results: list[EchoResult], name: str) -> float | None:
    """Return the median of the rounds' p50 or p99 in ms; None when a round has none, because too many frames were lost."""
    values = [getattr(one.rtt_ms, name) for one in results]
    return None if not values or None in values else statistics.median(values)


def median_cpu(results: list[EchoResult]) -> float | None:
    """Return the median of the rounds' CPU per frame in µs."""
    return statistics.median(map(cpu, results)) if results else None


def judged(systems: list[Measured], absent: list[Absent], *, quick: bool) -> list[Figure]:
    """Return the figures of the product that have a target, with their baselines."""
    by_name = {one.name: one for one in systems}
    ours = by_name[OURS]
    found: list[Figure] = []
    for other in systems:
        mine, its = median_cpu(ours.side), median_cpu(other.side)
        if other is not ours and mine and its:
            found.append(_share(other.title, other.side[0].sessions, mine / its, judged=other.name == AGAINST))
    missing = {one.name: one.failed for one in systems if one.failed} | {one.name: one.error for one in absent}
    if AGAINST in missing and not any(one.key == SHARE_KEY for one in found):
        found.append(_not_there(missing[AGAINST]))
    relay = by_name.get(RELAY)
    at_many, beside_many = ours.at(MANY), relay.at(MANY) if relay else None
    if relay and at_many and beside_many:
        found.append(_share(relay.title, MANY, cpu(at_many) / cpu(beside_many)))
    found.append(
        Figure(
            area="peers",
            what=f"sessions of the product on one core with p99 ≤ {P99_LIMIT_MS:g} ms",
            key="peers.sessions",
            unit="",
            value=ours.held,
            target=None if quick else SESSIONS_TARGET,
            aim="at least",
        )
    )
    smooth = Figure(
        area="peers",
        what=f"sessions of the product on one core with p99 ≤ {SMOOTH_MS:g} ms and no frame lost",
        key="peers.smooth",
        unit="",
        value=ours.smooth,
        target=None if quick else SMOOTH_TARGET,
        aim="at least",
    )
    found.append(beside(smooth, relay.title, relay.smooth) if relay else smooth)
    if ours.handoffs is not None and ours.handoffs.ms:
        found.append(_handed_over(ours.handoffs, relay.handoffs if relay else None))
    return found


def _handed_over(mine: Handoffs, bare: Handoffs | None) -> Figure:
    """Return the product's handoff beside that of the bare SDK, which does the minimum for caller and model."""
    everything = mine.plain_kept + mine.unresumable_kept == mine.plain + mine.unresumable
    beside_it = statistics.median(bare.ms) if bare is not None and bare.ms else None
    figure = Figure(
        area="peers",
        what="handoff in the product, tool call → first audio of the next agent, raw, median",
        key="peers.handoff",
        unit="ms",
        value=statistics.median(mine.ms),
        target=None if beside_it is None else beside_it + HANDOFF_MORE_MS,
        note=f"{len(mine.ms)} calls, history kept in {'all' if everything else 'not all'}",
    )
    return beside(figure, "the bare SDK", beside_it)


def _share(title: str, sessions: int, value: float, *, judged: bool = False) -> Figure:
    return Figure(
        area="peers",
        what=f"CPU per frame, {sessions} sessions each, in those of {title}",
        key=SHARE_KEY if judged else "",
        unit="×",
        value=value,
        target=CPU_SHARE if judged else None,
    )


def _not_there(why: str) -> Figure:
    return Figure(
        area="peers",
        what=f"CPU per frame in those of {AGAINST.title()}",
        key=SHARE_KEY,
        unit="×",
        value=None,
        target=CPU_SHARE,
        note=f"it could not be measured: {why}",
    )
