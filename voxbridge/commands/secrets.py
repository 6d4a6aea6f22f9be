"""`voxbridge secrets`: secrets of accounts for the handlers of their pages, set and erased in the running gateway.

Owns the words of these commands. Does not own the secrets (`voxbridge.shared.platform.secrets`). A value is read from standard input or a
hidden prompt; it is never an argument, since every user of the machine sees those, and never printed.
"""

from __future__ import annotations

import sys
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from voxbridge.commands.gateway import ask_gateway

_READ: Final = 4_096
"""Characters that are read from standard input: more than any value has, so that a longer one is refused and not cut."""

_ACCOUNT = click.option("--account", default="local", show_default=True, metavar="NAME", help="Account whose they are.")
_LIVE = click.option("--live", is_flag=True, help="For sessions of live keys. Without it: for those of test keys.")


@click.group()
def secrets() -> None:
    """Secrets that the handlers of an account's pages may send, and to whom.

    \b
    Examples:
      voxbridge secrets set WEATHER --host api.weather.example             asks for the value, and shows nothing of it
      voxbridge secrets set SHOP --host *.shop.example --header x-shop-key --live < key.txt
      voxbridge secrets set HOOK --signs                                   signs with ctx.hmac, and goes nowhere
      voxbridge secrets ls                                                 names and rules, never a value
      voxbridge secrets forget WEATHER

    A handler has a stand-in, `ctx.secrets.WEATHER`, that is worth something only in a request to these hosts; docs/platform.md explains it.
    """


@secrets.command("set")
@click.argument("name")
@_ACCOUNT
@_LIVE
@click.option("--host", "hosts", multiple=True, help="A host that it may go to, such as api.example.com; may be given more than once.")
@click.option("--header", "headers", multiple=True, help="A header that it may stand in; usual: authorization and x-api-key.")
@click.option("--query", is_flag=True, help="It may stand in the query of an address.")
@click.option("--body", is_flag=True, help="It may stand in the body.")
@click.option("--signs", is_flag=True, help="Handlers may sign with it by ctx.hmac.")
def set_secret(name: str, account: str, live: bool, hosts: tuple[str, ...], headers: tuple[str, ...], **may: bool) -> None:
    """Store a secret, in place of one of the same name. Calls that begin from now on have it."""
    value = click.prompt("Value", hide_input=True) if sys.stdin.isatty() else sys.stdin.read(_READ).strip()
    rule = {"hosts": hosts, **({"headers": headers} if headers else {}), **may}
    path = f"/api/secrets/{_environment(live)}/{name}"
    ask_gateway("PUT", path, params={"account": account}, json={"value": value, "rule": rule})
    click.echo(f"The {_environment(live)} secret {name} of {account} is set.")


@secrets.command("ls")
@_ACCOUNT
def list_secrets(account: str) -> None:
    """List the secrets of an account."""
    known = ask_gateway("GET", "/api/secrets", params={"account": account}).json()["secrets"]
    if not known:
        click.echo(f"{account} has no secret. `voxbridge secrets set NAME --host HOST` stores one.")
        return
    table = Table("name", "for", "may go to", "in", box=None)
    for one in known:
        rule = one["rule"]
        places = [*rule.get("headers", ["authorization", "x-api-key"]), *(place for place in ("query", "body", "signs") if rule.get(place))]
        table.add_row(one["name"], one["environment"], ", ".join(rule.get("hosts", [])) or "nowhere", ", ".join(places))
    Console().print(table)


@secrets.command("forget")
@click.argument("name")
@_ACCOUNT
@_LIVE
def forget(name: str, account: str, live: bool) -> None:
    """Erase a secret."""
    ask_gateway("DELETE", f"/api/secrets/{_environment(live)}/{name}", params={"account": account})
    click.echo(f"The {_environment(live)} secret {name} of {account} is erased.")


def _environment(live: bool) -> str:
    return "live" if live else "test"
