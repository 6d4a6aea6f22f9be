"""`python -m bench.choice`: measure choosing among many functions with a models service of its own, and print the table."""

from __future__ import annotations

import asyncio

import click

from bench.areas.choices import measured
from bench.choice import page, sets


@click.command()
@click.option("--set", "name", type=click.Choice(["held_out", "validation", "development"]), default="held_out", show_default=True)
@click.option("--every", default=1, show_default=True, help="Ask every so many of the requests.")
@click.option("--misses", is_flag=True, help="Print what was answered wrongly; for the development and validation sets.")
@click.option("--unread", is_flag=True, help="Ask before the whole prompt has been read: each request has a short one.")
@click.option("--publish", is_flag=True, help="Write the table into docs/models.md.")
def main(name: sets.Name, every: int, *, misses: bool, unread: bool, publish: bool) -> None:
    """Ask the local model the requests of a set."""
    if publish and unread:
        raise click.UsageError("The table in docs/models.md is of a prompt that has been read: leave --unread out.")
    found = asyncio.run(measured(name, click.echo, every=every, unread=unread))
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
