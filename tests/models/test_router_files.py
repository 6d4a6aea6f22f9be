"""Trained routers on disk."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from voxbridge.services.models.api import router_files
from voxbridge.services.models.api.router_files import FILES, RouterFiles
from voxbridge.services.models.api.routers import Routers, read_meanings
from voxbridge.services.models.choice.router import Known, Router
from voxbridge.services.models.core.chatml import Tool

FUNCTIONS = (
    Known("current_time", "The time.", ("what time is it in Rome", "tell me the time")),
    Known("remember", "Keep a note.", ("remember that my bike is red", "keep in mind that I am late")),
)
SAID = ("what time is it in Oslo", "thank you", "order a pizza", "remember the milk", "and in Lima")
TABLE = read_meanings()


@cache
def trained() -> Router:
    """Return the router of `FUNCTIONS`."""
    return Router(FUNCTIONS, TABLE)


def test_a_router_that_is_read_decides_as_the_one_that_was_written(tmp_path: Path) -> None:
    files = RouterFiles(tmp_path / "routers")
    assert files.read(FUNCTIONS, TABLE) is None
    files.write(FUNCTIONS, trained())
    found = files.read(FUNCTIONS, TABLE)
    assert found is not None
    assert [found.decide(said) for said in SAID] == [trained().decide(said) for said in SAID]
    assert files.read(FUNCTIONS[:1], TABLE) is None, "another set of functions has another file"
    assert (tmp_path / "routers").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("size", [0, 10, 5_000, -1])
def test_a_file_that_is_torn_is_removed(tmp_path: Path, size: int) -> None:
    files = RouterFiles(tmp_path)
    files.write(FUNCTIONS, trained())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert files.read(FUNCTIONS, TABLE) is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_set_under_this_name_is_removed(tmp_path: Path) -> None:
    files = RouterFiles(tmp_path)
    files.write(FUNCTIONS[:1], trained())
    assert files.read(FUNCTIONS[:1], TABLE) is None
    assert list(tmp_path.iterdir()) == []


def test_the_number_of_files_is_bounded_and_the_one_used_longest_ago_goes(tmp_path: Path) -> None:
    files = RouterFiles(tmp_path)
    (tmp_path / "left.new").write_bytes(b"of a crash")
    sets = [(*FUNCTIONS, Known(f"f{number}")) for number in range(FILES + 1)]
    for number, functions in enumerate(sets[:FILES]):
        files.write(functions, trained())
        path = files._path(functions)
        os.utime(path, (number, number))
    os.utime(files._path(sets[0]))  # used again
    files.write(sets[FILES], trained())
    assert len(list(tmp_path.iterdir())) == FILES
    assert files._path(sets[0]).exists()
    assert not files._path(sets[1]).exists()


def test_other_rules_make_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RouterFiles(tmp_path)
    files.write(FUNCTIONS, trained())
    monkeypatch.setattr(router_files, "_rules", lambda: b"another release")
    assert files.read(FUNCTIONS, TABLE) is None


async def test_without_a_disk_and_with_one_the_service_decides_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [Tool(known.name, known.description, {}, known.utterances) for known in FUNCTIONS]
    (tmp_path / "file").write_bytes(b"")
    broken = await Routers(RouterFiles(tmp_path / "file" / "routers")).of(tools)
    first = await Routers(RouterFiles(tmp_path / "routers")).of(tools)
    learned: list[bool] = []
    monkeypatch.setattr(Router, "_learn", lambda *_: learned.append(True))
    second = await Routers(RouterFiles(tmp_path / "routers")).of(tools)
    assert broken is not None
    assert first is not None
    assert second is not None
    assert learned == []
    assert broken.decide(SAID[0]) == first.decide(SAID[0]) == second.decide(SAID[0])
