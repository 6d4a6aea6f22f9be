"""Search quality on two public sets, by nDCG@10: words and meanings beside words alone.

The weight of `core.ranking` was chosen on the questions of the Python FAQ. The set of Django's documentation was made afterwards, was
measured with that weight once, and is held out: nothing is to be chosen on it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge.table import Table
from voxbridge.services.knowledge.library import BY_WORDS, Library, common_words
from voxbridge.services.knowledge.replaying import document
from voxbridge.services.knowledge.store.graph_file import GraphFile
from voxbridge.shared.knowledge import FOUND_LIMIT, Search

pytestmark = pytest.mark.timeout(120)
Sets = dict[str, Any]


def read(name: str) -> Sets:
    """Return the documents and questions of a set."""
    found: Sets = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
    return found


def ndcg(found: list[str], wanted: str) -> float:
    """Return nDCG@10 where one document is relevant; the first passage of a document is its place."""
    order = list(dict.fromkeys(found))[:10]
    return 1 / math.log2(order.index(wanted) + 2) if wanted in order else 0.0


def measured(library: Library, given: Sets) -> tuple[float, float, str]:
    """Return the mean of the questions with an even and of those with an odd number, and by what was searched."""
    halves: tuple[list[float], list[float]] = ([], [])
    by = ""
    for number, (question, answer) in enumerate(given["questions"]):
        found = library.search(Search(account="local", query=question, count=FOUND_LIMIT))
        halves[number % 2].append(ndcg([one.source for one in found.passages], str(answer)))
        by = found.by
    return sum(halves[0]) / len(halves[0]), sum(halves[1]) / len(halves[1]), by


@pytest.mark.parametrize(("name", "above"), [("python_faq", 0.03), ("django_faq", 0.01)], ids=["chosen on", "held out"])
def test_words_and_meanings_are_better_than_words_alone(name: str, above: float, tmp_path: Path) -> None:
    table, given = Table(), read(name)
    graph = GraphFile(tmp_path / "local" / "faq.sqlite")
    for number, text in enumerate(given["documents"]):
        graph.put(document(str(number), "-", text, 1, common_words()))
    graph.close()
    library = Library(tmp_path, table)
    while library.catch_up():
        pass
    even, odd, by = measured(library, given)
    library.close()
    alone = Library(tmp_path)
    words_even, words_odd, by_words = measured(alone, given)
    alone.close()
    assert (by, by_words) == (f"words and meanings ({table.model})", BY_WORDS)
    assert even >= words_even
    assert odd >= words_odd
    assert (even + odd) / 2 >= (words_even + words_odd) / 2 + above


def test_no_text_stands_in_both_sets() -> None:
    chosen, held_out = read("python_faq"), read("django_faq")
    for what in ("documents", "questions"):
        assert not {str(one) for one in chosen[what]} & {str(one) for one in held_out[what]}
