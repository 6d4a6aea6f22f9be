"""`voxbridge token`: an access token for a user who is not an administrator.

Owns the words of this command. Does not own the content of a token (`voxbridge.shared.secrets.access_tokens`). It sends no request: a user
that can read the file of the administrators' token can sign.
"""

from __future__ import annotations

import re
import time
from typing import Final

import click

from voxbridge.services.gateway.core.messages import MODES
from voxbridge.shared.config import Config
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Wishes
from voxbridge.shared.secrets.secret_file import admin_token_file

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@click.command("token")
@click.option("--account", default="", help="Whose notes and sessions it reaches. Without it: an account of its own.")
@click.option("--agent", "agents", multiple=True, help="An agent or a pipeline that may be called; may be given more than once.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), help="A mode that may be called; may be given more than once.")
@click.option("--model", "models", multiple=True, help="A model that may be chosen. Without it: none beside the usual one.")
@click.option("--prompt", is_flag=True, help="Its holder may give a system prompt.")
@click.option("--calls", default=0, help="How many calls it may start; 0 for any number.")
@click.option("--for", "duration", default="1h", help="How long it counts: `90s`, `15m`, `12h`, `7d` at most.")
@click.option("--link", is_flag=True, help="Print the address of Studio with the token in it.")
def token(
    account: str,
    agents: tuple[str, ...],
    modes: tuple[str, ...],
    models: tuple[str, ...],
    prompt: bool,
    calls: int,
    duration: str,
    link: bool,
) -> None:
    """Print an access token: what calls are started with where others than this machine reach the gateway.

    \b
    Examples:
      voxbridge token --link                               a link to Studio that counts for an hour
      voxbridge token --agent local-team --calls 3         three calls with one pipeline, and nothing else
      voxbridge token --account ada --mode local --for 7d  with the notes of ada, for a week

    A page says it as `token` (docs/studio.md), a request as `Authorization: Bearer`. It is stored nowhere and cannot be taken back one by
    one: a new administrators' token makes all of them void.
    """
    config = Config.from_env()
    wishes = Wishes(account=account, agents=agents, modes=modes, models=models, prompt=prompt, calls=calls, seconds=_seconds(duration))
    terms = access_tokens.terms(wishes, now_s=int(time.time()), modes=MODES)
    made = access_tokens.sign(terms, admin_token_file(config).ensure())
    click.echo(f"{_studio(config)}/#token={made}" if link else made)


def _seconds(duration: str) -> int:
    found = re.fullmatch(r"(\d{1,7})([smhd])", duration)
    if found is None:
        raise click.BadParameter(f"{duration!r} is not a duration: a number and s, m, h or d.", param_hint="--for")
    return int(found[1]) * _UNITS[found[2]]


def _studio(config: Config) -> str:
    """Return the address at which people find Studio: the first of the allowed origins, if there is one."""
    first = config.allowed_origins.split(",")[0].strip()
    return first.rstrip("/") or config.own_url
