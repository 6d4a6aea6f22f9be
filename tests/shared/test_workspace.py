"""A workspace reads, writes and refuses, on a real file system."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_paths import NAME_LIMIT, PATH_LIMIT, written
from voxbridge.shared.workspace import DEPTH_LIMIT, READ_LIMIT, Place, Workspace

SECRET = "the secret outside"
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def handles() -> int:
    return len(names_in(Path("/proc/self/fd")))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Iterator[Path]:
    """A workspace with files, and with everything in it that leads out or hangs; nothing of the test may leave a handle open."""
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "src/core.py").write_text("core = 1\n")
    (folder / "src/user_service.py").write_text("service = 1\n")
    (folder / "src/util.py").write_text("")
    (folder / "lib/util.py").write_text("")
    (folder / "README.md").write_text("# Read me\n")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "linked").symlink_to(outside)
    (folder / "proc").symlink_to("/proc/self/root")
    (folder / "circle").symlink_to("circle")
    (folder / "inner").symlink_to("src")
    (folder / "binary.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "zero.txt").write_bytes(b"a\0b")
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbfmarked")
    (folder / "huge.txt").write_bytes(b"x" * (READ_LIMIT + 1))
    (folder / "whole.txt").write_bytes(b"x" * READ_LIMIT)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("[core]\n")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        bound.bind("socket")
        os.chdir(here)
        before = handles()
        yield folder
        assert handles() == before


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace([root])


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("src/core.py", "src/core.py"),
        ("./src//core.py", "src/core.py"),
        ("lib/../src/core.py", "src/core.py"),
        ("core.py", "src/core.py"),
        ("core dot py", "src/core.py"),
        ("Core dot pie", "src/core.py"),
        ("the file core dot python", "src/core.py"),
        ("source slash core dot py", None),
        ("src slash core dot py", "src/core.py"),
        ("user service dot py", "src/user_service.py"),
        ("user underscore service dot py", "src/user_service.py"),
        ("user-service", "src/user_service.py"),
        ("UserService dot py", "src/user_service.py"),
        ("readme", "README.md"),
        ("read me dot markdown", "README.md"),
        ("lib slash util dot py", "lib/util.py"),
    ],
)
def test_a_path_is_found_as_it_is_spoken_or_written(workspace: Workspace, said: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(VoxbridgeError) as caught:
            workspace.find(said, kind="file")
        assert caught.value.code == Code.NOT_FOUND
        assert "Did you mean src/core.py" in caught.value.message
    else:
        assert workspace.find(said, kind="file").name == name


def test_an_absolute_path_inside_is_a_path_inside(workspace: Workspace, root: Path) -> None:
    assert workspace.find(str(root / "src/core.py")).name == "src/core.py"
    assert workspace.find(str(root)).kind == "folder"


def test_of_several_that_fit_all_are_said(workspace: Workspace) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        workspace.find("util dot py")
    assert "lib/util.py, src/util.py" in caught.value.message


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("link.txt", Code.PERMISSION_DENIED),
        ("linked/secret.txt", Code.PERMISSION_DENIED),
        ("inner/core.py", Code.PERMISSION_DENIED),
        ("circle", Code.PERMISSION_DENIED),
        ("circle/x", Code.PERMISSION_DENIED),
        ("proc/etc/passwd", Code.PERMISSION_DENIED),
        ("proc", Code.PERMISSION_DENIED),
        ("..", Code.PERMISSION_DENIED),
        ("../outside/secret.txt", Code.PERMISSION_DENIED),
        ("src/../../outside/secret.txt", Code.PERMISSION_DENIED),
        ("src/core.py/../../../outside/secret.txt", Code.PERMISSION_DENIED),
        ("/etc/passwd", Code.PERMISSION_DENIED),
        ("/proc/self/root/etc/passwd", Code.PERMISSION_DENIED),
        ("/proc/self/environ", Code.PERMISSION_DENIED),
        ("/proc/self/fd/0", Code.PERMISSION_DENIED),
        ("/dev/zero", Code.PERMISSION_DENIED),
        ("/dev/stdin", Code.PERMISSION_DENIED),
        ("//etc/passwd", Code.PERMISSION_DENIED),
        ("/", Code.PERMISSION_DENIED),
        ("/..", Code.PERMISSION_DENIED),
        ("pipe", Code.INVALID_ARGUMENT),
        ("socket", Code.INVALID_ARGUMENT),
        ("binary.bin", Code.INVALID_ARGUMENT),
        ("zero.txt", Code.INVALID_ARGUMENT),
        ("huge.txt", Code.TOO_LARGE),
        ("src/core.py\0.txt", Code.INVALID_ARGUMENT),
        ("\0", Code.INVALID_ARGUMENT),
        ("src\ncore.py", Code.INVALID_ARGUMENT),
        ("core\u202eyp.", Code.INVALID_ARGUMENT),
        ("core\u200b.py", Code.INVALID_ARGUMENT),
        ("\ud800", Code.INVALID_ARGUMENT),
        ("\x1b[2J", Code.INVALID_ARGUMENT),
        ("", Code.INVALID_ARGUMENT),
        ("   ", Code.INVALID_ARGUMENT),
        ("x" * (PATH_LIMIT + 1), Code.TOO_LARGE),
        ("x" * (NAME_LIMIT + 1), Code.INVALID_ARGUMENT),
        ("ä" * (NAME_LIMIT // 2 + 1), Code.INVALID_ARGUMENT),
        ("x" * NAME_LIMIT, Code.NOT_FOUND),
        ("a/" * (PATH_LIMIT // 2), Code.NOT_FOUND),
        ("../" * (PATH_LIMIT // 3), Code.PERMISSION_DENIED),
        ("file:///etc/passwd", Code.NOT_FOUND),
        ("~/.ssh/id_rsa", Code.NOT_FOUND),
        ("$HOME/.ssh/id_rsa", Code.NOT_FOUND),
        ("..\\..\\etc\\passwd", Code.NOT_FOUND),
        ("%2e%2e/etc/passwd", Code.NOT_FOUND),
        ("dot dot slash outside slash secret dot txt", Code.NOT_FOUND),
        ("slash etc slash passwd", Code.NOT_FOUND),
        ("src/core.py/more", Code.NOT_FOUND),
        ("config", Code.NOT_FOUND),
        ("secret dot txt", Code.NOT_FOUND),
    ],
)
def test_a_hostile_path_is_refused_with_a_sentence(workspace: Workspace, path: str, code: Code) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        workspace.read_text(path)
    assert caught.value.code == code
    assert SECRET not in caught.value.message
    assert len(caught.value.message) < 400
    assert caught.value.message.isprintable()


def test_a_file_of_the_limit_is_read_whole_and_a_mark_is_left_out(workspace: Workspace) -> None:
    assert len(workspace.read_text("whole.txt")) == READ_LIMIT
    assert workspace.read_text("marked.txt") == "marked"
    assert workspace.read_text(".git/config") == "[core]\n", "hidden files are read by their path"
    with pytest.raises(VoxbridgeError, match="more than 3 bytes"):
        workspace.read_text("marked.txt", limit=3)


def test_no_race_with_a_folder_that_is_swapped_for_a_link_leads_out(workspace: Workspace, root: Path, outside: Path) -> None:
    """One thread swaps the folder and a link to the outside as fast as it can, the other one reads and writes."""
    (root / "room").mkdir()
    (root / "room/secret.txt").write_text("inside")
    (root / "way-out").symlink_to(outside)
    over = threading.Event()
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    room, way_out = os.fsencode(root / "room"), os.fsencode(root / "way-out")

    def swap() -> None:
        while not over.is_set():
            assert exchange(AT_FDCWD, room, AT_FDCWD, way_out, RENAME_EXCHANGE) == 0

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = {"inside": 0, "refused": 0}
    try:
        place = workspace_place(workspace)
        for turn in range(3_000):
            try:
                text = workspace.read_text(place)
                assert text == "inside"
                workspace.write(f"room/new-{turn}.txt", "x", replace=True)
                seen["inside"] += 1
            except VoxbridgeError:
                seen["refused"] += 1
    finally:
        over.set()
        swapping.join()
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"], "nothing was written outside"
    assert seen["inside"]
    assert seen["refused"]


def workspace_place(workspace: Workspace) -> Place:
    while True:
        with suppress(VoxbridgeError):
            return workspace.find("room/secret.txt", kind="file")


def test_a_listing_has_files_without_links_hidden_ones_and_what_was_installed(workspace: Workspace, root: Path) -> None:
    (root / "node_modules/left").mkdir(parents=True)
    (root / "node_modules/left/index.js").write_text("")
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).mkdir()
    names = [place.name for place in workspace.listing().places]
    assert names == [
        "README.md",
        "binary.bin",
        "huge.txt",
        "lib/util.py",
        "marked.txt",
        "src/core.py",
        "src/user_service.py",
        "src/util.py",
        "whole.txt",
        "zero.txt",
    ]
    assert [place.name for place in workspace.listing(workspace.find("src"), suffixes=(".py",)).places] == names[5:8]
    assert [place.name for place in workspace.listing(kind="folder").places] == ["lib", "src"]


def test_a_listing_ends_at_its_limits_and_says_so(tmp_path: Path) -> None:
    workspace = Workspace([tmp_path])
    workspace.write("/".join(["d"] * (DEPTH_LIMIT + 1)) + "/deep.txt", "")
    workspace.write("/".join(["d"] * DEPTH_LIMIT) + "/in.txt", "")
    listing = workspace.listing()
    assert ([place.parts[-1] for place in listing.places], listing.complete) == (["in.txt"], False)
    assert workspace.listing(limit=DEPTH_LIMIT + 2, depth=DEPTH_LIMIT + 2).complete is False
    assert len(workspace.listing(depth=DEPTH_LIMIT + 2).places) == 2
    assert workspace.listing(depth=DEPTH_LIMIT + 2).complete


def test_a_file_is_written_whole_and_never_over_another(workspace: Workspace, root: Path) -> None:
    place = workspace.write("new/deeper/file.txt", "one")
    assert (place.name, workspace.read_text(place)) == ("new/deeper/file.txt", "one")
    with pytest.raises(VoxbridgeError) as caught:
        workspace.write("new/deeper/file.txt", "two")
    assert caught.value.code == Code.CONFLICT
    assert workspace.read_text(place) == "one"
    workspace.write("new/deeper/file.txt", "two", replace=True)
    assert workspace.read_text(place) == "two"
    assert names_in(root / "new/deeper") == ["file.txt"], "nothing is left beside it"


def test_where_a_disk_has_no_hard_links_a_file_is_written_all_the_same(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert workspace.read_text(workspace.write("plain.txt", "text")) == "text"
    with pytest.raises(VoxbridgeError, match="exists"):
        workspace.write("plain.txt", "other")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("link.txt", None),
        ("linked/new.txt", Code.PERMISSION_DENIED),
        ("proc/tmp/new.txt", Code.PERMISSION_DENIED),
        ("../new.txt", Code.PERMISSION_DENIED),
        ("/tmp/voxbridge-new.txt", Code.PERMISSION_DENIED),
        (".git/hooks/pre-commit", Code.PERMISSION_DENIED),
        (".bashrc", Code.PERMISSION_DENIED),
        ("src/.env", Code.PERMISSION_DENIED),
        ("pipe", None),
        ("socket", None),
        ("src", None),
        ("src/core.py/new.txt", None),
        ("bad\0.txt", Code.INVALID_ARGUMENT),
        (".", Code.INVALID_ARGUMENT),
        ("x" * 256, Code.INVALID_ARGUMENT),
    ],
)
def test_nothing_is_written_through_links_or_into_what_is_no_file(
    workspace: Workspace, outside: Path, root: Path, path: str, code: Code | None, replace: bool
) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        workspace.write(path, "planted", replace=replace)
    assert code is None or caught.value.code == code
    assert (outside / "secret.txt").read_text() == SECRET
    assert names_in(outside) == ["secret.txt"]
    assert not [name for name in names_in(root) if name.endswith(".tmp")]


def test_a_text_has_a_limit(workspace: Workspace) -> None:
    workspace.write("most.txt", "x" * READ_LIMIT)
    with pytest.raises(VoxbridgeError) as caught:
        workspace.write("more.txt", "ä" * (READ_LIMIT // 2 + 1))
    assert (caught.value.code, caught.value.limit) == (Code.TOO_LARGE, READ_LIMIT)


def test_of_many_that_make_one_folder_or_file_one_succeeds(workspace: Workspace) -> None:
    made: list[str] = []

    def attempt(number: int) -> None:
        with suppress(VoxbridgeError):
            workspace.make_folder("made/here")
            made.append("folder")
        with suppress(VoxbridgeError):
            workspace.write("one.txt", str(number))
            made.append("file")

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == ["file", "folder"]


def test_a_root_that_is_missing_or_not_writable_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "good").mkdir()
    workspace = Workspace([tmp_path / "good", tmp_path / "none", tmp_path / "file"])
    assert workspace.faults() == [(tmp_path / "none", "does not exist"), (tmp_path / "file", "is no folder")]
    workspace.write("a.txt", "")
    assert [place.name for place in workspace.listing().places] == ["a.txt"], "the roots that are there go on"
    with pytest.raises(VoxbridgeError) as caught:
        Workspace([tmp_path / "none"]).write("a.txt", "")
    assert caught.value.code == Code.UNAVAILABLE
    assert "VOXBRIDGE_WORKSPACE_DIRS" in caught.value.message


@pytest.mark.parametrize("root", ["/", "/proc", "/proc/self/root", "/sys/class", "/dev/shm", "/tmp/../"])
def test_the_whole_machine_is_no_workspace(root: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        Workspace([root])
    assert caught.value.field == "VOXBRIDGE_WORKSPACE_DIRS"


def test_the_default_root_is_in_the_data_folder_and_made_when_it_is_used(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path)
    workspace = Workspace(config.workspace_paths, make=not config.workspace_dirs)
    assert workspace.roots == (tmp_path / "workspace",)
    assert workspace.faults() == []
    assert not (tmp_path / "workspace").exists()
    workspace.write("a.txt", "")
    assert (tmp_path / "workspace/a.txt").exists()
    two = Config(workspace_dirs=f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    assert two.workspace_paths == (tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("core dot py", "core.py"),
        ("a slash b slash c dot t s", "a/b/c.t s"),
        ("my dash file point md", "my-file.md"),
        ("dot env", ".env"),
        ("polka dotted", "polka dotted"),
    ],
)
def test_signs_that_are_said_become_signs(said: str, text: str) -> None:
    assert written(said) == text
