"""`voxbridge terminals`: the fleet of terminals from a shell, through the gateway.

Owns the words and the look of these commands, and the attached terminal. Does not own what they ask for (docs/terminals.md). Killed while
it is attached, it leaves the program in the terminal as it is.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import click

from voxbridge.commands.gateway import ask_gateway
from voxbridge.sessions import archive
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import live

LEAVE: Final = b"\x1d"
"""Key that leaves an attached terminal: Ctrl-]."""

_READ: Final = 4_096
_HEADS: Final = ("ID", "NAME", "STATE", "WORDS", "DIRECTORY")


@click.group()
def terminals() -> None:
    """Terminals of this installation: shells and coding agents that outlive every service.

    \b
    Examples:
      voxbridge terminals list                            what runs, and who needs you
      voxbridge terminals start bash --name work          a shell; `terminals programs` lists what can be started
      voxbridge terminals send work-1f2e3d "make test"    type a line and submit it, with proof
      voxbridge terminals read work-1f2e3d                the screen as text
      voxbridge terminals attach work-1f2e3d              look and type, until Ctrl-]
      voxbridge terminals close work-1f2e3d               end everything that it started
      voxbridge terminals log work-1f2e3d                 what happened in it; `terminals lives` lists closed ones too
      voxbridge terminals cast work-1f2e3d work.cast      what it showed, as a recording that `asciinema play` plays

    docs/terminals.md explains states, proofs and limits.
    """


@terminals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print what the gateway answers.")
def list_terminals(as_json: bool) -> None:
    """List the terminals, with the states of their programs."""
    answer = ask_gateway("GET", "/api/terminals").json()
    if as_json:
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    cards = answer["terminals"]
    if not cards:
        click.echo("There is no terminal. Start one: voxbridge terminals start bash")
        return
    rows = [_HEADS, *((card["id"], card["name"], _state(card), _words(card), card.get("directory", "")) for card in cards)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if answer["needs_you"]:
        click.echo(f"\n{answer['needs_you']} of them {'needs' if answer['needs_you'] == 1 else 'need'} you.")


@terminals.command()
def programs() -> None:
    """List what can be started, and how to get what is missing."""
    for offer in ask_gateway("GET", "/api/terminals/definitions").json()["offers"]:
        definition = offer["definition"]
        click.echo(f"{definition['id']:<10} {offer['missing'] or offer['program']}")


@terminals.command()
@click.argument("program")
@click.option("--name", default="", help="Name of the terminal; made from the program's where none is given.")
@click.option("--workspace", default="default", show_default=True, help="Workspace that it is in.")
@click.option("--directory", default=None, help="Folder to start in; this one by default.")
def start(program: str, name: str, workspace: str, directory: str | None) -> None:
    """Start a program in a terminal, and print its id."""
    body = {"definition": program, "name": name, "workspace": workspace, "directory": directory or os.getcwd()}  # noqa: PTH109 - a text
    click.echo(ask_gateway("POST", "/api/terminals", json=body).json()["id"])


@terminals.command()
@click.argument("terminal")
@click.option("--view", type=click.Choice(["screen", "scrollback", "command", "turn"]), default="screen", show_default=True)
@click.option("--lines", type=click.IntRange(1, 1_000), default=40, show_default=True)
def read(terminal: str, view: str, lines: int) -> None:
    """Print what a terminal shows, as text."""
    click.echo(ask_gateway("GET", _path(terminal), params={"view": view, "lines": lines}).json()["text"])


@terminals.command()
@click.argument("terminal")
@click.argument("text")
@click.option("--no-submit", is_flag=True, help="Type it, and do not press Enter.")
def send(terminal: str, text: str, no_submit: bool) -> None:
    """Type a text and submit it. Ends with status 1 and the reason where the program did not take it."""
    _told(ask_gateway("POST", _path(terminal, "send"), json={"text": text, "submit": not no_submit}, timeout=60).json())


@terminals.command()
@click.argument("terminal")
@click.argument("name")
def key(terminal: str, name: str) -> None:
    """Press a key by its name: enter, ctrl-c, up, f5, alt-x."""
    _told(ask_gateway("POST", _path(terminal, "key"), json={"key": name}).json())


@terminals.command()
@click.argument("terminal")
def explain(terminal: str) -> None:
    """Say who says what of the state of a terminal's program."""
    for rung in ask_gateway("GET", _path(terminal, "explain")).json()["rungs"]:
        click.echo(f"{'*' if rung['counts'] else ' '} {rung['source']:<8} {rung['says']:<32} {rung.get('why', '')}")


