"""Searching graphs: what is found in each by words and by meaning, and the entities of a question.

Owns an open graph and what a search takes from it. Does not own the order (`core.ranking`) nor which graphs are searched (`library`).
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Final

from voxbridge.services.knowledge.store.graph_file import GraphFile, Kept
from voxbridge.services.knowledge.store.vectors import Floats, Vectors
from voxbridge.services.knowledge.store.words import Words
from voxbridge.shared import knowledge

CANDIDATES: Final = 50
"""Passages that are taken by words, and by meaning, before they are merged."""

RELATED: Final = 5
NAMED: Final = re.compile(r"[^\W_]+")


@dataclass(eq=False)
class OpenGraph:
    """An open graph, and the lock that its user holds."""

    name: str
    file: GraphFile
    words: Words
    vectors: Vectors
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    analytics: knowledge.Analytics | None = None

    def close(self) -> None:
        """Close its file, once nobody uses it."""
        with self.lock:
            self.file.close()


class Hits:
    """Passages that were found in several graphs, by graph and id."""

    def __init__(self) -> None:
        self.words: dict[tuple[str, int], float] = {}
        self.near: dict[tuple[str, int], float] = {}
        self._kept: dict[tuple[str, int], Kept] = {}

    def take(self, graph: OpenGraph, query: str, question: Floats | None) -> None:
        """Search a graph; without the vector of the question by words alone."""
        words = dict(graph.words.find(query, CANDIDATES))
        near = {} if question is None else graph.vectors.near(question, CANDIDATES, words)
        self._kept |= {(graph.name, kept.id): kept for kept in graph.file.passages(list({**words, **near}))}
        self.words |= {(graph.name, number): score for number, score in words.items()}
        self.near |= {(graph.name, number): score for number, score in near.items() if (graph.name, number) in self._kept}

    def passage(self, key: tuple[str, int], score: float) -> knowledge.Passage:
        """Return a passage that was found."""
        return _passage(key[0], self._kept[key], score)


def _passage(graph: str, kept: Kept, score: float) -> knowledge.Passage:
    return knowledge.Passage(
        graph=graph, source=kept.source, title=kept.title, headings=kept.headings, line=kept.line, text=kept.text, score=round(score, 4)
    )


def nodes_of(graph: OpenGraph, asked: knowledge.Search) -> list[knowledge.Node]:
    """Return the entities of a graph that a question names."""
    words = NAMED.findall(asked.query)[:8]
    found = graph.file.entities(words, asked.kind or None, asked.count)
    return [
        knowledge.Node(
            graph=graph.name,
            kind=entity.kind,
            name=entity.name,
            passages=count,
            related=tuple(other.name for other, _ in graph.file.related(number, RELATED)),
            told_by=told_by,
        )
        for number, entity, count, told_by in found
    ]
