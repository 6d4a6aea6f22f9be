"""`voxbridge knowledge`: the knowledge graphs of an account, and making their indexes again.

Owns the words and the look of these commands. Does not own the graphs (`voxbridge.services.knowledge`), which the running service is asked
about.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TypeVar

import click
import msgspec
from rich.console import Console
from rich.table import Table

from voxbridge.sessions.eventlog import opened
from voxbridge.shared.config import Config
from voxbridge.shared.knowledge import ListGraphs, Question, Rebuild, Replay, ask

_A = TypeVar("_A", bound=msgspec.Struct)
_ACCOUNT = click.option("--account", default="local", show_default=True, metavar="NAME", help="Account whose graphs they are.")


@click.group()
def knowledge() -> None:
    """The knowledge graphs of an account: what there is, and their indexes.

    \b
    Examples:
      voxbridge knowledge ls                        the graphs, and how much each holds
      voxbridge knowledge ls --account ada          those of another account
      voxbridge knowledge rebuild                   make the indexes again from the graphs' files
      voxbridge knowledge replay                    compare the graphs with what is made of their documents now

    Documents are put into graphs by `voxbridge ingest` and by the function ingest_to_kg; docs/knowledge.md explains what becomes of them.
    """


@knowledge.command("ls")
@_ACCOUNT
def list_graphs(account: str) -> None:
    """List the graphs, with how much each holds."""
    found = _ask(ListGraphs(account=account))
    console = Console(highlight=False)
    if not found.graphs:
        console.print(f"{account} has no knowledge graph. Put documents into one: voxbridge ingest FOLDER", markup=False)
        return
    table = Table("graph", "documents", "passages", "entities", "relations", "last document", title=f"searched by {found.by}")
    for one in found.graphs:
        when = datetime.fromtimestamp(one.changed / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC") if one.changed else ""
        table.add_row(one.name, *(f"{number:,}" for number in (one.documents, one.passages, one.entities, one.relations)), when)
    console.print(table)


@knowledge.command()
@_ACCOUNT
def rebuild(account: str) -> None:
    """Make the indexes of the account's graphs again from their files. Searches wait for it, some seconds for 10,000 passages."""
    done = _ask(Rebuild(account=account))
    click.echo(f"The indexes of {done.graphs} graph{'' if done.graphs == 1 else 's'} of {account} were made again.")


@knowledge.command()
@_ACCOUNT
def replay(account: str) -> None:
    """Give the documents of the account's graphs to the current rules, and compare what comes out with what is kept. Status 1 where it
    differs: `ingest_to_kg` with a changed document, or a graph that is made anew, brings the new rules' entities."""
    done = _ask(Replay(account=account))
    for difference in done.differences:
        click.echo(difference)
    scope = (
        f"{done.graphs} graph{'' if done.graphs == 1 else 's'}, {done.documents:,} documents, {done.readings:,} passages read by a model"
    )
    click.echo(f"knowledge: {len(done.differences) or 'no'} difference{'' if len(done.differences) == 1 else 's'} ({scope})")
    if done.differences:
        raise SystemExit(1)


def _ask(question: Question[_A]) -> _A:
    async def asked() -> _A:
        async with opened(Config.from_env(), live=True) as found:
            return await ask(found.log.nc, question)

    return asyncio.run(asked())
