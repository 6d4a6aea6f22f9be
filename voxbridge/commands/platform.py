"""`voxbridge platform`: keys of pages and servers, and the configurations that live keys may run, in the running gateway.

Owns the words of these commands. Does not own keys and approvals (`voxbridge.services.gateway.platform`). The text of a key is printed
once, when it is made.
"""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from voxbridge.commands.gateway import ask_gateway
from voxbridge.shared.platform.keys import Wishes

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ACCOUNT = click.option("--account", default="local", show_default=True, metavar="NAME", help="Account whose they are.")


def _seconds(_: click.Context, __: click.Parameter, text: str) -> int:
    if text[:-1].isdigit() and text[-1:] in _UNITS and len(text) < 10:
        return int(text[:-1]) * _UNITS[text[-1]]
    raise click.BadParameter(f"{text!r} is not a duration: a number and s, m, h or d.")


@click.group()
def platform() -> None:
    """Keys with which pages and servers open sessions, and what live keys may run.

    \b
    Examples:
      voxbridge platform make --account shop                       a test key, for pages of this machine
      voxbridge platform make --account shop --live --origin https://shop.example
      voxbridge platform approvals --account shop                  what pages asked for, and what changed
      voxbridge platform approve DIGEST --account shop             lets live keys run it
      voxbridge platform rotate KEY --overlap 1d                   another text; the former one counts for a day

    The keys of providers are `voxbridge keys`; docs/platform.md explains the rest.
    """


@platform.command("make")
@_ACCOUNT
@click.option("--live", is_flag=True, help="For visitors: runs approved configurations only. Without it: a test key.")
@click.option("--secret", is_flag=True, help="A key for servers (`sk_`), which no page may have.")
@click.option(
    "--origin", "origins", multiple=True, help="A page that may use it, such as https://shop.example; may be given more than once."
)
@click.option("--name", default="", help="A name for people.")
@click.option("--mode", default="local", show_default=True, type=click.Choice(["local", "gemini", "openai", "claude"]))
@click.option("--model", default="", help="The model, if not the usual one.")
@click.option("--voice", default="", help="The voice of pages that name none.")
@click.option("--agent", default="", help="An agent or a pipeline of the installation, in place of a mode.")
@click.option("--function", "functions", multiple=True, help="A function of the installation that its calls may use.")
@click.option("--for", "seconds", callback=_seconds, default="0s", help="How long it counts, such as `90d`. Without it: for ever.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", help="A limit, such as concurrent=5; docs/platform.md lists them.")
def make(live: bool, secret: bool, limits: tuple[str, ...], **wanted: Any) -> None:
    """Make a key and print it. It is shown once."""
    wishes = Wishes(
        kind="secret" if secret else "public", environment="live" if live else "test", limits=dict(map(_limit, limits)), **wanted
    )
    made = ask_gateway("POST", "/api/keys", content=msgspec.json.encode(wishes)).json()
    click.echo(made["text"])
    click.echo(f"Its id is {made['key']['id']}. It is not shown again.", err=True)


@platform.command("ls")
@click.option("--account", default="", metavar="NAME", help="Only those of this account.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_keys(account: str, as_json: bool) -> None:
    """List keys; never their texts."""
    found = ask_gateway("GET", "/api/keys", params={"account": account}).json()["keys"]
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("id", "account", "kind", "environment", "origins", "name"):
        table.add_column(name, no_wrap=True)
    for one in found:
        kind = f"{one['environment']}{' (expired)' if one['expired'] else ''}"
        table.add_row(one["id"], one["account"], one["kind"], kind, " ".join(one["origins"]) or "-", one["name"])
    Console(soft_wrap=True, highlight=False).print(table)


@platform.command("use")
@click.argument("key_id", metavar="KEY")
def use(key_id: str) -> None:
    """Show what of the limits of KEY is used today (UTC)."""
    found = ask_gateway("GET", f"/api/keys/{key_id}").json()
    limits, today = found["key"]["limits"], found["today"]
    click.echo(f"calls now      {today['concurrent']:>12,} of {limits['concurrent']:,}")
    click.echo(f"seconds today  {today['seconds']:>12,} of {limits['seconds_a_day']:,}")
    click.echo(f"tokens today   {today['tokens']:>12,} of {limits['tokens_a_day']:,}")
    click.echo(f"calls today    {today['calls']:>12,}")


@platform.command("rotate")
@click.argument("key_id", metavar="KEY")
@click.option("--overlap", callback=_seconds, default="1d", show_default=True, help="How long the former text counts, 30d at most.")
def rotate(key_id: str, overlap: int) -> None:
    """Give KEY another text and print it."""
    click.echo(ask_gateway("POST", f"/api/keys/{key_id}/rotate", json={"overlap": overlap}).json()["text"])


@platform.command("revoke")
@click.argument("key_id", metavar="KEY")
def revoke(key_id: str) -> None:
    """Make KEY count no more, from now on. Calls that it opened go on to their limits."""
    ask_gateway("DELETE", f"/api/keys/{key_id}")
    click.echo(f"{key_id} counts no more.")


@platform.command("approvals")
@_ACCOUNT
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with the sources.")
def approvals(account: str, as_json: bool) -> None:
    """List what is approved, and what waits for it with what changed."""
    found = ask_gateway("GET", "/api/approvals", params={"account": account}).json()
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    for one in found["pending"]:
        click.echo(f"waits     {one['digest']}  from {one['origin']} with the key {one['key']}")
        for path, how in one["changes"].items():
            click.echo(f"          {how:<8} {path}")
    for one in found["approved"]:
        click.echo(
            f"approved  {one['digest']}  by {one['by']}: {', '.join(tool['name'] for tool in one['configuration']['tools']) or 'no tools'}"
        )


@platform.command("approve")
@click.argument("digest", required=False, default="")
@_ACCOUNT
@click.option("--file", "file", type=click.File("rb"), help="JSON with `instructions`, `greeting` and `tools`, in place of DIGEST.")
def approve(digest: str, account: str, file: Any) -> None:
    """Let live keys run the configuration DIGEST, which a page asked for, or the one of a file.

    \b
    Examples:
      voxbridge platform approve 3f0c… --account shop
      voxbridge platform approve --account shop --file agent.json
    """
    if bool(digest) == bool(file):
        raise click.UsageError("Name either DIGEST or --file.")
    body: dict[str, Any] = {"account": account}
    if file:
        try:
            body["configuration"] = msgspec.json.decode(file.read())
        except msgspec.DecodeError as error:
            raise click.UsageError(f"The file is not JSON: {error}.") from None
    else:
        body["digest"] = digest
    click.echo(ask_gateway("POST", "/api/approvals", json=body).json()["digest"])


@platform.command("withdraw")
@click.argument("digest")
@_ACCOUNT
def withdraw(digest: str, account: str) -> None:
    """Let live keys run the configuration DIGEST no more."""
    ask_gateway("DELETE", f"/api/approvals/{digest}", params={"account": account})
    click.echo(f"{digest} is not approved any more.")


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdigit():
        raise click.BadParameter(f"{text!r} is not a limit: a name, `=` and a number.", param_hint="--limit")
    return name, int(number)
