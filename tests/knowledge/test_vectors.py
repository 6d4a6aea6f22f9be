"""Vectors of a graph's passages: followed, found, rebuilt equal, of another model, of an endpoint that fails; a disk that is full."""

from __future__ import annotations

import base64
import hashlib
import json
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.knowledge.table import Table
from voxbridge.services.knowledge import embeddings
from voxbridge.services.knowledge.embeddings import Endpoint
from voxbridge.services.knowledge.library import BY_WORDS, Library
from voxbridge.services.knowledge.store import vectors
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import Found, Ingest, ListGraphs, Rebuild, Replay, Search

pytestmark = pytest.mark.timeout(120)


def put(library: Library, source: str, text: str) -> bool:
    """Put a document into the graph g."""
    return library.ingest(Ingest(account="local", graph="g", source=source, title=source, text=text, at=1)).changed


def find(library: Library, query: str) -> Found:
    """Search all graphs."""
    return library.search(Search(account="local", query=query))


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files of vectors."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("local/g.vectors/*")}


def fill(library: Library) -> None:
    """Put some documents into the graph."""
    put(library, "car.md", "The automobile stands in the garage.")
    put(library, "pie.md", "Bake the cake for an hour.")
    put(library, "law.md", "The contract ends in May.")


def test_a_question_in_other_words_finds_its_passage(tmp_path: Path) -> None:
    library = Library(tmp_path, table := Table())
    fill(library)
    found = find(library, "vehicle")
    assert (found.passages[0].source, found.by) == ("car.md", f"words and meanings ({table.model})")
    assert library.graphs(ListGraphs(account="local")).by == found.by
    library.close()
    alone = Library(tmp_path)
    assert (find(alone, "vehicle").passages, find(alone, "vehicle").by) == ((), BY_WORDS)
    alone.close()


def test_a_question_about_something_else_finds_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    assert find(library, "king of France").passages == ()
    library.close()


def test_a_passage_that_stands_alone_is_found_by_its_meaning_and_not_by_another_one(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    put(library, "car.md", "The automobile stands in the garage.")
    assert [one.source for one in find(library, "vehicle").passages] == ["car.md"]
    assert find(library, "king of France").passages == ()
    library.close()


def test_rebuilt_vectors_are_equal_and_the_graph_replays(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    before, found = digests(tmp_path), find(library, "vehicle")
    library.rebuild(Rebuild(account="local"))
    assert digests(tmp_path) == before
    assert find(library, "vehicle") == found
    replayed = library.replay(Replay(account="local"))
    assert (replayed.documents, replayed.differences) == (3, ())
    library.close()


def test_another_text_takes_the_place_of_the_old_ones_vector(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    put(library, "car.md", "Nothing of it is left.")
    assert "car.md" not in [one.source for one in find(library, "vehicle").passages if "automobile" in one.text]
    library.close()
    again = Library(tmp_path, Table())
    assert all("automobile" not in one.text for one in find(again, "vehicle").passages)
    again.close()


def test_another_model_is_noticed_and_its_vectors_are_made(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    library.close()
    other = Library(tmp_path, Table("another@1"))
    assert find(other, "automobile").by == BY_WORDS, "vectors of the old model are not compared with a question of the new one"
    while other.catch_up():
        pass
    assert find(other, "vehicle").by == "words and meanings (another@1)"
    assert find(other, "vehicle").passages[0].source == "car.md"
    other.close()


def test_files_that_a_crash_left_are_mended(tmp_path: Path) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    library.close()
    before = digests(tmp_path)
    with (tmp_path / "local" / "g.vectors" / "rows").open("ab") as rows:
        rows.write(b"half a row")
    again = Library(tmp_path, Table())
    assert find(again, "vehicle").passages[0].source == "car.md"
    again.close()
    assert digests(tmp_path) == before
    (tmp_path / "local" / "g.vectors" / "ids").write_bytes(b"")
    third = Library(tmp_path, Table())
    while third.catch_up():
        pass
    assert find(third, "vehicle").passages[0].source == "car.md"
    third.close()
    assert digests(tmp_path) == before


def test_files_mostly_of_removed_passages_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "COMPACT", 4)
    library = Library(tmp_path, Table())
    for number in range(9):
        put(library, "same.md", f"It is text number {number} now.")
    rows = json.loads((tmp_path / "local" / "g.vectors" / "seen.json").read_bytes())["rows"]
    assert rows <= 5
    assert len(find(library, "text").passages) == 1
    library.close()


@contextmanager
def server(answer: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve `/v1/embeddings` with what `answer` makes of a request's body; yield the base URL and the requests."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            status, found = answer(body)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1", asked
    finally:
        running.shutdown()
        running.server_close()


def rows_of(*rows: list[float]) -> dict[str, Any]:
    """Return an answer with these vectors, the last one first."""
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1], "model": "vendor-small"}


def test_a_vendors_endpoint_is_asked_with_its_key() -> None:
    with server(lambda _: (200, rows_of([3.0, 4.0], [0.0, 2.0]))) as (url, asked):
        endpoint = Endpoint(url, "small", "secret")
        model, found = endpoint.embed(["a", ""])
        endpoint.close()
    assert model == "vendor-small"
    assert np.allclose(found, np.array([[0.6, 0.8], [0.0, 1.0]]))
    assert asked == [{"path": "/v1/embeddings", "key": "Bearer secret", "model": "small", "input": ["a", " "], "encoding_format": "base64"}]
    packed = {"index": 0, "embedding": base64.b64encode(np.array([0, 5], "<f4").tobytes()).decode()}
    with server(lambda _: (200, {"data": [packed]})) as (url, _):
        endpoint = Endpoint(url, "small")
        assert endpoint.embed(["a"])[0] == "small"
        endpoint.close()


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, {}),
        (401, {"error": {"message": "no key"}}),
        (200, {"data": []}),
        (200, rows_of([1.0], [1.0])),
        (200, rows_of([float("nan")])),
        (200, rows_of([])),
        (200, rows_of([1.0] * (embeddings.DIMENSIONS_LIMIT + 1))),
        (200, {"data": [{"index": 0, "embedding": "no base64!"}]}),
        (200, ["odd"]),
    ],
)
def test_an_endpoint_that_fails_is_left_alone_and_words_are_searched(tmp_path: Path, status: int, answer: Any) -> None:
    now = [0.0]
    with server(lambda _: (status, answer)) as (url, asked):
        endpoint = Endpoint(url, "small", clock=lambda: now[0])
        library = Library(tmp_path, endpoint)
        assert put(library, "a.md", "The automobile is blue.")
        assert (find(library, "blue").by, len(find(library, "blue").passages)) == (BY_WORDS, 1)
        assert len(asked) == 1
        now[0] = embeddings.PAUSE_S
        with pytest.raises(VoxbridgeError, match="Embeddings cannot be had from http") as refused:
            endpoint.embed(["a"])
        assert (refused.value.code, refused.value.retryable, len(asked)) == (Code.UNAVAILABLE, True, 2)
        library.close()
        endpoint.close()


def test_a_question_does_not_wait_for_an_endpoint_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "QUESTION_S", 0.1)
    released = threading.Event()
    with server(lambda _: (200, {"data": []}) if released.wait(20) else (200, {})) as (url, asked):
        endpoint = Endpoint(url, "small")
        library = Library(tmp_path, endpoint)
        put(library, "a.md", "The automobile is blue.")
        assert (find(library, "blue").by, len(asked)) == (BY_WORDS, 1)
        released.set()
        library.close()
        endpoint.close()


FULL = """
import resource, sys
from pathlib import Path
from tests.knowledge.table import Table
from tests.knowledge.test_vectors import find, put
from voxbridge.services.knowledge.library import Library
from voxbridge.shared.errors import VoxbridgeError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
library = Library(Path(sys.argv[1]), Table())
put(library, "first.md", "The automobile is blue.")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    put(library, "second.md", "# Part\\nA long text about pumps stands here. " * 2_000)
except VoxbridgeError as error:
    print(error.code, error.retryable)
print([one.source for one in find(library, "automobile").passages][:1])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(put(library, "second.md", "# Part\\nA long text about pumps stands here. " * 2_000), put(library, "third.md", "Later."))
print([one.source for one in find(library, "pumps").passages][:1])
"""


@pytest.mark.parametrize("room", [60_000, 150_000, 250_000])
def test_a_file_that_cannot_grow_refuses_the_document_and_a_later_one_is_taken(tmp_path: Path, room: int) -> None:
    """RLIMIT_FSIZE stands for a full disk: each write beyond it fails as such, and so does every file of the graph."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    run = subprocess.run([sys.executable, "-c", FULL, str(tmp_path), str(room)], capture_output=True, text=True, check=True, timeout=100)
    refused, before, taken, found = run.stdout.splitlines()
    assert refused == "UNAVAILABLE True"
    assert before == "['first.md']"
    assert taken in ("True True", "False True"), "what was refused for its index alone is in the file already"
    assert found == "['second.md']"
    library = Library(tmp_path, Table())
    assert library.replay(Replay(account="local")).differences == ()
    assert {one.source for one in find(library, "pumps").passages} == {"second.md"}
    library.close()


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rows_are_compared_in_parts_of_any_size_with_the_same_result(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(tmp_path, Table())
    fill(library)
    for number in range(4):
        put(library, f"{number}.md", f"Engine number {number} drives a vehicle.")
    whole = find(library, "vehicle")
    monkeypatch.setattr(vectors, "_BLOCK", rows)
    assert find(library, "vehicle") == whole
    library.close()
