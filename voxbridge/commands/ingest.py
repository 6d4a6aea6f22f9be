"""`voxbridge ingest`: documents of this machine into a knowledge graph.

Owns the words and the look of the command, and which files it takes. Does not own what of a file is text (`voxbridge.shared.document_text`)
nor the graphs (`voxbridge.services.knowledge`), which the running service keeps. Each document is a transaction of its own: what was taken
before an interruption is there, and the next run finds it unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
from nats.aio.client import Client
from rich.console import Console
from rich.progress import Progress

from voxbridge.sessions.eventlog import opened
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.document_text import SUFFIXES, content_limit, text_of
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import Ingest, Ingested, ask
from voxbridge.shared.workspace import Place, Workspace


class Taken(NamedTuple):
    """Outcome of a file: what the graph holds of it, or why it was left out."""

    source: str
    ingested: Ingested | None = None
    why: str = ""


@click.command()
@click.argument("path", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--graph", metavar="NAME", help="Graph that they go into, which is made if it is new; the name of the first folder by default."
)
@click.option("--account", default="local", show_default=True, metavar="NAME", help="Account whose graph it is.")
def ingest(path: tuple[Path, ...], graph: str | None, account: str) -> None:
    """Put files and folders into a knowledge graph, from which agents answer.

    \b
    Examples:
      voxbridge ingest ~/handbook                    into the graph handbook
      voxbridge ingest docs notes.md --graph work    a folder and a file, into the graph work
      voxbridge knowledge ls                         what the graphs hold

    Text, Markdown, HTML and PDF are read. The same file again changes nothing; a file that changed takes the place of the old one. Status 1
    if a file was left out.
    """
    files = _files(path)
    name = graph or (path[0] if path[0].is_dir() else path[0].absolute().parent).absolute().name
    taken = asyncio.run(_taken(files, name, account))
    changed = [one.ingested for one in taken if one.ingested is not None and one.ingested.changed]
    left = [one for one in taken if one.ingested is None]
    for one in left:
        click.echo(f"left out: {one.source}: {one.why}", err=True)
    into = next((one.ingested.graph for one in taken if one.ingested is not None), name)
    same = len(taken) - len(changed) - len(left)
    passages = sum(one.passages for one in changed)
    click.echo(f"{into}: {len(changed)} of {len(taken)} documents taken ({passages:,} passages), {same} unchanged, {len(left)} left out.")
    if left:
        raise SystemExit(1)


def _files(paths: Sequence[Path]) -> list[tuple[str, Workspace, Place]]:
    """Return the files with the names that answers give as their source: below the folder that was named, with its name."""
    found = []
    for path in (one.absolute() for one in paths):
        folder = Workspace([path if path.is_dir() else path.parent])
        places = folder.listing(suffixes=SUFFIXES).places if path.is_dir() else (folder.find(path.name, kind="file"),)
        found += [(f"{path.name}/{place.name}" if path.is_dir() else place.name, folder, place) for place in places]
    if not found:
        message = f"No file there can be read. Those that can end in {', '.join(SUFFIXES)}."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="path")
    return found


async def _taken(files: Sequence[tuple[str, Workspace, Place]], graph: str, account: str) -> list[Taken]:
    async with opened(Config.from_env(), live=True) as found:
        taken = []
        with Progress(console=Console(stderr=True), transient=True) as bar:
            reading = bar.add_task("Reading", total=len(files))
            for file in files:
                taken.append(await _ingested(found.log.nc, file, graph, account))
                bar.advance(reading)
        return taken


async def _ingested(nc: Client, file: tuple[str, Workspace, Place], graph: str, account: str) -> Taken:
    source, folder, place = file
    try:
        title, text = text_of(place.parts[-1], folder.read_bytes(place, limit=content_limit(place.name)))
        asked = Ingest(account=account, graph=graph, source=source, title=title or place.parts[-1], text=text, at=SystemClock().now_us())
        ingested: Ingested = await ask(nc, asked)
        return Taken(source, ingested)
    except VoxbridgeError as error:
        if error.field not in ("path", "source"):  # another file would fail in the same way
            raise
        return Taken(source, why=error.message)
