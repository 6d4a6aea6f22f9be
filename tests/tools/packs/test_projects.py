"""Projects are folders: made once, listed, and found again without any log."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import Asking, asking
from voxbridge.services.tools.packs.projects.functions import DESCRIPTION_LIMIT, SHOWN
from voxbridge.shared import projects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.workspace import Workspace

pytestmark = pytest.mark.timeout(120)


async def test_a_project_is_made_listed_and_outlives_the_executor(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    async with asking(executors, caller, folder, "projects") as ask:
        assert (await ask.answer("list_projects"))["spoken"] == "There are no projects yet."
        made = await ask.answer("create_project", name="My Shop", description="Sells\n things.")
        assert (made["folder"], made["spoken"]) == ("my-shop", "The project My Shop is created.")
        content = json.loads((folder / "my-shop/project.json").read_text())
        assert (content["name"], content["description"]) == ("My Shop", "Sells things.")
        assert content["created"] > 1_600_000_000_000_000
        await ask.answer("create_project", name="Garden")
        again = await ask.refusal("create_project", name="my shop")
        assert (again.code, again.message) == (Code.CONFLICT, "There is a project my-shop already. Choose another name.")
    async with asking(executors, caller, folder, "projects") as ask:
        listed = await ask.answer("list_projects")
        assert [one["name"] for one in listed["projects"]] == ["Garden", "My Shop"]
        assert listed["spoken"] == "You have 2 projects: Garden, My Shop."


async def test_of_two_executors_that_race_one_makes_the_project(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    """Sixteen names, each asked for four times at once; two executors share the calls."""
    folder = tmp_path / "work"
    async with asking(executors, caller, folder, "projects") as ask, asking(executors, caller, folder, "projects"):
        names = [name for name in (f"race {number}" for number in range(6)) for _ in range(4)]
        found = await asyncio.gather(*(_made(ask, name, str(number)) for number, name in enumerate(names)))
    assert sum(found) == 6
    assert sorted(one.name for one in folder.iterdir()) == [f"race-{number}" for number in range(6)]
    assert all(sorted(os.listdir(one)) == ["project.json"] for one in folder.iterdir())  # noqa: PTH208 - names are compared


async def _made(ask: Asking, name: str, description: str) -> bool:
    """Ask with another description each time: the same call under a new id would be joined to the first."""
    return isinstance(await ask.outcome("create_project", {"name": name, "description": description}), dict)


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "..", "../evil", "/etc", ".git", "...", "-", "a\0b", "a\nb", "x" * 65, "\u202egnp", "名前", "node_modules", "con",
        "\ud83d",
    ],
)  # fmt: skip
def test_a_name_that_a_folder_cannot_have_is_refused_or_made_one(tmp_path: Path, name: str) -> None:
    workspace = Workspace([tmp_path / "root"], make=True)
    if name in ("../evil", "/etc", ".git"):
        assert projects.create(workspace, projects.Project(name=name)).folder.name in ("evil", "etc", "git")
    else:
        with pytest.raises(VoxbridgeError, match="Choose another name") as caught:
            projects.create(workspace, projects.Project(name=name))
        assert caught.value.code == Code.INVALID_ARGUMENT
    assert not (tmp_path / "evil").exists()


def test_an_attempt_that_was_cut_off_is_finished_and_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    workspace = Workspace([tmp_path])
    (tmp_path / "begun").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/file.txt").write_text("mine")
    (tmp_path / "linked").symlink_to(tmp_path / "begun")
    assert projects.create(workspace, projects.Project(name="Begun")).folder.name == "begun"
    with pytest.raises(VoxbridgeError, match="with other files is there already"):
        projects.create(workspace, projects.Project(name="Foreign"))
    with pytest.raises(VoxbridgeError):
        projects.create(workspace, projects.Project(name="Linked"))
    assert [one.project.name for one in projects.every(workspace)] == ["Begun"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"name": 1}', b"\xff", b'{"name": "a\\u0000b"}', b"x" * (projects.FILE_LIMIT + 1)])
def test_a_damaged_file_hides_no_project(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/project.json").write_bytes(content)
    workspace = Workspace([tmp_path])
    assert [one.project.name for one in projects.every(workspace)] == ["broken"]
    assert projects.find(workspace, "Broken").folder.name == "broken"
    with pytest.raises(VoxbridgeError, match=r"There is no project other\. There are: broken\."):
        projects.find(workspace, "other")


async def test_lists_and_texts_are_bounded(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    for number in range(SHOWN + 1):
        (folder / f"p{number:02}").mkdir(parents=True)
        (folder / f"p{number:02}/project.json").write_text(json.dumps({"name": f"p{number:02}"}))
    async with asking(executors, caller, folder, "projects") as ask:
        listed = await ask.answer("list_projects")
        assert (len(listed["projects"]), listed["count"]) == (SHOWN, SHOWN + 1)
        assert listed["spoken"].endswith(f"p04 and {SHOWN - 4} more.")
        await ask.answer("create_project", name="most", description="x" * DESCRIPTION_LIMIT)
        assert (await ask.refusal("create_project", name="more", description="x" * (DESCRIPTION_LIMIT + 1))).code == Code.INVALID_ARGUMENT
        assert (await ask.refusal("create_project", name="bell", description="\x07")).code == Code.INVALID_ARGUMENT
