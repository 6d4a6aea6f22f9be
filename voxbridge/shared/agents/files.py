"""The agents of an installation, read again when their files change.

Owns when the folder is read. Does not own the form of the files (`voxbridge.shared.agents.reading`). A crash loses nothing, since
everything is in the files.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from voxbridge.shared.agents.model import Roster
from voxbridge.shared.agents.reading import AGENTS_LIMIT, PIPELINES_LIMIT, AgentsRefused, entries, load
from voxbridge.shared.agents.yaml_file import Problem

SCAN_EVERY_S: Final = 1.0
_log = logging.getLogger(__name__)


class Agents:
    """Roster of a folder for new sessions, read again when a file was added, removed or changed. Reading blocks for some ms.

    While the files are wrong, or the folder is gone, the last good roster stays; `problems` says what is wrong."""

    def __init__(self, folder: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._monotonic = monotonic
        self._looked: float | None = None
        self._mark: tuple[object, ...] | None = None
        self._roster = Roster()
        self.problems: tuple[Problem, ...] = ()

    def current(self) -> Roster:
        """Return the roster as the files are now, or were less than `SCAN_EVERY_S` ago."""
        now = self._monotonic()
        if self._looked is None or now - self._looked >= SCAN_EVERY_S:
            self._looked = now
            mark = _mark(self._folder)
            if mark != self._mark:
                self._read(mark)
        return self._roster

    def _read(self, mark: tuple[object, ...]) -> None:
        self._mark = mark
        if self._roster.agents and (str(self._folder), errno.ENOENT) in mark:
            self.problems = (Problem(str(self._folder), 0, "", "The folder is gone."),)
        else:
            try:
                self._roster, self.problems = load(self._folder), ()
            except AgentsRefused as refused:
                self.problems = refused.problems
        if self.problems:
            _log.error("The agents stay as they were: %s", "; ".join(map(str, self.problems)))
        else:
            _log.info("%s: %d agents, %d pipelines", self._folder, len(self._roster.agents), len(self._roster.pipelines))


def _mark(folder: Path) -> tuple[object, ...]:
    """Return a value that changes when a file is added, removed or changed."""
    marks: list[object] = []
    for place, limit in ((folder, AGENTS_LIMIT), (folder / "pipelines", PIPELINES_LIMIT)):
        try:
            marks += [_stamp(path) for path in entries(place, limit)]
        except OSError as error:
            marks.append((str(place), error.errno))
    return tuple(marks)


def _stamp(path: Path) -> tuple[object, ...]:
    try:
        state = path.stat()
    except OSError as error:
        return (str(path), error.errno)
    return (str(path), state.st_ino, state.st_mtime_ns, state.st_size)
