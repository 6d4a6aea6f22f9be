"""Replay of a call, from the command line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.recorded_calls import WORDS, RecordedCall, a_call, file_of
from tests.voxbridge.commands.call_files import data, file, run
from voxbridge.services.voice.core.turns import turns
from voxbridge.sessions import archive, replay
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log import session_file

__all__ = ["data", "file"]  # fixtures


def test_a_recorded_call_replays_with_no_difference(file: Path) -> None:
    done = run("replay", file)
    assert (done.exit_code, done.stdout.split(" (")[0]) == (0, "voice: no difference")


def test_a_changed_rule_is_shown_and_ends_with_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = turns.user_said

    def shouts(d: Any, text: str, **rest: Any) -> None:
        rule(d, text.upper(), **rest)

    monkeypatch.setattr(turns, "user_said", shouts)
    done = run("replay", file, "--service", "voice")
    assert done.exit_code == 1
    for words in ("user.said", "data.text", 'recorded "what is the weather like"', 'replayed "WHAT IS', "caused by input", "into the call"):
        assert words in done.stdout


def test_a_log_that_ends_early_is_different_unless_it_is_said_to_be_unfinished(file: Path) -> None:
    log = a_call(1)
    file.write_bytes(file_of(log[: next(at for at, one in enumerate(log) if one.type == "session.ended")]))
    done = run("replay", file)
    assert (done.exit_code, "--unfinished" in done.stdout) == (1, True)
    assert run("replay", file, "--unfinished").exit_code == 0


def test_a_file_that_cannot_be_read_ends_with_two_and_one_line_that_names_the_place(file: Path) -> None:
    text = file.read_bytes().splitlines(keepends=True)
    text[3] = text[3].replace(b'"ts":', b'"at":')
    file.write_bytes(b"".join(text))
    done = run("replay", file)
    assert (done.exit_code, done.stderr) == (2, "Line 4, ts: Object missing required field `ts`.\n")
    assert run("replay", file.with_name("absent.jsonl")).exit_code == 2
    assert run("replay", file, "--service", "terminal").exit_code == 2


def test_a_file_that_was_cut_or_goes_on_is_not_whole(file: Path) -> None:
    text = file.read_bytes().splitlines(keepends=True)
    for broken in (text[:-1], [*text, text[-1].replace(b'"seq":', b'"seq":9')]):
        file.write_bytes(b"".join(broken))
        with pytest.raises(VoxbridgeError, match="Line 1, events: the file should hold"):
            archive.read(file)


def test_a_line_longer_than_the_limit_is_refused_without_being_read_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(len(line) for line in file.read_bytes().splitlines(keepends=True))
    monkeypatch.setattr(session_file, "LINE_LIMIT", longest)
    assert len(archive.read(file).log) == len(file.read_bytes().splitlines()) - 1
    monkeypatch.setattr(session_file, "LINE_LIMIT", longest - 1)
    with pytest.raises(VoxbridgeError) as caught:
        archive.read(file)
    assert caught.value.code == Code.TOO_LARGE


def test_ten_minutes_of_call_replay_within_three_seconds(tmp_path: Path) -> None:
    call = RecordedCall(greeting="Hello.")
    call.synthesize()
    call.play(1_000, "finished")
    while call.now_ms < 600_000:
        call.turn(WORDS[call.now_ms % len(WORDS)])
    log = call.end()
    path = tmp_path / "long.jsonl"
    path.write_bytes(file_of(log))
    begun = time.process_time()
    assert replay.same(replay.run(archive.read(path).log, "voice"))
    assert time.process_time() - begun < 3.0
