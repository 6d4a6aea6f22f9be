"""`python -m bench.choice`: measure choosing among many functions with a models service of its own, and print the table."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from bench.areas.choices import measured
from bench.choice import page, sets


@click.command()
@click.option(
    "--set", "name", type=click.Choice(["held_out", "unseen", "validation", "development"]), default="held_out", show_default=True
)
@click.option("--every", default=1, show_default=True, help="Ask every so many of the requests.")
@click.option("--misses", is_flag=True, help="Print what was answered wrongly; for the development and validation sets.")
@click.option("--unread", is_flag=True, help="Ask before the whole prompt has been read: each request has a short one.")
@click.option(
    "--known",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of functions' names, one a line: the others are neither offered nor asked for. For a comparison with an older version.",
)
@click.option("--publish", is_flag=True, help="Write the table into docs/models.md.")
def main(name: sets.Name, every: int, *, misses: bool, unread: bool, known: Path | None, publish: bool) -> None:
    """Ask the local model the requests of a set."""
    if publish and (unread or known):
        raise click.UsageError(
            "The table in docs/models.md is of all functions, with a prompt that has been read: leave --unread, --known out."
        )
    functions = sets.known(frozenset(known.read_text(encoding="utf-8").split())) if known else None
    found = asyncio.run(measured(name, click.echo, every=every, unread=unread, functions=functions))
    click.echo(page.table(found))
    for answer in found.answers if misses else ():
        if not answer.arguments_right:
            click.echo(
                f"{answer.kind}: {answer.said!r}: {answer.tool or 'words'}, not {answer.called or answer.words!r} {answer.arguments}"
            )
    if publish:
        page.publish(found)


if __name__ == "__main__":
    main()
