"""Replay of a graph: its documents, and what models said, are given to the current rules, and what comes out is compared with the file.

Owns the comparison. Does not own the rules (`core`). Writes a second file beside the graph's, which is removed again; a crash leaves it,
and the next replay removes it. Blocks: as long as it took to take the documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

from voxbridge.services.knowledge.core.documents import pieces
from voxbridge.services.knowledge.core.reading import told
from voxbridge.services.knowledge.store.graph_file import Document, GraphFile

SHOWN: Final = 10
"""Differences of a graph that are told."""

_WIDTH: Final = 160
ENDINGS: Final = ("", "-wal", "-shm")


def document(source: str, title: str, text: str, at: int, common: Collection[str]) -> Document:
    """Return a document with what the rules make of it; without pieces where its text has no word."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Document(source=source, title=title, text=text, digest=digest, added=at, pieces=pieces(title or source, text, common))


def differences(graph: GraphFile, common: Collection[str]) -> list[str]:
    """Return the differences between a graph and what is made of its documents now, in words; empty without any. Raises `UNAVAILABLE`."""
    path = graph.path.with_suffix(".replay")
    remove(path)
    try:
        fresh = GraphFile(path)
        try:
            for source, title, text, at in graph.sources():
                fresh.put(document(source, title, text, at, common))
            for source, place, text, reading in graph.told():
                fresh.read(source, place, reading, told(reading.answer, text))
            return list(_compared(graph, fresh))
        finally:
            fresh.close()
    finally:
        remove(path)


def remove(path: Path) -> None:
    """Remove a file of SQLite with what stands beside it."""
    for ending in ENDINGS:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _compared(graph: GraphFile, fresh: GraphFile) -> Iterator[str]:
    shown = 0
    for kept, made in zip_longest(graph.made(), fresh.made()):
        if kept != made:
            yield f"{_words(kept)} is kept, {_words(made)} is made"
            shown += 1
            if shown == SHOWN:
                return


def _words(row: tuple[str, ...] | None) -> str:
    return "nothing" if row is None else " · ".join(row)[:_WIDTH].replace("\n", " ")
