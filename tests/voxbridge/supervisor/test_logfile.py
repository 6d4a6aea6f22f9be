from __future__ import annotations

from pathlib import Path

from voxbridge.supervisor.logfile import LogFile


def test_lines_are_appended_over_restarts(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "logs" / "a.log")
        log.write(line)
        log.close()
    assert (tmp_path / "logs" / "a.log").read_bytes() == b"one\ntwo\n"


def test_a_file_at_its_bound_is_turned_over_and_one_older_is_kept(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", max_bytes=10)
    for line in (b"12345\n", b"abc\n", b"later\n", b"x" * 9 + b"\n", b"last\n"):
        log.write(line)
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"last\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"xxxxxxxxx\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1"]


def test_a_line_longer_than_the_bound_is_kept_whole(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", max_bytes=4)
    log.write(b"longer than that\n")
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"longer than that\n"
