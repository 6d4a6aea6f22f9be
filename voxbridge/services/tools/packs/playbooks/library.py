"""The playbooks of a folder, read again when a file changed.

Owns the index in memory. Does not own how a section is found in it. A crash loses nothing: the files are the truth.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import Final

from voxbridge.services.tools.packs.playbooks.ranking import Ranking
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.sections import Section, sections
from voxbridge.shared.workspace import Place, Workspace

FILES_LIMIT: Final = 500
"""Playbooks of a folder."""

FILE_LIMIT: Final = 256 * 1024
"""Bytes of a playbook."""

SECTIONS_LIMIT: Final = 10_000
"""Sections of all playbooks; those of later files are left out."""

_Signature = tuple[tuple[str, int, int, int], ...]


class Library:
    """The playbooks of a folder. One thread at a time reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = Workspace([folder])
        self._lock = threading.Lock()
        self._signature: _Signature | None = None
        self._sections: list[Section] = []
        self._ranking = Ranking([])
        self.left_out = 0

    def search(self, question: str, count: int) -> list[tuple[Section, float]]:
        """Return the sections that fit a question, the best first. Raises `NOT_FOUND` where there are no playbooks. Blocks."""
        with self._lock:
            self._refresh()
            return [(self._sections[index], score) for index, score in self._ranking.best(question, count)]

    def __len__(self) -> int:
        return len(self._sections)

    def _refresh(self) -> None:
        places = self._folder.listing(suffixes=(".md", ".markdown")).places
        signature = tuple(_seen(place) for place in places[:FILES_LIMIT])
        if signature != self._signature:
            self._read(places)
            self._signature = signature
        if not self._sections:
            message = f"There are no playbooks. Put Markdown files into {self._folder.roots[0]} (VOXBRIDGE_PLAYBOOKS_DIR)."
            raise VoxbridgeError(Code.NOT_FOUND, message)

    def _read(self, places: tuple[Place, ...]) -> None:
        found: list[Section] = []
        self.left_out = max(0, len(places) - FILES_LIMIT)
        for place in places[:FILES_LIMIT]:
            try:
                text = self._folder.read_text(place, limit=FILE_LIMIT)
            except VoxbridgeError:  # too large, no UTF-8, or gone since it was listed
                self.left_out += 1
                continue
            found += sections(place.name, text)
        self._sections = found[:SECTIONS_LIMIT]
        self._ranking = Ranking([(one.headings[-1], " ".join((*one.headings[:-1], one.text))) for one in self._sections])


@lru_cache(maxsize=4)
def library(folder: Path) -> Library:
    """Return the playbooks of a folder, which all calls share."""
    return Library(folder)


def _seen(place: Place) -> tuple[str, int, int, int]:
    try:
        seen = place.path.lstat()
    except OSError:
        return place.name, 0, 0, 0
    return place.name, seen.st_mtime_ns, seen.st_size, seen.st_ino
