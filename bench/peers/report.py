"""Text form of the comparison: a table of the systems, the figures with targets, the settings, and the missing peers.

The figures are those of `results`; the page is that of `bench.pages`.
"""

from __future__ import annotations

import statistics
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.peers.results import P99_LIMIT_MS, Comparison, Measured, median, median_cpu
from bench.peers.systems import RELAY
from bench.report import HEADS, Figure, aimed, measured, reached, shown, stood_beside, table, title

SYSTEMS: Final = (
    "system",
    "round trip p50 / p99",
    "lost",
    "CPU a frame",
    "in the relay's",
    "sessions a core",
    "handoff",
    "history kept",
    "the same, resumable=false",
)


def missed(found: Comparison) -> list[Figure]:
    """Return the figures whose target was not reached."""
    return [figure for figure in found.figures if figure.met is False]


def system_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return one row of `SYSTEMS` for each system, and one for each that is missing."""
    relay = found.system(RELAY)
    base = median_cpu(relay.side) if relay else None
    rows = [_row(one, base) for one in found.systems]
    blank = ("",) * (len(SYSTEMS) - 2)
    return [*rows, *((f"{one.title} {one.version}", f"not measured: {one.error}", *blank) for one in found.absent)]


def _row(one: Measured, base: float | None) -> tuple[str, ...]:
    title = f"{one.title} {one.version}"
    own = median_cpu(one.side)
    trip = f"{shown(median(one.side, 'p50'), 'ms')} / {shown(median(one.side, 'p99'), 'ms')}" if one.side else "not measured"
    return (
        f"{title}; failed {one.failed}" if one.failed else title,
        trip,
        str(sum(result.lost for result in one.side)) if one.side else "",
        shown(own, "µs"),
        "" if own is None or base is None else f"{own / base:.2f} ×",
        held(one),
        handoffs(one),
        *kept(one),
    )


def held(one: Measured) -> str:
    """Return how many sessions a core carried, and why not more."""
    if not one.rungs:
        return "not measured"
    last = one.rungs[-1]
    if last.sessions <= one.held:
        return f"{one.held} (not tried above)"
    why = f"{last.lost / last.frames:.0%} lost" if last.rtt_ms.p99 is None else f"p99 {shown(last.rtt_ms.p99, 'ms')}"
    return f"{one.held} (at {last.sessions}: {why})"


def handoffs(one: Measured) -> str:
    """Return median, fastest and slowest, or why there are none."""
    done = one.handoffs
    if done is None or not done.ms:
        return "none" if one.no_handoff else "not measured"
    said = f"{shown(statistics.median(done.ms), 'ms')} ({min(done.ms):.1f}-{max(done.ms):.1f})"
    return said + (f", {len(done.failed)} failed" if done.failed else "")


def kept(one: Measured) -> tuple[str, str]:
    """Return in how many handoffs the next agent knew the history, and in how many of those with `resumable=false`."""
    done = one.handoffs
    if done is None or not done.ms:
        return "", ""
    return f"{done.plain_kept} of {done.plain}", f"{done.unresumable_kept} of {done.unresumable}"


def notes(found: Comparison) -> list[str]:
    """Return for each system its versions, its settings, and why it has no handoff."""
    return [
        f"{one.title} {one.version}, Python {one.python}, google-genai {one.sdk}: {one.settings}."
        + (f" No handoff: {one.no_handoff}." if one.no_handoff else "")
        for one in found.systems
    ]


def figure_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return one row of `HEADS` for each figure."""
    return [
        (
            title(figure),
            measured(figure),
            stood_beside(figure),
            aimed(figure),
            reached(figure),
        )
        for figure in found.figures
    ]


def as_markdown(found: Comparison) -> str:
    """Return the tables and their circumstances, to be pasted into a page."""
    lines = [
        f"Side by side with {found.sessions} sessions each; sessions a core: the most with p99 ≤ {P99_LIMIT_MS:g} ms.",
        "",
        *table(SYSTEMS, system_rows(found)),
        "",
        *table(HEADS, figure_rows(found)),
        "",
        *(f"- {note}" for note in notes(found)),
        "",
        circumstances(found),
    ]
    return "\n".join(lines) + "\n"


def circumstances(found: Comparison) -> str:
    """Return the date, the machine and its load."""
    machine = found.machine
    said = (
        f"{found.taken_at[:10]}, {machine.get('cores')} cores ({machine.get('cpu')}), {machine.get('memory_gib')} GiB, "
        f"{machine.get('system')}; load average {found.load_before:.2f} before and {found.load_after:.2f} after. "
    )
    said += (
        "Each system on one core, the stand-in and the load on the others."
        if found.one_core
        else "One core for everything, the stand-in and the load too."
    )
    if found.quick:
        said += " A quick run: shorter, and rougher."
    if found.noisy:
        said += f" Noisy, not to be quoted: {'; '.join(found.noisy)}."
    return said


def show(found: Comparison, console: Console) -> None:
    """Print the tables."""
    systems = Table(*SYSTEMS, title=f"Beside its peers, {found.sessions} sessions each")
    for row in system_rows(found):
        systems.add_row(*row)
    judged = Table(*HEADS)
    for row, figure in zip(figure_rows(found), found.figures, strict=True):
        judged.add_row(*row, style={True: "green", False: "red", None: ""}[figure.met])
    console.print(systems)
    console.print(judged)
    for note in notes(found):
        console.print(f"- {note}", style="dim")
    console.print(circumstances(found))