@terminals.command()
@click.argument("terminal")
@click.option("--resume", is_flag=True, help="Go on with the last conversation, where the program can.")
def restart(terminal: str, resume: bool) -> None:
    """End the program of a terminal, and start it again."""
    ask_gateway("POST", _path(terminal, "restart"), json={"resume": resume}, timeout=40)


@terminals.command()
@click.argument("terminal")
def close(terminal: str) -> None:
    """End everything that a terminal started, and take it off the list. What lives on is named."""
    for one in ask_gateway("DELETE", _path(terminal), timeout=40).json().get("left", ()):
        click.echo(f"This lives on: {one}", err=True)


@terminals.command()
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
def lives(limit: int) -> None:
    """List what was started in terminals, the newest first: also in those that were closed."""
    found = ask_gateway("GET", "/api/terminals/lives", params={"limit": limit}).json()["lives"]
    if not found:
        click.echo("The log has no terminal yet. Start one: voxbridge terminals start bash")
    for one in found:
        closed = f"closed {_moment(one['closed_ms'])}" if "closed_ms" in one else "open"
        click.echo(f"{one['life']:<44} {_moment(one['started_ms'])}  {closed:<26} {one['definition']}, {one['name']}")


@terminals.command("log")
@click.argument("terminal")
@click.option("--json", "as_json", is_flag=True, help="Print the events, one a line.")
def show_log(terminal: str, as_json: bool) -> None:
    """Print what happened in a terminal: its states, who sent what, its ends. TERMINAL is its id, or the name of a life.

    \b
    Examples:
      voxbridge terminals log work-1f2e3d
      voxbridge terminals log work-1f2e3d-18f3a2b4c5d --json | jq .sentence
      voxbridge replay :work-1f2e3d-18f3a2b4c5d
    """
    path, after, more = _path_of_life(terminal), 0, True
    while more:
        page = ask_gateway("GET", path, params={"after": after}).json()
        for event in page["events"]:
            click.echo(json.dumps(event, ensure_ascii=False) if as_json else f"{_moment(event['at_ms'])}  {event['sentence']}")
            after = event["seq"]
        more = page["more"]


@terminals.command("cast")
@click.argument("terminal")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def write_cast(terminal: str, file: Path | None) -> None:
    """Write what a terminal showed to an asciicast, as far as it is kept. Without FILE to standard output. TERMINAL is its id, or the name
    of a life.

    \b
    Examples:
      voxbridge terminals cast work-1f2e3d work.cast && asciinema play --idle-time-limit 2 work.cast
      voxbridge terminals cast work-1f2e3d-18f3a2b4c5d | asciinema play -

    The file holds what programs showed. It is written for you alone to read.
    """
    shown = ask_gateway("GET", f"{_path_of_life(terminal)}/cast").content
    if file is None:
        sys.stdout.buffer.write(shown)
        return
    try:
        with archive.whole_file(file) as out:
            out.write(shown)
    except OSError as error:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{file} cannot be written: {(error.strerror or str(error)).lower()}.") from error
    click.echo(f"{len(shown):,} bytes of {terminal} are in {file}", err=True)


