"""`voxbridge erase` and `voxbridge export --wav` on a data folder without a running product: prompts, output, and remaining data."""

from __future__ import annotations

import asyncio
import wave
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.awareness.serving import recorder, visit
from tests.recorded_calls import a_call, file_of
from voxbridge.cli import cli
from voxbridge.services.knowledge.library import Library
from voxbridge.services.terminals.life import Lives
from voxbridge.sessions.erase import stores
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config, Recording
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.tools import NoteRemembered
from voxbridge.shared.events.voice import SessionStarted
from voxbridge.shared.knowledge import Ingest
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.store.store import Note, Store

LIFE = "work-1f2e3d-18f3a2b4c5d"
SID = "0123456789abcdef0123456789abcdef"
WORDS = b"what is the weather like"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder without a running product, with one call in its log."""
    found = tmp_path / "data"
    found.mkdir()
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(found))
    for name in ("VOXBRIDGE_NATS_URL", "VOXBRIDGE_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "call.jsonl"
    file.write_bytes(file_of(a_call(1)))
    assert run("import", str(file)).exit_code == 0
    return found


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=typed)


def holds(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_call_is_erased_from_a_folder_at_rest_and_stays_in_the_list_as_erased(folder: Path) -> None:
    assert holds(folder, WORDS)
    done = run("erase", SID[:6], "--yes", "--by", "Ada")
    assert (done.exit_code, done.stdout.startswith(f"{SID} is erased: {len(a_call(1))} events")) == (0, True)
    assert not holds(folder, WORDS)
    (listed,) = [msgspec.json.decode(line) for line in run("sessions", "ls", "--json").stdout.splitlines()]
    assert (listed["id"], listed["state"], listed["reason"], listed["mode"]) == (SID, "ended", "erased", "local")
    shown = run("sessions", "show", SID).stdout
    assert "erased" in shown
    assert f"by Ada, {len(a_call(1))} events" in shown
    again = run("erase", SID, "--yes")
    assert (again.exit_code, "0 events" in again.stdout) == (0, True)


def test_nothing_is_erased_without_a_yes(folder: Path) -> None:
    asked = run("erase", SID, typed="n\n")
    assert (asked.exit_code, "Nothing was erased." in asked.output) == (1, True)
    assert holds(folder, WORDS)


def test_an_empty_name_and_an_unknown_session_are_refused(folder: Path) -> None:
    assert run("erase", SID, "--by", " ").exit_code == 2
    unknown = run("erase", "ffff", "--yes")
    assert isinstance(unknown.exception, VoxbridgeError)
    assert "the nearest are" in unknown.exception.message
    assert holds(folder, WORDS)


def test_the_life_of_a_terminal_is_replayed_exported_and_erased_once_it_is_closed(folder: Path, tmp_path: Path) -> None:
    async def live(*, close: bool) -> None:
        async with stores(Config(data_dir=folder)) as (log, _):
            await log.ensure_streams(only=(subjects.TERMINALS_STREAM,))
            lives = Lives(log, SystemClock(), f"test-{close}")
            lives.open()
            if close:
                lives.closed(LIFE, "Ada", ())
            else:
                lives.renamed(LIFE, "Ada", "the planted name")
            await lives.close(10.0)

    asyncio.run(live(close=False))
    refused = run("erase", f":{LIFE}", "--yes")
    assert isinstance(refused.exception, VoxbridgeError)
    assert "close it first" in refused.exception.message
    asyncio.run(live(close=True))
    file = tmp_path / "life.jsonl"
    assert run("export", f":{LIFE}", str(file)).exit_code == 0
    for source in (f":{LIFE}", str(file)):
        assert run("replay", source).output == "terminals: no difference (2 inputs, 4 events)\n"
    assert holds(folder, b"the planted name")
    shown = folder / "terminals" / "screens" / LIFE / "1.cast"
    shown.parent.mkdir(parents=True)
    shown.write_bytes(b"the planted name")
    done = run("erase", f":{LIFE}", "--yes", "--by", "Ada")
    assert (done.exit_code, done.stdout.startswith(f":{LIFE} is erased: 4 events")) == (0, True), done.output
    assert not shown.parent.exists()
    assert not holds(folder, b"the planted name")
    unknown = run("erase", ":no-such-life", "--yes")
    assert isinstance(unknown.exception, VoxbridgeError)
    assert unknown.exception.field == "life"


def test_what_is_known_to_an_account_is_erased_with_it(folder: Path) -> None:
    config, marker, note_id = Config(data_dir=folder), "quokka-2317", "0123456789abcdef0123456789abcdff.c1"

    async def plant() -> None:
        async with stores(config) as (log, redis):
            await log.ensure_streams()
            await recorder(log).report("local", visit(f"/{marker}", marker), client="c")
            note = NoteRemembered(note_id=note_id, account="local", text=marker)
            await SessionWriter(log, subjects.account_log("local"), "tools").append(note, ts=SystemClock().now_us(), cause=None)
            await Store(redis).add_note("local", Note(note_id=note_id, text=marker, ts=1))
        library = Library(config.knowledge_path)
        library.take()
        library.ingest(Ingest(account="local", graph="g", source="a.md", title=marker, text=f"The {marker} is planted.", at=1))
        library.close()

    asyncio.run(plant())
    assert len([path for path in folder.rglob("*") if path.is_file() and marker.encode() in path.read_bytes()]) > 1
    done = run("erase", "@local", "--yes", "--by", "Ada")
    assert done.exit_code == 0, done.output
    assert not holds(folder, marker.encode())
    assert holds(folder, WORDS), "a call of the account is erased by its own id"


def test_the_recording_of_a_call_is_exported_from_a_folder_at_rest(folder: Path, tmp_path: Path) -> None:
    async def record() -> None:
        config = Config(data_dir=folder)
        async with stores(config) as (log, redis):
            await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=20_000_000))
            key = await DataKeys.of(config, redis).make(SID)
            began = next(one.ts for one in a_call(1) if isinstance(one.event, SessionStarted)) // 1_000
            frame = frames.pack(frames.PCM16, 0, 0, began + 500, b"\x00\x10" * 320)
            block = recordings.seal(key, SID, [recordings.Frame(0, 1, 1, frame)])
            await log.js.publish(subjects.recorded(SID), block)

    asyncio.run(record())
    path = tmp_path / "call.wav"
    done = run("export", SID, "--wav", str(path))
    assert (done.exit_code, f"of {SID} are in {path}" in done.stderr) == (0, True)
    with wave.open(str(path), "rb") as file:
        pcm = file.readframes(file.getnframes())
    loud = [at for at in range(0, len(pcm), 4) if pcm[at : at + 2] == b"\x00\x10"]
    assert 480 <= loud[0] // 4 // 24 < loud[-1] // 4 // 24 <= 500


def test_a_call_that_was_not_recorded_has_no_wav(folder: Path, tmp_path: Path) -> None:
    refused = run("export", SID, "--wav", str(tmp_path / "call.wav"))
    assert isinstance(refused.exception, VoxbridgeError)
    assert "was not recorded" in refused.exception.message
    assert run("export", SID, str(tmp_path / "call.jsonl"), "--wav", str(tmp_path / "call.wav")).exit_code == 2
    assert not (tmp_path / "call.wav").exists()
    assert folder.is_dir()
