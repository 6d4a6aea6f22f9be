"""Tours: the files of this installation, what a file may hold, and the plain orders that start and steer one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.tours import library, orders

ROOT = Path(__file__).parents[2]
STEP: dict[str, Any] = {"title": "One", "text": "This is one.", "target": ".one"}
TOUR: dict[str, Any] = {"page": "shop", "name": "Shop", "description": "The shop.", "path": "/shop", "steps": [STEP]}


def write(folder: Path, name: str, tour: Any) -> None:
    (folder / name).write_text(tour if isinstance(tour, str) else json.dumps(tour))


def refused(folder: Path) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as caught:
        library.load(folder)
    assert caught.value.code == Code.INVALID_ARGUMENT
    return caught.value


def test_every_room_of_studio_has_a_tour() -> None:
    found = library.load(ROOT / Config().tours_dir)
    assert set(found) >= {"talk", "tools", "agents", "sessions", "session", "awareness", "keys"}
    assert all(step.target for tour in found.values() for step in tour.steps)


def test_a_folder_that_is_not_there_has_no_tours(tmp_path: Path) -> None:
    assert library.load(tmp_path / "none") == {}
    with pytest.raises(VoxbridgeError, match="VOXBRIDGE_TOURS_DIR") as caught:
        library.find({}, "shop")
    assert caught.value.code == Code.NOT_FOUND


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": []}, r"\$\.steps"),
        ({"steps": [STEP] * (library.STEPS_LIMIT + 1)}, r"\$\.steps"),
        ({"steps": [{**STEP, "text": "x" * 401}]}, r"\$\.steps\[0\]\.text"),
        ({"steps": [{**STEP, "html": "<b>"}]}, "html"),
        ({"page": "Shop Floor"}, r"\$\.page"),
        ({"path": "https://evil.example"}, r"\$\.path"),
        ({"name": ""}, r"\$\.name"),
    ],
)
def test_a_file_that_is_no_tour_is_named_with_what_is_wrong(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    write(tmp_path, "shop.json", {**TOUR, **changed})
    error = refused(tmp_path)
    assert error.message.startswith("shop.json is not a tour: ")
    with pytest.raises(VoxbridgeError, match=words):
        library.load(tmp_path)


def test_bounds_hold_at_the_bound(tmp_path: Path) -> None:
    write(tmp_path, "shop.json", {**TOUR, "steps": [{**STEP, "text": "x" * 400}] * library.STEPS_LIMIT})
    assert len(library.load(tmp_path)["shop"].steps) == library.STEPS_LIMIT
    long = json.dumps(TOUR)
    write(tmp_path, "shop.json", long + " " * (library.FILE_LIMIT - len(long)))
    assert library.load(tmp_path)["shop"].name == "Shop"
    write(tmp_path, "shop.json", long + " " * (library.FILE_LIMIT - len(long) + 1))
    assert refused(tmp_path).limit == library.FILE_LIMIT


def test_two_tours_of_one_page_and_broken_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.json", TOUR)
    write(tmp_path, "b.json", TOUR)
    assert refused(tmp_path).field == "page"
    write(tmp_path, "b.json", "{")
    assert "b.json" in refused(tmp_path).message


def test_only_so_many_files_are_read(tmp_path: Path) -> None:
    for number in range(library.FILES_LIMIT + 1):
        write(tmp_path, f"{number:03}.json", {**TOUR, "page": f"page-{number}"})
    assert len(library.load(tmp_path)) == library.FILES_LIMIT


@pytest.mark.parametrize("wanted", ["shop-floor", "Shop Floor", "/floor", "the-floor", "The Floor"])
def test_a_page_is_found_by_id_path_or_name(tmp_path: Path, wanted: str) -> None:
    write(tmp_path, "a.json", {**TOUR, "page": "shop-floor", "name": "The Floor", "path": "/floor"})
    assert library.find(library.load(tmp_path), wanted).page == "shop-floor"


def test_a_page_without_a_tour_is_told_with_those_that_have_one(tmp_path: Path) -> None:
    write(tmp_path, "a.json", TOUR)
    with pytest.raises(VoxbridgeError, match="There are tours of: shop"):
        library.find(library.load(tmp_path), "kitchen")


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("Next!", "next"),
        ("Okay, next.", "next"),
        ("weiter", "next"),
        ("Go back.", "back"),
        ("Skip this step", "skip"),
        ("Stop the tour.", "stop"),
        ("Explain more?", "explain"),
        ("What is next on my list?", None),
        ("Don't stop", None),
        ("next " * 30, None),
    ],
)
def test_plain_orders_steer(words: str, step: str | None) -> None:
    assert orders.steered(words) == step


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("Show me around.", ""),
        ("Please show me around here", ""),
        ("Start the tour", ""),
        ("Give me a tour of the sessions page, please.", "sessions"),
        ("Take the guided tour of tools", "tools"),
        ("Could you show me around this app?", ""),
        ("Show me a round of golf", None),
        ("Book a tour of the castle for me and my four children", None),
    ],
)
def test_plain_orders_start(words: str, page: str | None) -> None:
    assert orders.started(words) == page


RACE = """
import sys, threading
from pathlib import Path
sys.setswitchinterval(1e-6)
from voxbridge.shared.tours import library
gate = threading.Barrier(8)
def read():
    gate.wait()
    assert library.load(Path(sys.argv[1]))
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_read_tours_for_the_first_time_crash_nothing() -> None:
    """msgspec 0.22 crashes where two threads describe a type to it at the same time: one of six fresh processes did."""
    for _ in range(6):
        subprocess.run([sys.executable, "-c", RACE, str(ROOT / "tours")], check=True, timeout=60)