def _path_of_life(terminal: str) -> str:
    """Return the path of the life that a terminal has, or of the life of this name."""
    cards = ask_gateway("GET", "/api/terminals").json()["terminals"]
    life = next((card["life"] for card in cards if card["id"] == terminal), terminal)
    return f"/api/terminals/lives/{quote(life, safe='')}"


@terminals.command()
@click.argument("terminal")
@click.option("--view", "only_view", is_flag=True, help="Look, and type nothing.")
def attach(terminal: str, only_view: bool) -> None:
    """Look at a terminal and type into it, until Ctrl-]."""
    from websockets.sync.client import connect

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise click.UsageError("`attach` needs a terminal to draw on. Use `read` and `send` in scripts.")
    answer = ask_gateway("POST", "/api/terminals/tickets", json={"role": "view" if only_view else "type"})
    address = urlsplit(str(answer.url))
    url = f"{'wss' if address.scheme == 'https' else 'ws'}://{address.netloc}/ws/terminals?ticket={answer.json()['ticket']}"
    with connect(url, compression=None) as connection, _raw():
        _attached(connection, terminal)


def _attached(connection: Any, terminal: str) -> None:
    """Draw and type until Ctrl-], or the end of the socket."""
    from websockets.exceptions import ConnectionClosed

    channel: int | None = None
    changed = True
    wake, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.signal(signal.SIGWINCH, lambda *_: os.write(write, b"x"))
    connection.send(json.dumps({"type": "attach", "id": terminal}))
    try:
        while True:
            if changed and channel is not None:
                size = os.get_terminal_size()
                connection.send(json.dumps({"type": "size", "id": terminal, "columns": size.columns, "rows": size.lines}))
                changed = False
            ready, _, _ = select.select([sys.stdin, wake], [], [], 0.005)
            if wake in ready:
                os.read(wake, 64)
                changed = True
            if sys.stdin in ready:
                keys = os.read(sys.stdin.fileno(), _READ)
                if not keys or LEAVE in keys:
                    return
                if channel is not None:
                    connection.send(bytes((channel,)) + keys)
            with suppress(TimeoutError):
                channel = _drawn(connection.recv(timeout=0), terminal, channel)
    except ConnectionClosed as error:
        raise VoxbridgeError(Code.UNAVAILABLE, "The gateway closed the terminal's socket. Attach again.") from error
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(wake)
        os.close(write)


def _drawn(message: str | bytes, terminal: str, channel: int | None) -> int | None:
    """Take a message of the gateway; return the channel of the terminal."""
    if isinstance(message, bytes):
        sys.stdout.buffer.write(live.decode_output(message[1:]).data)
        sys.stdout.buffer.flush()
        return channel
    told = json.loads(message)
    if told["type"] == "attached" and told["id"] == terminal:
        return int(told["channel"])
    if told["type"] == "error" and told.get("about") in ("", terminal):
        raise VoxbridgeError(Code(told["code"]), told["message"])
    if told["type"] == "gone" and told["id"] == terminal:
        raise VoxbridgeError(Code.NOT_FOUND, "The terminal was closed.")
    return channel


@contextmanager
def _raw() -> Iterator[None]:
    kept = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)
        sys.stdout.write("\x1b[0m\x1b[?1049l\x1b[?25h\r\n")
        sys.stdout.flush()


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _path(terminal: str, verb: str = "") -> str:
    return f"/api/terminals/{quote(terminal, safe='')}{f'/{verb}' if verb else ''}"


def _state(card: dict[str, Any]) -> str:
    state = card["state"]
    return " ".join(part for part in (state["phase"], state.get("reason", "")) if part)


def _words(card: dict[str, Any]) -> str:
    return str(card.get("ended") or card["state"].get("words") or "")[:60]


def _told(sent: dict[str, Any]) -> None:
    click.echo(sent.get("proof") or sent.get("reason") or f"{sent['outcome']}.")
    if sent["outcome"] == "not_submitted":
        raise click.exceptions.Exit(1)
