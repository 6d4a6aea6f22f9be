"""`voxbridge export` and `import`: a call, or the life of a terminal, as a file.

Owns the words of these commands, and that a recording is exported to a file, to a pipe, or as a test. Does not own the file
(`voxbridge.sessions.archive`).
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from voxbridge.commands.replay import cannot_tell
from voxbridge.sessions import archive, otlp, recorded_test, report
from voxbridge.sessions.eventlog import opened
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.ids import new_session_id

_NEW: Final = "new"
_STDOUT: Final = Path("-")


@click.command("export")
@click.argument("sid")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--as-test",
    "folder",
    is_flag=False,
    flag_value=str(recorded_test.FOLDER),
    type=click.Path(path_type=Path, file_okay=False),
    metavar="[DIR]",
    help=f"Write a recording and a test that replays it into DIR, or into {recorded_test.FOLDER}.",
)
@click.option(
    "--wav",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write its recording as a stereo WAV file; `-` is standard output.",
)
@click.option(
    "--otlp", "as_trace", is_flag=True, help="Write it as an OpenTelemetry trace, OTLP in JSON, without the words that were said."
)
def export_session(sid: str, file: Path | None, folder: Path | None, wav: Path | None, as_trace: bool) -> None:
    """Write a call to a file: every event, as JSON Lines. Without FILE to standard output.

    \b
    Examples:
      voxbridge export 4f1c call.jsonl        the call whose id begins with 4f1c
      voxbridge export 4f1c | jq .type        what happened in it
      voxbridge export 4f1c --as-test         a test that replays it, in tests/recorded/
      voxbridge export 4f1c --wav call.wav    the user on the left, the agent on the right
      voxbridge export 4f1c --otlp | curl -H 'Content-Type: application/json' --data-binary @- localhost:4318/v1/traces

    The file holds what was said. It is written for you alone to read.
    """
    if as_trace and (folder is not None or wav is not None):
        raise click.UsageError("--otlp goes without --as-test and --wav.")
    if wav is not None:
        if file is not None or folder is not None:
            raise click.UsageError("--wav goes without FILE and --as-test.")
        if wav != _STDOUT:
            asyncio.run(_export_wav(sid, wav))
        elif sys.stdout.isatty():
            raise click.UsageError("Sound is not written to a terminal. Say into which file it goes; in containers, run it with -T.")
        else:
            asyncio.run(_print_wav(sid))
        return
    if file is not None and folder is not None:
        raise click.UsageError("Either FILE or --as-test.")
    asyncio.run(_export_trace(sid, file) if as_trace else _export(sid, file, folder))


async def _export_trace(sid: str, file: Path | None) -> None:
    async with opened(Config.from_env()) as found:
        sid = await report.find(found.log, sid)
        made = otlp.Trace(sid)
        async for recorded in found.log.read_all(sid):
            made.take(recorded)
    if file is None:
        sys.stdout.buffer.write(made.encode())
        return
    try:
        with archive.whole_file(file) as out:
            out.write(made.encode())
    except OSError as error:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{file} cannot be written: {(error.strerror or str(error)).lower()}.") from error


async def _export(sid: str, file: Path | None, folder: Path | None) -> None:
    async with opened(Config.from_env()) as found:
        sid = await report.find(found.log, sid)
        if folder is None and file is None:
            async for line in archive.export(found.log, sid):
                sys.stdout.buffer.write(line)
            return
        path = file or recorded_test.recording_path(folder or recorded_test.FOLDER, sid)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.whole_file(path) as out:
                lines = 0
                async for line in archive.export(found.log, sid):
                    out.write(line)
                    lines += 1
        except OSError as error:
            raise VoxbridgeError(Code.UNAVAILABLE, f"{path} cannot be written: {(error.strerror or str(error)).lower()}.") from error
    if folder is None:
        click.echo(f"{lines - 1:,} events of {sid} are in {path}", err=True)
        return
    test = recorded_test.write(path)
    click.echo(f"{path}\n{test}\nRun it: pytest {test}")


async def _print_wav(sid: str) -> None:
    # The file is filled in place and its header is written last, so it cannot be written to a pipe directly.
    with TemporaryDirectory(prefix="voxbridge-") as folder:
        path = Path(folder) / "call.wav"
        await _export_wav(sid, path, place="standard output")
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


async def _export_wav(sid: str, path: Path, *, place: str = "") -> None:
    # Valkey's client and numpy take half a second to load: the other commands do without.
    from voxbridge.sessions import wav
    from voxbridge.sessions.erase import stores
    from voxbridge.shared.audio.recordings import DataKeys
    from voxbridge.shared.bus.accounts import RECORDINGS

    config = Config.from_env()
    async with stores(config, user=RECORDINGS) as (log, redis):
        sid = await report.find(log, sid)
        try:
            written = await wav.write(log, DataKeys.of(config, redis), sid, path)
        except OSError as error:
            raise VoxbridgeError(Code.UNAVAILABLE, f"{path} cannot be written: {(error.strerror or str(error)).lower()}.") from error
    click.echo(f"{written.seconds:.1f} s of {sid} are in {place or path}", err=True)
    if written.missing:
        click.echo(f"{written.missing} blocks of the recording are missing between others, and are silence.", err=True)
    if written.sealed:
        click.echo(f"{written.sealed} blocks of the recording could not be opened, and are silence.", err=True)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--as", "sid", default="", metavar="NEW_SID", help="Under another id: 32 digits of lower-case hex, or `new`.")
def import_session(file: Path, sid: str) -> None:
    """Read a call from a file into the log, where Studio and the other commands find it.

    \b
    Examples:
      voxbridge import call.jsonl
      voxbridge import call.jsonl --as new    a second time, under an id of its own
    """
    sid = new_session_id() if sid == _NEW else sid
    if sid and (len(sid) != len(new_session_id()) or set(sid) - set("0123456789abcdef")):
        raise click.BadParameter("expected 32 digits of lower-case hex, or `new`.", param_hint="--as")

    from voxbridge.sessions.index import list_it  # Valkey's client takes a third of a second to load

    async def load() -> tuple[str, int]:
        async with opened(Config.from_env(), make=True) as found:
            written, count, began = await archive.load(found.log, file, sid=sid)
            if not subjects.life_of(written):  # the list is of sessions
                await list_it(found.redis_url, written, began, password_file=found.redis_password_file)
            return written, count

    with cannot_tell():
        written, count = asyncio.run(load())
    click.echo(f"{count:,} events were imported. See them: voxbridge sessions show {written}")
