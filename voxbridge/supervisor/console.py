"""Console of `voxbridge up`: plain lines anywhere, and below them a compact live status on a terminal.

Owns the look. Does not own what happened. Lines go to standard output, so a file of them reads as a history.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from voxbridge.supervisor.readiness import Phase, Whole

_MARKS: Final = {
    Phase.WAITING: ("·", "dim"),
    Phase.STARTING: ("◌", "yellow"),
    Phase.CHECKING: ("◌", "yellow"),
    Phase.READY: ("●", "green"),
    Phase.CRASHED: ("✗", "red"),
    Phase.LOOPING: ("✗", "bold red"),
    Phase.STOPPING: ("◌", "dim"),
    Phase.STOPPED: ("·", "dim"),
}


class Board:
    """Console that prints lines, and keeps the table of processes below them while standard output is a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True) if self._console.is_terminal else None
        self._shown: Whole | None = None

    def line(self, text: str) -> None:
        """Print a line that stays; control characters of a child's output are replaced by spaces."""
        clean = "".join(c if c.isprintable() else " " for c in text)
        style = "bold green" if clean.startswith("Voxbridge is ready") else None
        self._console.print(clean, style=style, markup=False, soft_wrap=True)

    def show(self, whole: Whole) -> None:
        """Redraw the table when it changed."""
        if self._live is not None and whole != self._shown:
            self._shown = whole
            self._live.update(table(whole), refresh=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()


def table(whole: Whole) -> Table:
    """Return one row per process: state, name, process number, restarts, and what is wrong."""
    grid = Table.grid(padding=(0, 2))
    for name, part in whole.parts.items():
        mark, style = _MARKS[part.phase]
        restarts = f"restarted {part.restarts} ×" if part.restarts else ""
        state = (Text(f"{mark} {name}", style), Text(part.phase, style))
        grid.add_row(*state, str(part.pid or ""), restarts, Text(part.detail[:80]))
    return grid
