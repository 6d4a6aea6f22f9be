"""`voxbridge erase`: makes a session unreadable, wherever it is kept.

Owns the words of the command. Does not own the erasing (`voxbridge.sessions.erase`).
"""

from __future__ import annotations

import asyncio
import getpass
import os

import click
from rich.console import Console
from rich.progress import Progress

from voxbridge.sessions import erase as erasing
from voxbridge.sessions import graphs, report, terminal_screens
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError


@click.command("erase")
@click.argument("sid")
@click.option("--by", default=None, metavar="NAME", help="Who asks for it, for the record. By default your login name.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(sid: str, by: str | None, yes: bool) -> None:
    """Make everything that was kept of an ended call unreadable: words, audio, tool calls, and the notes that came from it.

    \b
    Examples:
      voxbridge erase 4f1c                 the call whose id begins with 4f1c
      voxbridge erase 4f1c --yes --by "data protection, ticket 311"
      voxbridge erase @local               what belongs to the account itself: notes, knowledge graphs, calls over REST
      voxbridge erase :work-1f2e3d-18f3a   the log of a closed terminal; `terminals lives` lists them

    What remains is that there was a session, and when and by whom it was erased. It cannot be undone. Files that were exported, and
    copies of the data folder, are not reached (docs/privacy.md). It takes some 5 ms for each event.
    """
    if by is not None and not by.strip():
        raise click.BadParameter("is empty.", param_hint="--by")
    done = asyncio.run(_erase(sid, by or login_name(), yes))
    if done is None:
        click.echo("Nothing was erased.", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"{done.sid} is erased: {done.events:,} events, {done.blocks:,} blocks of audio, {done.notes:,} notes.")
    for left in done.left:
        click.echo(f"Not reached: {left}.", err=True)
    if done.left:
        raise click.exceptions.Exit(1)


def login_name() -> str:
    """Return the name of the user that runs the command; in a container that may be only a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


async def _erase(sid: str, by: str, yes: bool) -> erasing.Erased | None:
    config = Config.from_env()
    async with erasing.stores(config) as (log, redis):
        found = await report.find(log, sid)
        account = subjects.account_of(found)
        life = subjects.life_of(found)
        what = f"what belongs to the account {account} itself" if account else f"the session {found}"
        what = f"the log of the terminal {life}" if life else what
        if not yes and not click.confirm(f"Erase {what}? It cannot be undone", err=True):
            return None
        with Progress(console=Console(stderr=True), transient=True) as bar:
            erasing_it = bar.add_task("Erasing", total=None)

            def progress(done: int, of: int) -> None:
                bar.update(erasing_it, completed=done, total=of)

            left = await terminal_screens.forget(log.nc, config, life, by=by) if life else ""
            try:
                done = await erasing.erase(log, redis, found, by=by, now=SystemClock().now_us(), progress=progress)
            except VoxbridgeError as error:
                if not account or error.code != Code.NOT_FOUND:
                    raise
                done = erasing.Erased(found, 0, 0, 0, ())  # graphs may be all that it has
            if account:  # behind what may refuse it, so that nothing is gone then
                left = await graphs.forget(log.nc, config, account)
            return done._replace(left=(*done.left, left)) if left else done
