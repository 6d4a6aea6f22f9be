"""`python -m bench.choice`: measure choosing among many functions with a models service of its own, and print the table."""

from __future__ import annotations

import asyncio

import click

from bench.areas.choices import measured
from bench.choice import page, sets


@click.command()
@click.option("--set", "name", type=click.Choice(["held_out", "development"]), default="held_out", show_default=True)
@click.option("--every", default=1, show_default=True, help="Ask every so many of the requests.")
@click.option("--misses", is_flag=True, help="Print what was answered wrongly; for the development set.")
@click.option("--publish", is_flag=True, help="Write the table into docs/models.md.")
def main(name: sets.Name, every: int, *, misses: bool, publish: bool) -> None:
    """Ask the local model the requests of a set."""
    found = asyncio.run(measured(name, click.echo, every=every))
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
