"""Messages of programs in terminals to the officer of the bridge: signed, in the output of their own terminal. Pure.

A message travels as an escape sequence, so it needs neither a socket nor a token, and says by itself where it
comes from. What merely prints a message, such as a file that holds one, cannot sign it: the secret is another for each start of a program,
and a message is taken once, within a minute. A message authorises nothing: it is told.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple

SECRET: Final = "VOXBRIDGE_TERMINAL_SECRET"  # noqa: S105 - the name of a variable
"""Variable with which a program in a terminal signs its messages."""

NUMBER: Final = "7511"
"""Number of the OSC sequence."""

TEXT_LIMIT: Final = 500
"""Characters of a message."""

NAME_LIMIT: Final = 32
AGE_US: Final = 60_000_000
"""Microseconds after which a message is no longer taken."""

EVERY_US: Final = 5_000_000
"""Microseconds between two messages of a terminal; earlier ones are dropped, so that programs that answer each other come to rest."""

SEQUENCE_LIMIT: Final = 4_096
"""Bytes of a sequence."""


class Message(NamedTuple):
    """A message: when it was written (µs), the name that its writer goes by, and its text."""

    at: int
    name: str
    text: str


def written(message: Message, secret: str) -> bytes:
    """Return the sequence of a message for a terminal's output."""
    told = base64.b64encode(f"{message.name}\n{message.text}".encode()).decode()
    return f"\x1b]{NUMBER};{message.at};{_signature(secret, f'{message.at};{told}')};{told}\x1b\\".encode()


def read(rest: str, secret: str) -> Message | None:
    """Return the message of a sequence behind its number; None for one that is not signed with the secret, or breaks a limit."""
    at, _, more = rest.partition(";")
    signature, _, told = more.partition(";")
    if not secret or not at.isdigit() or len(at) > 17 or not hmac.compare_digest(signature, _signature(secret, f"{at};{told}")):
        return None
    try:
        name, _, text = base64.b64decode(told, validate=True).decode().partition("\n")
    except (binascii.Error, ValueError):
        return None
    if not text or len(text) > TEXT_LIMIT or len(name) > NAME_LIMIT or not (name + text).isprintable():
        return None
    return Message(int(at), name, text)


def taken(message: Message, *, last: int, now: int) -> bool:
    """Tell whether a message counts: it is new, not old, and not too soon behind the last one (times in µs)."""
    return message.at >= last + EVERY_US and abs(now - message.at) <= AGE_US


def _signature(secret: str, signed: str) -> str:
    return hmac.new(secret.encode(), signed.encode(), hashlib.sha256).hexdigest()
