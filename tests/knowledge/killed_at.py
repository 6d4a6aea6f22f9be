"""A process that is killed at the n-th thing that it does, for every n: run as `python -m tests.knowledge.killed_at FOLDER WHAT`.

Each try runs in a fork of this process, so that nothing is imported twice. What it does is counted: statements of SQLite, files that are
opened, moved and removed. Prints the number of kills; ends with status 1 and the reason where a try left something wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.knowledge.table import Table
from voxbridge.services.knowledge.library import Library
from voxbridge.shared.knowledge import Ingest, ListGraphs, Rebuild, Replay, Search

WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree", "os.truncate")
OLD = "# Pumps\nThe automobile in Lisbon is blue.\n\n# Tanks\nOld tanks hold water."
NEW = "# Pumps\nThe automobile in Lisbon is green.\n\n# Valves\nNew valves hold steam."


def documents(library: Library) -> None:
    """Put what is there before into the graph."""
    for source, text in (("a.md", OLD), ("b.md", "Another text stands here.")):
        library.ingest(Ingest(account="local", graph="g", source=source, title=source, text=text, at=1))


def ingest(library: Library) -> None:
    """Put another text in the place of a document's."""
    library.ingest(Ingest(account="local", graph="g", source="a.md", title="a.md", text=NEW, at=2))


def rebuild(library: Library) -> None:
    """Make the indexes again."""
    library.rebuild(Rebuild(account="local"))


def check(library: Library, what: str) -> None:
    """Fail unless the graph is whole, is found by words and by meaning, and is what its documents make."""
    assert library.replay(Replay(account="local")).differences == ()
    (graph,) = library.graphs(ListGraphs(account="local")).graphs
    assert graph.documents == 2
    texts = {one.text for one in library.search(Search(account="local", query="automobile valves tanks", count=20)).passages}
    old, new = "The automobile in Lisbon is blue." in texts, "The automobile in Lisbon is green." in texts
    assert old != new, texts
    assert ("Old tanks hold water." in texts) == old, texts
    assert ("New valves hold steam." in texts) == new, texts
    (ingest if what == "ingest" else rebuild)(library)
    while library.catch_up():
        pass
    found = library.search(Search(account="local", query="vehicle"))
    assert found.by.startswith("words and meanings"), found.by
    assert found.passages[0].text == f"The automobile in Lisbon is {'green' if what == 'ingest' else 'blue'}.", found.passages


def counting(limit: int) -> Callable[[Any], None]:
    """Return what counts, and kills this process at the limit."""
    done = 0

    def count(_: Any) -> None:
        nonlocal done
        done += 1
        if done == limit:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def watched(folder: Path, count: Callable[[Any], None]) -> None:
    """Have everything counted that is done below the folder."""
    sys.addaudithook(lambda event, given: count(event) if event in WATCHED and str(folder) in str(given[0]) else None)
    connect = sqlite3.connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*given, **named)
        made.set_trace_callback(count)
        return made

    sqlite3.connect = traced  # type: ignore[assignment]


def forked(work: Callable[[], None]) -> int:
    """Run in a fork; return its status, negative for a signal."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - told on standard error
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, what: str) -> int:
    """Kill at the first thing, at the second, and so on, until the work ends without being killed."""

    def prepare() -> None:
        library = Library(folder / "before", Table())
        documents(library)
        library.close()

    if forked(prepare):
        return 1
    Table().embed(["read once"])
    for kills in range(2_000):
        place = folder / str(kills)
        shutil.copytree(folder / "before", place)

        def work(place: Path = place, kills: int = kills) -> None:
            watched(place, counting(kills + 1))
            library = Library(place, Table())
            (ingest if what == "ingest" else rebuild)(library)
            library.close()

        def look(place: Path = place) -> None:
            library = Library(place, Table())
            check(library, what)
            library.close()

        status = forked(work)
        if forked(look):
            sys.stderr.write(f"wrong after a kill at {kills + 1}\n")
            return 1
        if status == 0:
            sys.stdout.write(f"{kills}\n")
            return 0
        if status != -signal.SIGKILL:
            return 1
        shutil.rmtree(place)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
