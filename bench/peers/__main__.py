"""`python -m bench.peers`: install the peers, measure them and the product in the same minutes, print and write the results."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import click
import msgspec
import uvloop
from rich.console import Console

from bench.peers import report, results
from bench.peers.catalogue import PEERS
from bench.peers.measure import compare
from bench.peers.plot import PICTURE, draw
from bench.stack import StackError

WIDTH: Final = 180
"""Columns of the output where there is no terminal."""

NONE_YET: Final = "There are no results yet: run `make bench-peers`."


def chosen(names: str) -> tuple[str, ...]:
    """Return the peers that `--peers` names, all without any; raises `click.BadParameter`."""
    found = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip())) or tuple(PEERS)
    unknown = [name for name in found if name not in PEERS]
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PEERS)}.", param_hint="--peers")
    return found


@click.command(
    epilog="""\b
Examples:
  make bench-peers                                  everything, about nine minutes after the installation
  make bench-peers ARGS="--quick"                   everything, shorter and rougher: about three minutes
  make bench-peers ARGS="--peers pipecat --quick"   one peer
"""
)
@click.option("--peers", default="", metavar="NAMES", help=f"Some of {', '.join(PEERS)}, separated by commas.")
@click.option("--quick", is_flag=True, help="Fewer rounds: to see that it works, not to quote.")
@click.option("--markdown", is_flag=True, help="Measure nothing; print the last results as Markdown.")
def main(peers: str, quick: bool, markdown: bool) -> None:
    """Measure Voxbridge beside its peers and beside one process on the vendor's SDK, all on the same stand-in for Gemini Live.

    Writes bench/out/peers.json and bench/out/peers.png. The peers are installed at pinned releases into .voxbridge/peers, each in an
    environment of its own. One that cannot be had or that fails is named with its error. Exit code 1 when a target is missed. The figures
    that pages quote come from `make bench`, which does the same.
    """
    names = chosen(peers)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    if markdown:
        try:
            click.echo(report.as_markdown(results.load()), nl=False)
        except (FileNotFoundError, msgspec.DecodeError) as error:
            raise click.ClickException(NONE_YET) from error
        return
    began = time.monotonic()

    def say(text: str) -> None:
        # Print one line for each step, so that a log without a terminal shows the progress too.
        console.print(f"[dim]{time.monotonic() - began:5.0f} s[/dim]  {text}", soft_wrap=True)

    try:
        found = uvloop.run(compare(names, quick=quick, say=say))
    except (StackError, OSError, TimeoutError) as error:
        raise click.ClickException(f"The comparison could not begin: {error}") from error
    results.save(found)
    draw(found)
    report.show(found, console)
    here = Path.cwd()
    written = (path.relative_to(here) if path.is_relative_to(here) else path for path in (results.RESULTS, PICTURE))
    console.print(f"Written: {' and '.join(map(str, written))}.")
    for figure in report.missed(found):
        console.print(f"Missed: {figure.what}.", style="red")
    sys.exit(1 if report.missed(found) else 0)


if __name__ == "__main__":
    main()
