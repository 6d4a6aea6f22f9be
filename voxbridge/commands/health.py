"""`voxbridge health`: readiness of one service by its own answer, for the probes of containers and for people."""

from __future__ import annotations

import asyncio
import sys

import click

from voxbridge.installation.health import NAMES, ask
from voxbridge.shared.config import Config


@click.command()
@click.argument("name", type=click.Choice(NAMES))
def health(name: str) -> None:
    """Ask the service NAME on this machine whether it is ready: exit code 0 or 1, and one line.

    \b
    Example:
      docker compose exec voice voxbridge health voice
    """
    ready, line = asyncio.run(ask(Config.from_env(), name))
    click.echo(line, err=not ready)
    sys.exit(0 if ready else 1)
