"""`voxbridge keys`: the keys of providers, set and removed in the running gateway.

Owns the words of these commands. Does not own the keys (`voxbridge.shared.secrets.provider_keys`). A key is
read from standard input or a hidden prompt. It is never an argument, since every user of the machine sees those, and never printed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click
import msgspec
from rich.console import Console
from rich.table import Table

from voxbridge.commands.gateway import TIMEOUT_S, ask_gateway
from voxbridge.shared.config import Config

_READ: Final = 4_096
"""Characters that are read from standard input: more than any key has, so that a longer text is refused and not cut."""


@click.group()
def keys() -> None:
    """The keys of the providers that agents talk to: which are set, and setting them.

    \b
    Examples:
      voxbridge keys ls                        which are set, and where they are from; never the keys
      voxbridge keys set gemini                asks for the key, and shows nothing of it
      voxbridge keys set openai < key.txt      reads it from a file
      voxbridge keys forget gemini             removes the stored one; that of the environment counts again
      voxbridge keys rotate                    makes another key for the vault that they are sealed in

    PROVIDER is gemini, anthropic, openai, or the name of an endpoint of VOXBRIDGE_ENDPOINTS. The commands talk to the gateway that runs
    on this machine; a key counts for whatever is begun from then on. It is stored encrypted, in Valkey.
    """


@keys.command("rotate")
@click.option("--also", multiple=True, type=click.Path(path_type=Path, dir_okay=False), help="Another file with the vault key.")
@click.option("--public", type=click.Path(path_type=Path, dir_okay=False), help="The file with its public half, where it is another's.")
def rotate(also: tuple[Path, ...], public: Path | None) -> None:
    """Make another vault key, and seal anew what was sealed for the one before: the keys of providers and of recordings.

    \b
    Example:
      voxbridge keys rotate

    It may be done while calls go on. If it is cut off, run it again: until it is through, both keys open.
    """
    config = Config.from_env()
    sealed = asyncio.run(_rotate(config, (config.vault_key_path, *also), public or config.vault_public_key_path))
    click.echo(f"There is a new vault key; {sealed} sealed keys were sealed anew.")


async def _rotate(config: Config, opens: tuple[Path, ...], public: Path) -> int:
    from voxbridge.installation.rotation import rotate as rotated
    from voxbridge.sessions.erase import stores
    from voxbridge.shared.store.connection import connect_redis

    if config.redis_url:
        redis = await connect_redis(config.redis_url, timeout_s=TIMEOUT_S, password_file=config.redis_password_file)
        try:
            return await rotated(redis, opens, (public,))
        finally:
            await redis.aclose()
    async with stores(config) as (_, redis):
        return await rotated(redis, opens, (public,))


@keys.command("ls")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_keys(as_json: bool) -> None:
    """List providers and endpoints, and where the key of each is from.

    \b
    Example:
      voxbridge keys ls --json
    """
    found = ask_gateway("GET", "/api/config/keys").json()["keys"]
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("provider", "key", "variable"):
        table.add_column(name, no_wrap=True)
    for name, one in found.items():
        table.add_row(name, one["source"], " or ".join(one["variables"]))
    Console(soft_wrap=True, highlight=False).print(table)


@keys.command("set", context_settings={"allow_extra_args": True})
@click.argument("provider")
@click.pass_context
def set_key(ctx: click.Context, provider: str) -> None:
    """Store the key of PROVIDER, read from standard input or, at a terminal, asked for.

    \b
    Examples:
      voxbridge keys set gemini
      pass show gemini | voxbridge keys set gemini
    """
    if ctx.args:  # click's own error would repeat the key
        raise click.UsageError("A key is never an argument: every user of this machine sees those. It is read from standard input.")
    ask_gateway("POST", "/api/config/keys", json={"provider": provider, "key": _read(provider)})
    click.echo(f"The key of {provider} is stored.")


@keys.command("forget")
@click.argument("provider")
def forget_key(provider: str) -> None:
    """Remove the stored key of PROVIDER.

    \b
    Example:
      voxbridge keys forget gemini
    """
    ask_gateway("DELETE", f"/api/config/keys/{quote(provider, safe='')}")
    click.echo(f"No key of {provider} is stored.")


def at_a_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def _read(provider: str) -> str:
    if at_a_terminal():
        return str(click.prompt(f"Key of {provider}", hide_input=True)).strip()
    try:
        return sys.stdin.read(_READ).strip()
    except UnicodeDecodeError:
        raise click.UsageError("What came on standard input is not text.") from None
