"""`voxbridge bot-chat`: a program in a terminal says something to the officer of the bridge.

Owns finding the terminal that it runs in, also where it has none of its own. Does not own the message (`shared/terminals/peers.py`).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import click

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import peers

PARENTS: Final = 32
"""Parents of a process that are looked at for their terminal."""


@click.command("bot-chat")
@click.argument("message")
@click.option("--from", "name", default="", metavar="NAME", help="Who says it, where several do in one terminal.")
def bot_chat(message: str, name: str) -> None:
    """Say something to the officer, from inside a terminal.

    \b
    Examples:
      voxbridge bot-chat "The tests need another fixture."
      voxbridge bot-chat "The review is done." --from reviewer

    The officer says it aloud when nobody speaks. It orders nothing and approves nothing.
    """
    secret = os.environ.get(peers.SECRET, "")
    if not secret:
        why = "This is not a terminal of Voxbridge. Run it in one that `voxbridge terminals start` or the Bridge has started."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, why, field="terminal")
    text, said_by = " ".join(message.split()), " ".join(name.split())
    for field, value, limit in (("message", text, peers.TEXT_LIMIT), ("from", said_by, peers.NAME_LIMIT)):
        if len(value) > limit:
            raise VoxbridgeError(
                Code.TOO_LARGE, f"{field} has {len(value)} characters, and {limit} are the most.", field=field, limit=limit
            )
        if not value.isprintable():
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{field} has characters that cannot be shown.", field=field)
    if not text:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "There is no message. Say it in quotes.", field="message")
    sequence = peers.written(peers.Message(time.time_ns() // 1_000, said_by, text), secret)
    _write(sequence)
    click.echo("Sent to the officer. It is told aloud while somebody talks to it.")


def _write(sequence: bytes) -> None:
    """Write into the terminal: this process's own, else that of a parent, since coding agents run commands without one."""
    for path in ("/dev/tty", *_of_parents()):
        try:
            with Path(path).open("wb", buffering=0) as terminal:
                terminal.write(sequence)
        except OSError:
            continue
        return
    raise VoxbridgeError(Code.UNAVAILABLE, "The terminal of this process cannot be found.", field="terminal", retryable=False)


def _of_parents() -> list[str]:
    """Return the terminals that parents of this process have open, the nearest first; Linux alone tells them."""
    found: list[str] = []
    process = os.getppid()
    for _ in range(PARENTS):
        for descriptor in (0, 1, 2):
            try:
                path = str(Path(f"/proc/{process}/fd/{descriptor}").readlink())
            except OSError:
                continue
            if path.startswith("/dev/pts/") and path not in found:
                found.append(path)
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        if process <= 1:
            break
    return found
