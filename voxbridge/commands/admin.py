"""`voxbridge admin`: one-time setup of an installation whose services have users of their own, and the commands of its containers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from voxbridge.installation import credentials
from voxbridge.installation import streams as work
from voxbridge.shared.config import Config
from voxbridge.shared.service import log_format


@click.group()
def admin() -> None:
    """Make the credentials, the streams and the consumers of an installation whose services have users of their own.

    \b
    docker-compose.yml runs these; see docs/operations.md.
    """


@admin.command("credentials")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--max-file-store", default="16GB", show_default=True, help="Disk that the event log may take.")
def make(folder: Path, max_file_store: str) -> None:
    """Make an nkey for each service, Valkey's password, and both servers' configurations in FOLDER; what is there is kept.

    \b
    Example:
      voxbridge admin credentials /run/secrets/voxbridge
    """
    fresh = credentials.make(folder, sync_interval=Config.from_env().sync_interval, max_file_store=max_file_store)
    click.echo(f"New users: {', '.join(fresh)}." if fresh else "Every user has its credentials.")


@admin.command("streams")
@click.option("--keep", is_flag=True, help="Stay, and make again what a restarted server has forgotten.")
@click.option("--ready", type=click.Path(path_type=Path, dir_okay=False), help="A file that is there while all is made.")
def streams(keep: bool, ready: Path | None) -> None:
    """Make the streams and the consumers, or bring them to the settings in force."""
    config = Config.from_env()
    log_format.configure("admin", config.log_level)
    if keep:
        asyncio.run(work.keep_streams(config, ready))
    else:
        asyncio.run(work.make_streams(config))
        click.echo("The streams and the consumers are as they should be.")
