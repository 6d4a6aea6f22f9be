"""Progress of fetching weights: a bar on a terminal, a line per tenth of a large file elsewhere, a number for `/readyz`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn

LINES: Final = 10
SMALL_BYTES: Final = 16 << 20
"""Bytes below which a file gets no progress lines where there is no terminal."""


class ConsoleProgress:
    """Progress on a console; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: TaskID | None = None
        self._label, self._total, self._done, self._next = "", 0, 0, 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def begin(self, label: str, total: int) -> None:
        """Begin a file of `total` bytes."""
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(label, total=total)
        self._label, self._total, self._done, self._next = label, total, 0, total // LINES

    def advance(self, count: int) -> None:
        """Add `count` bytes to the current file."""
        self._done += count
        if self._task is not None:
            self._bars.advance(self._task, count)
        if not self._console.is_terminal and self._total >= SMALL_BYTES and self._done >= self._next:
            self._console.print(
                f"{self._label}: {100 * self._done // self._total} % of {self._total / 1e6:,.0f} MB", highlight=False, soft_wrap=True
            )
            self._next = self._done + self._total // LINES

    def note(self, text: str) -> None:
        """Print an event."""
        self._console.print(text, highlight=False, soft_wrap=True)


class CountingProgress:
    """Progress as figures to be queried; notes go to a log function."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.label, self.total, self.done = "", 0, 0
        self._say = say

    def begin(self, label: str, total: int) -> None:
        """Begin a file of `total` bytes."""
        self.label, self.total, self.done = label, total, 0

    def advance(self, count: int) -> None:
        """Add `count` bytes to the current file."""
        self.done += count

    def note(self, text: str) -> None:
        """Log an event."""
        self._say(text)

    @property
    def percent(self) -> int:
        """Whole percents of the current file."""
        return 100 * self.done // self.total if self.total else 0
