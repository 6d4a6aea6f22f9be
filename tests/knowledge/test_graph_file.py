"""The file of a graph and the index of its words: one transaction a document, made again from nothing, killed while writing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxbridge.services.knowledge.analytics import analysed
from voxbridge.services.knowledge.replaying import document as made
from voxbridge.services.knowledge.store import graph_file
from voxbridge.services.knowledge.store.graph_file import Document, GraphFile
from voxbridge.services.knowledge.store.words import Words
from voxbridge.shared.errors import Code, VoxbridgeError

WRITER = """
import sys
from pathlib import Path
from tests.knowledge.test_graph_file import document
from voxbridge.services.knowledge.store.graph_file import GraphFile
from voxbridge.services.knowledge.store.words import Words
folder = Path(sys.argv[1])
graph, words = GraphFile(folder / "g.sqlite"), Words(folder / "g.words")
for number in range(int(sys.argv[2]), 100_000):
    graph.put(document(f"d{number}", f"Here number{number} stands. " * 60))
    words.up_to_date(graph)
    print(number, flush=True)
"""


def document(source: str, text: str) -> Document:
    """Return a document with a text."""
    return made(source, source, text, 1, ())


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[GraphFile]:
    found = GraphFile(tmp_path / "g.sqlite")
    yield found
    found.close()


@pytest.fixture
def words(tmp_path: Path) -> Words:
    return Words(tmp_path / "g.words")


def texts(graph: GraphFile, words: Words, question: str) -> list[str]:
    """Return the texts that are found for a question."""
    words.up_to_date(graph)
    return [kept.text for kept in graph.passages([number for number, _ in words.find(question, 10)])]


def test_the_same_document_changes_nothing_and_another_text_takes_its_place(graph: GraphFile, words: Words) -> None:
    assert graph.put(document("a.md", "The pump is blue."))
    before = graph.counts()
    assert not graph.put(document("a.md", "The pump is blue."))
    assert graph.counts() == before
    assert graph.put(document("a.md", "The pump is green."))
    assert (graph.counts().documents, graph.counts().passages, graph.version()) == (1, 1, 2)
    assert texts(graph, words, "pump") == ["The pump is green."]
    assert texts(graph, words, "blue") == []


def test_a_planted_passage_is_first(graph: GraphFile, words: Words) -> None:
    for number in range(30):
        graph.put(document(f"{number}.md", f"# Chapter {number}\nThe weather in town was mild. A river runs by house {number}.\n"))
    graph.put(document("planted.md", "# Contracts\nThe retention period of invoices is eleven years.\n"))
    assert texts(graph, words, "how long is the retention of an invoice?")[0].startswith("The retention period")


@pytest.mark.parametrize(
    "question", ['what "is', "a:b OR (", "AND NOT", "*", "id:1", "\\", "\0", "🙂", "", "text:[a TO z]", "x" * 5_000, "^2~"]
)
def test_any_text_is_a_question(question: str, graph: GraphFile, words: Words) -> None:
    graph.put(document("a.md", "Nothing of it is here."))
    assert texts(graph, words, question) in ([], ["Nothing of it is here."])


def test_an_index_that_is_lost_or_broken_is_made_again_and_finds_the_same(graph: GraphFile, words: Words, tmp_path: Path) -> None:
    for number in range(40):
        graph.put(document(f"{number}.md", f"Pump {number} is {'blue' if number % 3 else 'green'} and old."))
        if number % 7 == 0:
            words.up_to_date(graph)
    graph.put(document("3.md", "It is another one now."))
    words.up_to_date(graph)
    wanted = sorted(number for number, _ in words.find("green pump", 50))
    assert len(wanted) == 39
    (tmp_path / "g.words" / "meta.json").write_text("{")
    broken = Words(tmp_path / "g.words")
    broken.up_to_date(graph)
    assert sorted(number for number, _ in broken.find("green pump", 50)) == wanted
    broken.rebuild(graph)
    assert sorted(number for number, _ in broken.find("green pump", 50)) == wanted


def test_a_writer_that_is_killed_leaves_whole_documents_and_an_index_that_catches_up(tmp_path: Path) -> None:
    written = 0
    for _ in range(5):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(written)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in process.stdout:
                written = int(line) + 1
                if written % 4 == 0:
                    os.kill(process.pid, signal.SIGKILL)
                    break
            for line in process.stdout:  # what it answered before the signal came
                written = int(line) + 1
        graph, words = GraphFile(tmp_path / "g.sqlite"), Words(tmp_path / "g.words")
        counts = graph.counts()
        assert written <= counts.documents <= written + 1, "what was answered is there, and at most the one that was being written"
        sources = [f"d{number}" for number in range(counts.documents)]
        assert counts.passages == sum(len(document(source, f"Here number{source[1:]} stands. " * 60).pieces) for source in sources)
        for source in sources:
            assert {kept.source for kept in graph.passages([n for n, _ in found(graph, words, f"number{source[1:]}")])} == {source}
        graph.close()
        written = counts.documents


def found(graph: GraphFile, words: Words, question: str) -> list[tuple[int, float]]:
    """Return what a question finds after the index is up to date."""
    words.up_to_date(graph)
    return words.find(question, 10)


def test_a_graph_has_a_limit_of_passages(graph: GraphFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_file, "PASSAGES_LIMIT", 2)
    graph.put(document("a", "One.\n\n# B\nTwo."))
    with pytest.raises(VoxbridgeError) as refused:
        graph.put(document("b", "Three."))
    assert (refused.value.code, refused.value.field, refused.value.limit) == (Code.TOO_LARGE, "database", 2)
    assert graph.counts().documents == 1
    assert graph.put(document("a", "Only one."))


def test_a_file_of_another_release_and_one_that_is_none_are_told(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "new.sqlite") as newer:
        newer.execute("pragma user_version=99")
    newer.close()
    (tmp_path / "none.sqlite").write_bytes(b"no database" * 100)
    for name, told in (("new", "another release"), ("none", "not a database")):
        with pytest.raises(VoxbridgeError, match=told) as refused:
            GraphFile(tmp_path / f"{name}.sqlite")
        assert refused.value.code == Code.UNAVAILABLE


def test_what_is_replaced_is_not_left_in_the_file(graph: GraphFile, tmp_path: Path) -> None:
    graph.put(document("a", "The word xylophone42 is planted."))
    graph.put(document("a", "It is another text now."))
    graph.close()
    assert not any(b"xylophone42" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_analytics_equal_those_of_a_known_graph(graph: GraphFile) -> None:
    """Two triangles, and Hub in both: it counts most, and each triangle's others are a community with it or without."""
    graph.put(document("a", "We saw Hub One, Ann Lee and Bob Lee. We saw Hub One, Cid Roe and Dan Roe. They met Eve Solo."))
    counts, entities, relations = graph.counts(), graph.every_entity(), graph.every_relation()
    result = analysed("g", counts, entities, relations)
    names = {entity.name for entity in entities.values() if entity.kind == "name"}
    assert names == {"Hub One", "Ann Lee", "Bob Lee", "Cid Roe", "Dan Roe", "Eve Solo"}
    assert (result.relations, result.top[0].name, result.top[0].degree) == (6, "Hub One", 4)
    assert result.components == 1 + sum(1 for entity in entities.values() if entity.kind == "heading") + 1, "Eve and headings stand alone"
    assert result.communities == 2
    assert result.top[0].rank == pytest.approx(_rank("Hub One"), abs=1e-4)
    assert sum(one.rank for one in result.top) == pytest.approx(1, abs=1e-3)


def _rank(wanted: str) -> float:
    """Compute PageRank by its definition, by iteration: the share of each node, with a jump of 15 %."""
    edges = [
        ("Hub One", "Ann Lee"),
        ("Hub One", "Bob Lee"),
        ("Ann Lee", "Bob Lee"),
        ("Hub One", "Cid Roe"),
        ("Hub One", "Dan Roe"),
        ("Cid Roe", "Dan Roe"),
    ]
    nodes = sorted({name for edge in edges for name in edge} | {"Eve Solo", "a"})
    near = {name: [b if a == name else a for a, b in edges if name in (a, b)] for name in nodes}
    share = dict.fromkeys(nodes, 1 / len(nodes))
    for _ in range(200):
        loose = sum(share[name] for name in nodes if not near[name]) / len(nodes)
        share = {name: 0.15 / len(nodes) + 0.85 * (loose + sum(share[other] / len(near[other]) for other in near[name])) for name in nodes}
    return share[wanted]
