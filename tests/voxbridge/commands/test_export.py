"""Export and import of a call, and the test that is made of one, from the command line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.voxbridge.commands.call_files import SID, data, file, run
from voxbridge.installation.preflight import FolderLock
from voxbridge.sessions import archive
from voxbridge.shared import events
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import session_file
from voxbridge.shared.log.reader import Log

__all__ = ["data", "file"]  # fixtures

ROOT = Path(__file__).resolve().parents[3]


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def in_order(path: Path) -> list[bytes]:
    """Return the lines of a file as if the log had begun with this session."""
    found: list[bytes] = []
    positions: dict[int, int] = {}
    for number, header, line in archive.lines(path):
        moved = session_file.renumbered(line, len(found) + 1, positions, number)
        positions[line.seq] = len(found) + 1
        found.append(msgspec.json.encode(moved) + session_file.payload(moved, header.sid))
    return found


def test_export_then_import_then_export_gives_the_same_session(file: Path, data: Path, tmp_path: Path) -> None:
    done = run("import", file)
    assert (done.exit_code, f"sessions show {SID}" in done.stdout) == (0, True), done.output
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert run("export", SID, first).exit_code == 0
    assert lines(first)[1:] == lines(file)[1:]
    other = new_session_id()
    assert run("import", first, "--as", other).exit_code == 0
    assert run("export", other[:12], second).exit_code == 0
    assert in_order(second) == in_order_as(first, other)
    assert lines(second)[1]["seq"] > lines(first)[-1]["seq"]
    for name in (SID, other, first, second):
        assert run("replay", name).exit_code == 0


def in_order_as(path: Path, sid: str) -> list[bytes]:
    """Return `in_order` with the session under another id."""
    text = path.read_bytes()
    moved = path.with_suffix(".moved")
    head, _, rest = text.partition(b"\n")
    moved.write_bytes(head.replace(SID.encode(), sid.encode()) + b"\n" + rest)
    return in_order(moved)


def test_an_import_never_writes_into_a_session_that_is_there(file: Path, data: Path) -> None:
    assert run("import", file).exit_code == 0
    again = run("import", file)
    assert (again.exit_code, "--as" in again.stderr) == (2, True)
    listed = run("sessions", "show", SID, "--json")
    assert msgspec.json.decode(listed.stdout)["events"] == len(lines(file)) - 1
    new = run("import", file, "--as", "new")
    assert new.exit_code == 0
    assert len(run("sessions", "ls", "--json").stdout.splitlines()) == 2


def test_an_import_that_is_refused_halfway_leaves_nothing(file: Path, data: Path) -> None:
    text = file.read_bytes().splitlines(keepends=True)
    gone = next(at for at, line in enumerate(text) if b'"type":"playback.reported"' in line)
    del text[gone]
    text[0] = session_file.header(SID, exported_at_ms=1, events=len(text) - 1)
    file.write_bytes(b"".join(text))
    done = run("import", file)
    assert (done.exit_code, "which is not in the file" in done.stderr) == (2, True), done.output
    assert run("sessions", "ls").stdout == "The log holds no calls.\n"


@pytest.mark.parametrize("sid", ["x", "0" * 31, "G" * 32, "../" + "0" * 29])
def test_an_import_under_an_id_that_is_none_is_refused(file: Path, data: Path, sid: str) -> None:
    assert run("import", file, "--as", sid).exit_code == 2
    assert not data.exists()


def test_an_export_of_an_unknown_session_names_the_nearest(file: Path, data: Path, tmp_path: Path) -> None:
    run("import", file)
    done = run("export", SID[:-1] + "0", tmp_path / "out.jsonl")
    assert isinstance(done.exception, VoxbridgeError)
    assert done.exception.code == Code.NOT_FOUND
    assert SID in done.exception.message
    assert not (tmp_path / "out.jsonl").exists()


def test_an_exported_file_is_its_owners_only(file: Path, data: Path, tmp_path: Path) -> None:
    run("import", file)
    run("export", SID, tmp_path / "out.jsonl")
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["call.jsonl", "data", "out.jsonl"]


def test_a_recorded_call_becomes_a_test_that_fails_when_the_behaviour_is_changed(file: Path, data: Path, tmp_path: Path) -> None:
    run("import", file)
    made = run("export", SID, "--as-test", tmp_path / "recorded")
    assert made.exit_code == 0, made.output
    test = tmp_path / "recorded" / "test_call_01234567.py"
    assert str(test) in made.stdout
    assert subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", test], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-m", "ruff", "format", "--check", "--line-length=140", test], check=False).returncode == 0

    def pytest_of(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(test), *more]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": "/nonexistent"}
    passed = pytest_of()
    assert (passed.returncode, "1 passed" in passed.stdout) == (0, True), passed.stdout
    (tmp_path / "changed.py").write_text("from voxbridge.services.voice.core import opening\nbefore = opening.open_session\n"
        "def changed(d, input):\n    before(d, input)\n    d.counters.turns = 40\nopening.open_session = changed\n")  # fmt: skip
    env["PYTHONPATH"] += f":{tmp_path}"
    failed = pytest_of("-p", "changed")
    assert failed.returncode == 1
    for words in ("data.turn", "recorded 1", "replayed 41", "caused by input"):
        assert words in failed.stdout


def test_as_test_writes_where_tests_are_unless_told_otherwise(
    file: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", file)
    monkeypatch.chdir(tmp_path)
    assert run("export", SID, "--as-test").exit_code == 0
    assert (tmp_path / "tests" / "recorded" / "call_01234567.jsonl").is_file()


def test_file_and_as_test_exclude_each_other(data: Path, tmp_path: Path) -> None:
    assert run("export", SID, tmp_path / "x", "--as-test", tmp_path).exit_code == 2


async def test_a_session_of_a_hundred_thousand_events_is_exported_in_bounded_memory(tmp_path: Path) -> None:
    count = 100_000
    with NatsServer(tmp_path / "nats", sync_interval="1m") as server:
        client = await connect_nats(server.url, "test", pending=EVENTS_PENDING)
        log = Log(client)
        await log.ensure_streams(retention_days=1)
        event = events.gateway.PlaybackReported(generation=1, played_ms=1, state="playing")
        for number in range(count):
            stored = events.encode(event, event_id=f"{SID}.gateway.{number}", sid=SID, ts=number, cause=None)
            await client.publish(f"vx.s.{SID}.ev.gateway.i.playback.reported", stored)
            if number % 5_000 == 0:
                await client.flush()
        await client.flush()
        while await archive.count(log, SID) < count:
            pass
        path, largest = tmp_path / "large.jsonl", 0
        with archive.whole_file(path) as out:
            async for line in archive.export(log, SID):
                largest = max(largest, out.write(line))
        await close_nats(client)
    assert largest < 1_000
    assert sum(1 for _ in archive.lines(path)) == count


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    path.write_text("the old one")
    with pytest.raises(TypeError), archive.whole_file(path) as out:
        out.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("call.jsonl", "the old one")]


def test_without_a_log_one_line_says_what_to_do(data: Path) -> None:
    for arguments in (("sessions", "ls"), ("export", SID), ("sessions", "tail")):
        done = run(*arguments)
        assert isinstance(done.exception, VoxbridgeError)
        assert "voxbridge up" in done.exception.message
        assert "\n" not in done.exception.message
    assert not data.exists()


def test_a_folder_that_somebody_holds_is_not_touched(file: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("import", file)
    monkeypatch.setattr("voxbridge.sessions.eventlog.TURN_S", 0.2)
    lock = FolderLock.take(data, "somebody")
    try:
        done = run("sessions", "ls")
        assert isinstance(done.exception, VoxbridgeError)
        assert "somebody" in done.exception.message
    finally:
        lock.release()
    assert run("sessions", "ls").exit_code == 0
