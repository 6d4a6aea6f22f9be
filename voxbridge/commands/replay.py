"""`voxbridge replay`: the recorded inputs of a call taken again, and what comes of them compared.

Owns the words and the exit codes: 0 when nothing differs, 1 when something does, 2 when the recording cannot be read.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from voxbridge.sessions import archive, replay, report
from voxbridge.sessions.eventlog import opened
from voxbridge.shared import events
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError

CANNOT_TELL: Final = 2


@click.command("replay")
@click.argument("source", metavar="SID|FILE")
@click.option("--service", type=click.Choice(replay.NAMES), help="Only this one; otherwise every service that took part.")
@click.option("--limit", default=replay.SHOWN, show_default=True, type=click.IntRange(1), help="Differences to print.")
@click.option("--unfinished", is_flag=True, help="The last events may be missing: the call goes on, or its process was killed.")
def replay_session(source: str, service: str | None, limit: int, unfinished: bool) -> None:
    """Take the recorded inputs of a call again, and compare what comes of them with what was recorded.

    \b
    Examples:
      voxbridge replay 4f1c
      voxbridge replay call.jsonl --service voice
      voxbridge replay @local                 the calls of functions that belong to no session
      voxbridge replay :work-1f2e3d-18f3a     the life of a terminal

    Nothing is called and nothing is written: models, tools and clocks are as they were recorded.
    Exit status 0: no difference. 1: there are differences, which are printed. 2: the recording cannot be read.
    """
    different = False
    with cannot_tell():
        path = Path(source)
        log = archive.read(path).log if path.is_file() or path.suffix else asyncio.run(_read(source))
        for name in replay.chosen(log, service):
            replayed = replay.run(log, name)
            different = different or not replay.same(replayed, unfinished=unfinished)
            for line in replay.report(replayed, unfinished=unfinished, limit=limit):
                click.echo(line)
    if different:
        sys.exit(1)


async def _read(sid: str) -> list[events.Recorded]:
    async with opened(Config.from_env()) as found:
        return [one async for one in found.log.read_all(await report.find(found.log, sid))]


@contextmanager
def cannot_tell() -> Iterator[None]:
    """Print the error of a recording that cannot be read, and end with `CANNOT_TELL`."""
    try:
        yield
    except VoxbridgeError as error:
        click.echo(error.message, err=True)
        sys.exit(CANNOT_TELL)
