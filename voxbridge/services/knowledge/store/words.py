"""The index of a graph's words: BM25 by tantivy over headings and text, in a folder beside the graph's file.

Owns what is indexed and how a question is asked. Does not own the passages: the index is made from the graph's file, notes the version that
it has seen, and is brought up to date before it is asked; one that is lost, or was written by another release, is made again. Everything
blocks; one thread at a time may write.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import tantivy

from voxbridge.services.knowledge.store.graph_file import GraphFile
from voxbridge.shared.errors import Code, VoxbridgeError

FORMAT: Final = 1
HEAP_BYTES: Final = 30_000_000
"""Memory of the writer, while it writes."""

HEADING_BOOST: Final = 2.0
QUERY_LIMIT: Final = 1_000
"""Characters of a question."""

_ANALYZER: Final = "english"
_SEEN: Final = "seen.json"


class Words:
    """The index of one graph."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: tantivy.Index | None = None
        self._seen = -1

    def up_to_date(self, graph: GraphFile) -> None:
        """Take what changed in the graph since the index was written. Raises `UNAVAILABLE` where the disk does not take it."""
        index = self._index or self._open(graph)
        if self._seen == graph.version():
            return
        try:
            self._seen = self._follow(index, graph)
        except (ValueError, OSError) as error:
            self._index = None
            message = f"The index of the graph {graph.path.stem} cannot be written now: {error}."
            raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=True) from error

    def rebuild(self, graph: GraphFile) -> None:
        """Make the index again from nothing."""
        self._index = None
        shutil.rmtree(self._folder, ignore_errors=True)
        self.up_to_date(graph)

    def find(self, question: str, count: int) -> list[tuple[int, float]]:
        """Return the ids of the passages that fit a question best, the best first, with their scores. Any text is a question."""
        if self._index is None:
            return []
        asked = _asked(question)
        if not asked:
            return []
        query, _ = self._index.parse_query_lenient(asked, ["headings", "text"], field_boosts={"headings": HEADING_BOOST})
        searcher = self._index.searcher()
        hits = searcher.search(query, count).hits
        return [(int(searcher.doc(address)["id"][0]), float(score)) for score, address in hits]

    def _open(self, graph: GraphFile) -> tantivy.Index:
        seen = self._noted(graph)
        if seen < 0:
            shutil.rmtree(self._folder, ignore_errors=True)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            index = self._made()
        except (ValueError, OSError):  # it is broken: made again from the graph
            shutil.rmtree(self._folder, ignore_errors=True)
            seen = -1
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            index = self._made()
        self._index, self._seen = index, seen
        return index

    def _made(self) -> tantivy.Index:
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("id", stored=True, indexed=True)
        for name in ("headings", "text"):
            schema.add_text_field(name, stored=False, tokenizer_name=_ANALYZER)
        index = tantivy.Index(schema.build(), path=str(self._folder))
        index.register_tokenizer(_ANALYZER, _analyzer())
        return index

    def _noted(self, graph: GraphFile) -> int:
        """Return the version that the index on the disk has seen; -1 where there is none that can be used."""
        try:
            noted = json.loads((self._folder / _SEEN).read_bytes())
            seen = int(noted["version"]) if noted["format"] == FORMAT else -1
        except (OSError, ValueError, KeyError, TypeError):
            return -1
        return seen if seen <= graph.version() else -1  # the graph's file was put back from a copy

    def _follow(self, index: tantivy.Index, graph: GraphFile) -> int:
        version = graph.version()
        removed, added = graph.removed_since(self._seen), graph.added_since(self._seen)
        writer = index.writer(HEAP_BYTES, 1)
        try:
            # A crash before the note below has both done again, so what is added is removed first.
            for passage in removed:
                writer.delete_documents_by_query(tantivy.Query.term_query(index.schema, "id", passage))
            for kept in added:
                if self._seen >= 0:
                    writer.delete_documents_by_query(tantivy.Query.term_query(index.schema, "id", kept.id))
                headings = " ".join((kept.title, *kept.headings))
                document = tantivy.Document(headings=headings, text=kept.text)
                document.add_unsigned("id", kept.id)
                writer.add_document(document)
            writer.commit()
        finally:
            writer.wait_merging_threads()
        index.reload()
        note = self._folder / f"{_SEEN}.new"
        note.write_text(json.dumps({"format": FORMAT, "version": version}))
        note.replace(self._folder / _SEEN)
        return version


def _analyzer() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for part in (
        tantivy.Filter.remove_long(80),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(part)
    return builder.build()


def _asked(question: str) -> str:
    """Return the words of a question alone: what a query language gives a meaning to counts as a space."""
    plain = "".join(letter if letter.isalnum() else " " for letter in question[:QUERY_LIMIT])
    return " ".join(word.lower() for word in plain.split())  # in capitals, AND and NOT would be operators
