"""Results of a run: one table with each figure and its baseline, as text or Markdown, and `results.json`.

Owns how a figure is judged and shown, not how it is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table

OUT: Final = Path(__file__).resolve().parent / "out"
RESULTS: Final = OUT / "results.json"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure. `value` is None when it could not be taken: `note` says why, and a target counts as missed."""

    area: str
    what: str
    unit: str
    value: float | None
    key: str = ""
    """Name by which a page quotes it; empty when only the whole table shows it."""

    baseline: float | None = None
    """Value of the baseline `beside`, in the same unit, taken in the same run with the same work."""

    beside: str = ""
    target: float | None = None
    aim: Literal["at most", "at least"] = "at most"
    raw: float | None = None
    """Value before `subtracted` was taken from it; None when nothing was subtracted."""

    subtracted: str = ""
    needs: str = ""
    """Warm or standby parts that the figure requires."""

    note: str = ""

    def __post_init__(self) -> None:
        if (self.baseline is not None) != bool(self.beside):
            raise ValueError(f"{self.what}: a baseline and the name of what it is a figure of belong together")
        if (self.raw is not None) != bool(self.subtracted):
            raise ValueError(f"{self.what}: a raw value and the name of what was subtracted belong together")

    @property
    def met(self) -> bool | None:
        """Verdict: True when the target was reached, None for a figure without a target."""
        if self.target is None:
            return None
        if self.value is None:
            return False
        return self.value <= self.target if self.aim == "at most" else self.value >= self.target


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run found."""

    taken_at: str
    quick: bool
    machine: dict[str, Any]
    load_before: float
    load_after: float
    noisy: list[str]
    figures: list[Figure]
    detail: dict[str, Any]
    """Details by area: curves, rungs, turns."""


def missed(results: Results) -> list[Figure]:
    """Return the figures whose target was not reached."""
    return [figure for figure in results.figures if figure.met is False]


def save(results: Results, path: Path = RESULTS) -> None:
    """Write `results.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def load(path: Path = RESULTS) -> Results:
    """Read `results.json`; raises `FileNotFoundError`, `msgspec.DecodeError`."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def rows(results: Results) -> list[tuple[str, str, str, str, str]]:
    """Return `(what, measured, beside it, target, reached)` for each figure."""
    return [(title(figure), measured(figure), stood_beside(figure), aimed(figure), reached(figure)) for figure in results.figures]


def title(figure: Figure) -> str:
    """Return the name of a figure with its requirements and its note."""
    about = "; ".join(part for part in (figure.needs and f"needs {figure.needs}", figure.note) if part)
    return f"{figure.what} ({about})" if about else figure.what


def measured(figure: Figure) -> str:
    """Return the value and, where something was subtracted, the raw value and the name of the subtrahend.

    A missed value is never rounded to its target."""
    said = shown(figure.value, figure.unit)
    if figure.value is not None and figure.met is False and said == shown(figure.target, figure.unit):
        said = f"{figure.value:,.5g} {figure.unit}".strip()
    return said if figure.raw is None else f"{said}; raw {shown(figure.raw, figure.unit)}, less {figure.subtracted}"


def beside(figure: Figure, name: str, value: float | None) -> Figure:
    """Return a figure with its baseline; without one when the baseline could not be taken."""
    return figure if value is None else msgspec.structs.replace(figure, baseline=value, beside=name)


def stood_beside(figure: Figure) -> str:
    """Return the baseline and its name."""
    return "" if figure.baseline is None else f"{shown(figure.baseline, figure.unit)} ({figure.beside})"


def aimed(figure: Figure) -> str:
    """Return the target."""
    return "" if figure.target is None else f"{'≤' if figure.aim == 'at most' else '≥'} {shown(figure.target, figure.unit)}"


def reached(figure: Figure) -> str:
    """Return `yes`, a highlighted miss, or an empty text without a target."""
    return {True: "yes", False: "**no**", None: ""}[figure.met]


def shown(value: float | None, unit: str) -> str:
    """Return a value in readable form."""
    if value is None:
        return "not measured"
    digits = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{digits} {unit}".strip()


HEADS: Final = ("what", "measured", "beside it", "target", "reached")


def as_markdown(results: Results) -> str:
    """Return the table and its circumstances, to be pasted into a page."""
    return "\n".join([*table(HEADS, rows(results)), "", circumstances(results)]) + "\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [[cell.replace("|", "/") for cell in row] for row in rows]
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(f"| {' | '.join(row)} |" for row in cells)]


def circumstances(results: Results) -> str:
    """Return the date, the machine and its load."""
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
