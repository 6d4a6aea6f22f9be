"""Playbooks are found by the words of a question, with the path of their headings, as they are now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import asking
from voxbridge.services.tools.packs.playbooks import library as module
from voxbridge.services.tools.packs.playbooks.functions import QUERY_LIMIT, SECTIONS, TEXT_LIMIT
from voxbridge.services.tools.packs.playbooks.library import FILE_LIMIT, Library
from voxbridge.services.tools.packs.playbooks.ranking import Ranking, words
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.sections import sections

pytestmark = pytest.mark.timeout(120)
SHIPPED = Path(__file__).parents[3] / Config().playbooks_dir


@pytest.mark.parametrize(
    ("question", "file", "heading"),
    [
        ("how do I restore a backup", "backups.md", "Restore a backup"),
        ("restoring backups", "backups.md", "Restore a backup"),
        ("what do we do when the disk is full", "disk-full.md", "The disk is full"),
        ("rolling back a release", "release.md", "Roll back"),
        ("a customer was charged twice", "refunds.md", "When the payment was charged twice"),
        ("what happens on day one for a colleague, the first day", "onboarding.md", "First day"),
        ("how bad is the incident", "incident.md", "Decide how bad it is"),
        ("the first five minutes of an outage", "incident.md", "First five minutes"),
        ("deploy to one worker", "release.md", "Deploy"),
    ],
)
def test_the_playbooks_that_are_shipped_answer(question: str, file: str, heading: str) -> None:
    best, _ = Library(SHIPPED).search(question, 1)[0]
    assert best.file == file
    assert heading in best.headings


def test_sections_have_the_path_of_their_headings_and_code_has_none() -> None:
    text = (
        "before\n# One\none\n## Two ##\ntwo\n```sh\n# no heading\n~~~\n```\n# Three\n### Four\nfour\n#no heading\n####### none\n## Five\n"
    )
    found = [(one.headings, one.line, one.text) for one in sections("a/b.md", text)]
    assert found == [
        (("b",), 1, "before"),
        (("One",), 2, "one"),
        (("One", "Two"), 4, "two\n```sh\n# no heading\n~~~\n```"),
        (("Three", "Four"), 11, "four\n#no heading\n####### none"),
    ]


def test_rare_words_and_headings_weigh_more() -> None:
    ranking = Ranking([("", "cat " * 5 + "dog"), ("", "cat bird"), ("bird", "cat fish"), ("", "horse " * 9 + "cat")])
    assert [index for index, _ in ranking.best("cat bird", 4)][:2] == [2, 1]
    assert [index for index, _ in ranking.best("horse", 4)] == [3]
    assert ranking.best("whale", 4) == []
    assert ranking.best("the of and", 4) == []
    assert Ranking([]).best("cat", 4) == []
    assert words("Restoring the backups, stopped policies' boxes") == words("restore backup stop policy box")


async def test_a_file_that_changes_is_read_again(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    async with asking(executors, caller, tmp_path / "work", "playbooks", playbooks_dir=folder) as ask:
        empty = await ask.refusal("search_playbooks", query="tea")
        assert (empty.code, "VOXBRIDGE_PLAYBOOKS_DIR" in empty.message) == (Code.NOT_FOUND, True)
        (folder / "tea.md").write_text("# Tea\n## Brew\nBoil water.\n" + "More. " * TEXT_LIMIT)
        found = await ask.answer("search_playbooks", query="brew the tea")
        assert (found["sections"][0]["heading"], found["sections"][0]["line"]) == ("Tea > Brew", 2)
        assert len(found["sections"][0]["text"]) == TEXT_LIMIT
        assert found["spoken"] == "The best match is Brew, Tea."
        (folder / "tea.md").write_text("# Coffee\nGrind beans.\n")
        assert (await ask.answer("search_playbooks", query="coffee"))["sections"][0]["text"] == "Grind beans."
        assert (await ask.refusal("search_playbooks", query="tea")).code == Code.NOT_FOUND
        (folder / "more").mkdir()
        for number in range(SECTIONS + 1):
            (folder / f"more/{number}.md").write_text(f"# Coffee {number}\nBeans.\n")
        assert (await ask.answer("search_playbooks", query="coffee"))["count"] == SECTIONS
        (folder / "tea.md").unlink()
        assert "tea.md" not in str(await ask.answer("search_playbooks", query="coffee"))
        assert (await ask.refusal("search_playbooks", query="x" * (QUERY_LIMIT + 1))).code == Code.INVALID_ARGUMENT
        assert (await ask.refusal("search_playbooks", query="!?")).code == Code.NOT_FOUND


def test_what_is_no_playbook_hides_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.md").write_text("# Good\ntext\n")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    (tmp_path / "huge.md").write_text("x" * (FILE_LIMIT + 1))
    (tmp_path / "most.md").write_text("y" * FILE_LIMIT)
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.md")
    library = Library(tmp_path)
    assert [one.file for one, _ in library.search("good", 5)] == ["good.md"]
    assert (len(library), library.left_out) == (2, 2)
    monkeypatch.setattr(module, "FILES_LIMIT", 1)
    with pytest.raises(VoxbridgeError, match="There are no playbooks"):
        Library(tmp_path).search("good", 5)


@pytest.mark.parametrize(
    "text", ["#" * 100_000, "# \n" * 10_000, "```\n" * 9_999, "`" * 100_000, "# " + "a" * 100_000, "\0\n# \0", "a\r\n# b\r\nc"]
)
def test_a_hostile_text_is_cut_and_costs_little(text: str) -> None:
    assert all(len(heading) <= 200 for one in sections("a.md", text) for heading in one.headings)
