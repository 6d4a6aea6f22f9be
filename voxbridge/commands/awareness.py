"""`voxbridge awareness`: what agents are told of a user's screen, and making it again from the log.

Owns the words and the look of these commands. Does not own what is known (`voxbridge.services.awareness`), which the running service is
asked for.
"""

from __future__ import annotations

import asyncio
from typing import Final

import click

from voxbridge.sessions.eventlog import opened
from voxbridge.shared.awareness.prompt import part
from voxbridge.shared.awareness.view import SOURCES
from voxbridge.shared.awareness_client import AskRebuild, AskView, Known, Rebuilt, ask
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config

WITHIN_S: Final = 30.0
_ACCOUNT = click.option("--account", default="local", show_default=True, metavar="NAME", help="Account whose screen it is.")


@click.group()
def awareness() -> None:
    """The user's screen as agents know it: pages, errors, and what pages state.

    \b
    Examples:
      voxbridge awareness show                      what agents are told now, word for word
      voxbridge awareness show --account ada        the same of another account
      voxbridge awareness rebuild                   fold the log again, and compare

    The switches of the sources are in Studio, and at PUT /api/vox/awareness/sources/NAME; docs/awareness.md explains the rest.
    """


@awareness.command()
@_ACCOUNT
def show(account: str) -> None:
    """Print what agents are told, word for word, and the sources that are off."""
    known = asyncio.run(_known(account))
    text = part(known.view, SystemClock().now_us())
    click.echo(text or f"Nothing is known of the screen of {account}.")
    for source in SOURCES:
        if source in known.off:
            click.echo(f"The source {source} is off: nothing of it is kept.", err=True)


@awareness.command()
@_ACCOUNT
def rebuild(account: str) -> None:
    """Fold the log of an account's screen again, and compare with what the service has. Ends with status 1 where they differ."""
    done = asyncio.run(_rebuilt(account))
    what = "equal to what the service had" if done.equal else "NOT equal to what the service had, which has the new state now"
    click.echo(f"{done.inputs:,} inputs of {account} were folded in {done.ms:,} ms: {what}.")
    if not done.equal:
        raise click.exceptions.Exit(1)


async def _known(account: str) -> Known:
    async with opened(Config.from_env(), live=True) as found:
        return await ask(found.log.nc, AskView(account=account))


async def _rebuilt(account: str) -> Rebuilt:
    async with opened(Config.from_env(), live=True) as found:
        return await ask(found.log.nc, AskRebuild(account=account), within_s=WITHIN_S)
