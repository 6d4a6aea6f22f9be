"""The results: one table beside the baseline, as text or Markdown, and `results.json`.

Owns how a figure is judged and shown. Does not own how it is taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table

OUT: Final = Path(__file__).resolve().parent / "out"
RESULTS: Final = OUT / "results.json"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure. `value` is nothing when it could not be taken: `note` says why, and a target counts as missed."""

    area: str
    what: str
    unit: str
    value: float | None
    baseline: float | None = None
    """The same of the bare echo, in the same unit, where there is one."""
    target: float | None = None
    aim: Literal["at most", "at least"] = "at most"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; nothing for a figure without one."""
        if self.target is None:
            return None
        if self.value is None:
            return False
        return self.value <= self.target if self.aim == "at most" else self.value >= self.target


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run found."""

    taken_at: str
    quick: bool
    machine: dict[str, Any]
    load_before: float
    load_after: float
    noisy: list[str]
    figures: list[Figure]
    detail: dict[str, Any]
    """By area: curves, rungs, turns."""


def missed(results: Results) -> list[Figure]:
    """The figures whose target was not reached."""
    return [figure for figure in results.figures if figure.met is False]


def save(results: Results, path: Path = RESULTS) -> None:
    """Write `results.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def load(path: Path = RESULTS) -> Results:
    """Read `results.json`; raises `FileNotFoundError`, `msgspec.DecodeError`."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def rows(results: Results) -> list[tuple[str, str, str, str, str]]:
    """`(what, measured, bare echo, target, reached)` of each figure."""
    return [
        (
            figure.what + (f" ({figure.note})" if figure.note else ""),
            shown(figure.value, figure.unit),
            "" if figure.baseline is None else shown(figure.baseline, figure.unit),
            "" if figure.target is None else f"{'≤' if figure.aim == 'at most' else '≥'} {shown(figure.target, figure.unit)}",
            {True: "yes", False: "no", None: ""}[figure.met],
        )
        for figure in results.figures
    ]


def shown(value: float | None, unit: str) -> str:
    """A value as people read it."""
    if value is None:
        return "not measured"
    digits = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{digits} {unit}".strip()


HEADS: Final = ("what", "measured", "bare echo", "target", "reached")


def as_markdown(results: Results) -> str:
    """The table and its circumstances, to be pasted into a page."""
    lines = [f"| {' | '.join(HEADS)} |", "|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows(results)), ""]
    lines.append(circumstances(results))
    return "\n".join(lines) + "\n"


def circumstances(results: Results) -> str:
    """When, on what, and how quiet it was."""
    machine = results.machine
    said = (
        f"{results.taken_at[:10]}, {machine.get('cores')} cores ({machine.get('cpu')}), {machine.get('memory_gib')} GiB, "
        f"{machine.get('system')}, Python {machine.get('python')}, nats-server {machine.get('nats-server')}; "
        f"load average {results.load_before:.2f} before and {results.load_after:.2f} after."
    )
    if results.quick:
        said += " A quick run: shorter, and rougher."
    if results.noisy:
        said += f" Noisy, not to be quoted: {'; '.join(results.noisy)}."
    return said


def show(results: Results, console: Console) -> None:
    """Print the table."""
    table = Table(*HEADS, title="Voxbridge, measured")
    for row, figure in zip(rows(results), results.figures, strict=True):
        table.add_row(*row, style={True: "green", False: "red", None: ""}[figure.met])
    console.print(table)
    console.print(circumstances(results))
