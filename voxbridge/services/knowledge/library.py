"""The graphs of all accounts, each in files of its own below `<folder>/<account>/`.

Owns which files there are and who may use them at a time: one process holds the folder (`Library.take`), and in it one thread at a time
uses a graph. Open graphs are kept, `OPEN_LIMIT` of them. Everything blocks. A crash loses what was not yet answered, and nothing else.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from voxbridge.services.knowledge.analytics import analysed
from voxbridge.services.knowledge.core.entities import KINDS
from voxbridge.services.knowledge.core.ranking import merged
from voxbridge.services.knowledge.core.reading import told
from voxbridge.services.knowledge.replaying import differences, document, remove
from voxbridge.services.knowledge.searching import NAMED, Hits, OpenGraph, nodes_of
from voxbridge.services.knowledge.store.graph_file import GraphFile, Kept, Reading
from voxbridge.services.knowledge.store.vectors import Embedder, Floats, Vectors
from voxbridge.services.knowledge.store.words import Words
from voxbridge.shared import knowledge
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError

OPEN_LIMIT: Final = 64
"""Graphs that are kept open."""

GRAPHS_LIMIT: Final = 64
"""Graphs of an account."""

BY_WORDS: Final = "words"
BY_BOTH: Final = "words and meanings"
STEPS: Final = 4
"""Batches of vectors that an ingest makes before it answers; the rest is made when nothing is asked."""

_log = logging.getLogger(__name__)


class Library:
    """The graphs below a folder."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        self._folder = folder
        self._embedder = embedder
        self._lock = threading.Lock()
        self._open: OrderedDict[Path, OpenGraph] = OrderedDict()
        self._held: int | None = None
        self._model = ""

    def take(self) -> None:
        """Hold the folder, so that no other process writes there. Raises `UNAVAILABLE` where one does, or the folder cannot be made."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise VoxbridgeError(
                Code.UNAVAILABLE, f"The folder of the graphs, {self._folder}, cannot be used: {error.strerror}."
            ) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise VoxbridgeError(Code.UNAVAILABLE, f"Another process holds the folder of the graphs, {self._folder}.") from error
        self._held = held

    def close(self) -> None:
        """Close all graphs, and hold the folder no longer."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def __len__(self) -> int:
        return len(self._open)

    # --- questions ---

    def graphs(self, asked: knowledge.ListGraphs) -> knowledge.Graphs:
        """List the graphs of an account."""
        return knowledge.Graphs(graphs=tuple(self._told(asked.account, name) for name in self._names(asked.account)), by=self._by())

    def ingest(self, asked: knowledge.Ingest) -> knowledge.Ingested:
        """Put a document into a graph. Raises `TOO_LARGE` beyond a limit, `INVALID_ARGUMENT` for a text without words."""
        size = len(asked.text.encode(errors="surrogatepass"))
        if size > knowledge.TEXT_LIMIT:
            message = f"A document has at most {knowledge.TEXT_LIMIT} bytes of text; {asked.title} has {size}. Divide it."
            raise VoxbridgeError(Code.TOO_LARGE, message, field="source", limit=knowledge.TEXT_LIMIT)
        text = _plain(asked.text)
        taken = document(_plain(asked.source), _plain(asked.title), text, asked.at, common_words())
        if not taken.pieces:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{asked.title or asked.source} has no text.", field="source")
        with self._using(asked.account, asked.graph, make=True) as graph:
            changed = graph.file.put(taken)
            graph.words.up_to_date(graph.file)
            self._follow(graph, STEPS)
            total = graph.file.size()
            return knowledge.Ingested(
                graph=graph.name, source=taken.source, changed=changed, digest=taken.digest, passages=len(taken.pieces), total=total
            )

    def search(self, asked: knowledge.Search) -> knowledge.Found:
        """Search graphs; one that cannot be searched is left out, unless it is the only one. Raises `NOT_FOUND` for an unknown graph."""
        if asked.kind and asked.kind not in KINDS:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"There are no entities of that kind; there are: {', '.join(KINDS)}.", field="node_type"
            )
        names = [self._found(asked.account, name) for name in asked.graphs] or self._names(asked.account)
        model, question = self._question(asked.query)
        hits = Hits()
        nodes: list[knowledge.Node] = []
        left_out: dict[str, str] = {}
        for name in names:
            try:
                with self._using(asked.account, name) as graph:
                    graph.words.up_to_date(graph.file)
                    hits.take(graph, asked.query, question if graph.vectors.of(model, graph.file) else None)
                    nodes += nodes_of(graph, asked) if asked.nodes else []
            except VoxbridgeError as error:
                if len(names) == 1:
                    raise
                left_out[name] = error.message
        nodes.sort(key=lambda one: -one.passages)
        best = list(merged(hits.words, hits.near).items())[: asked.count]
        by = f"{BY_BOTH} ({model})" if hits.near else BY_WORDS
        return knowledge.Found(
            passages=tuple(hits.passage(key, score) for key, score in best), nodes=tuple(nodes[: asked.count]), by=by, left_out=left_out
        )

    def analytics(self, asked: knowledge.Analyse) -> knowledge.Analytics:
        """Return the figures of a graph, computed again only after it changed. Raises `NOT_FOUND` for an unknown graph."""
        with self._using(asked.account, self._found(asked.account, asked.graph)) as graph:
            counts = graph.file.counts()
            if graph.analytics is None or graph.analytics.version != counts.version:
                graph.analytics = analysed(graph.name, counts, graph.file.every_entity(), graph.file.every_relation())
            return graph.analytics

    def forget(self, asked: knowledge.Forget) -> knowledge.Forgotten:
        """Remove the files of a graph, or of all graphs of an account."""
        names = [asked.graph] if asked.graph else self._names(asked.account)
        gone = 0
        for name in names:
            path = self._path(asked.account, name)
            if path.exists():
                self._remove(path)
                gone += 1
        if not asked.graph:
            with suppress(OSError):
                self._of(asked.account).rmdir()
        return knowledge.Forgotten(graphs=gone)

    def rebuild(self, asked: knowledge.Rebuild) -> knowledge.Rebuilt:
        """Make the indexes of an account's graphs again from their files."""
        names = self._names(asked.account)
        for name in names:
            with self._using(asked.account, name) as graph:
                graph.words.rebuild(graph.file)
                graph.vectors.clear()
                while not self._follow(graph, STEPS):
                    pass
        return knowledge.Rebuilt(graphs=len(names))

    def replay(self, asked: knowledge.Replay) -> knowledge.Replayed:
        """Make the account's graphs again from their documents, and tell the differences."""
        names = self._names(asked.account)
        found: list[str] = []
        documents = readings = 0
        for name in names:
            with self._using(asked.account, name) as graph:
                found += [f"{name}: {one}" for one in differences(graph.file, common_words())]
                documents += graph.file.counts().documents
                readings += graph.file.readings()
        return knowledge.Replayed(graphs=len(names), documents=documents, readings=readings, differences=tuple(found))

    # --- in the background ---

    def unread(self, limit: int) -> tuple[Path, Kept] | None:
        """Return a passage that a model is to read, and the file of its graph; None where each graph has `limit` that were read, or all."""
        for path in self._every():
            with suppress(VoxbridgeError), self._using_file(path) as graph:
                if graph.file.readings() < limit and (found := graph.file.unread(1)):
                    return path, found[0]
        return None

    def read(self, path: Path, kept: Kept, reading: Reading) -> bool:
        """Add what a model said about a passage. Return false where it is not there any more."""
        with self._using_file(path) as graph:
            return graph.file.read(kept.source, kept.place, reading, told(reading.answer, kept.text))

    def catch_up(self) -> bool:
        """Make a batch of the vectors that graphs lack. Return whether more are to be made now."""
        for path in self._every() if self._embedder is not None else ():
            with suppress(VoxbridgeError), self._using_file(path) as graph:
                if graph.vectors.behind(graph.file):
                    if not self._follow(graph, 1):
                        return True
                    if graph.vectors.behind(graph.file):  # none can be had now
                        return False
        return False

    def _every(self) -> list[Path]:
        """Return the files of all graphs of all accounts."""
        return sorted(self._folder.glob("*/*.sqlite"))

    def _follow(self, graph: OpenGraph, steps: int) -> bool:
        """Make vectors that a graph lacks. Return true where all are there, or none can be had: then words find what has none."""
        if self._embedder is None:
            return True
        try:
            return graph.vectors.follow(graph.file, self._embedder, steps)
        except VoxbridgeError as error:
            _log.info("%s", error.message)
            return True

    def _question(self, query: str) -> tuple[str, Floats | None]:
        if self._embedder is None:
            return "", None
        try:
            model, rows = self._embedder.embed([query])
        except VoxbridgeError:
            return "", None
        self._model = model
        return model, rows[0]

    def _by(self) -> str:
        return BY_WORDS if self._question("a question")[1] is None else f"{BY_BOTH} ({self._model})"

    # --- files ---

    def _of(self, account: str) -> Path:
        return self._folder / subjects.account_log(account)[1:]

    def _path(self, account: str, name: str) -> Path:
        return self._of(account) / f"{slug(name)}.sqlite"

    def _names(self, account: str) -> list[str]:
        folder = self._of(account)
        return sorted(path.stem for path in folder.glob("*.sqlite")) if folder.is_dir() else []

    def _found(self, account: str, name: str) -> str:
        names = self._names(account)
        wanted = slug(name)
        if wanted in names:
            return wanted
        there = f"There are: {', '.join(names)}." if names else "There are none yet."
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no knowledge graph {name[: knowledge.NAME_LIMIT]}. {there}", field="database")

    def _told(self, account: str, name: str) -> knowledge.Graph:
        with self._using(account, name) as graph:
            counts = graph.file.counts()
            return knowledge.Graph(
                name=name,
                documents=counts.documents,
                passages=counts.passages,
                entities=counts.entities,
                relations=counts.relations,
                changed=counts.changed,
            )

    @contextmanager
    def _using(self, account: str, name: str, *, make: bool = False) -> Iterator[OpenGraph]:
        path = self._path(account, name)
        with self._lock:
            names = self._names(account)
            if path.stem not in names and not make:
                self._found(account, name)
            if path.stem not in names and len(names) >= GRAPHS_LIMIT:
                message = f"An account has at most {GRAPHS_LIMIT} knowledge graphs. Put it into one that is there."
                raise VoxbridgeError(Code.TOO_LARGE, message, field="database", limit=GRAPHS_LIMIT)
            graph = self._opened(path)
        with self._held_by(graph):
            yield graph

    @contextmanager
    def _using_file(self, path: Path) -> Iterator[OpenGraph]:
        with self._lock:
            if not path.exists():
                raise VoxbridgeError(Code.NOT_FOUND, f"There is no knowledge graph {path.stem}.")
            graph = self._opened(path)
        with self._held_by(graph):
            yield graph

    @contextmanager
    def _held_by(self, graph: OpenGraph) -> Iterator[None]:
        try:
            with graph.lock:
                yield
        finally:
            with self._lock:
                graph.users -= 1

    def _opened(self, path: Path) -> OpenGraph:
        graph = self._open.get(path)
        if graph is None:
            beside = Words(path.with_suffix(".words")), Vectors(path.with_suffix(".vectors"))
            graph = self._open[path] = OpenGraph(path.stem, GraphFile(path), *beside)
            self._close_unused()
        self._open.move_to_end(path)
        graph.users += 1
        return graph

    def _close_unused(self) -> None:
        for path, graph in list(self._open.items())[: max(0, len(self._open) - OPEN_LIMIT)]:
            if not graph.users:
                del self._open[path]
                graph.close()

    def _remove(self, path: Path) -> None:
        with self._lock:
            graph = self._open.pop(path, None)
            if graph is not None:
                graph.close()
            remove(path)
            remove(path.with_suffix(".replay"))
            for suffix in (".words", ".vectors"):
                shutil.rmtree(path.with_suffix(suffix), ignore_errors=True)


def slug(name: str) -> str:
    """Return the name of a graph as its file has it. Raises `INVALID_ARGUMENT` for a name without letters or digits."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    found = "-".join(NAMED.findall(plain))[: knowledge.NAME_LIMIT].strip("-")
    if not found:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The name of a knowledge graph has letters or digits.", field="database")
    return found


def _plain(text: str) -> str:
    """Return a text as Unicode that can be stored and shown, its lines ended by newlines."""
    normal = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n"))
    hidden = {letter for letter in set(normal) - set("\n\t") if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co")}
    return normal.translate(dict.fromkeys(map(ord, hidden)))


@cache
def common_words() -> frozenset[str]:
    """Return the words that are no names though a sentence begins with them."""
    return frozenset(resources.files(__package__).joinpath("common_words.txt").read_text("ascii").split())
