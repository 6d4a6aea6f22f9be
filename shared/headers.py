"""A NATS client that reads the headers of messages faster.

Every event that is read back carries eight headers, and nats-py looks at each character of their names; that is most of what reading
a long log costs. The result is the same (a test compares them). Owns nothing that a crash could lose.
"""

from __future__ import annotations

from nats.aio.client import Client


def parse(raw: bytes) -> dict[str, str]:
    """Name and value of each line `Name: value`; names that are not ASCII or have whitespace in them are left out."""
    found: dict[str, str] = {}
    for line in raw.split(b"\r\n"):
        name, separator, value = line.partition(b":")
        if not separator:
            continue
        name = name.strip()
        if not name.isascii():
            continue
        key = name.decode("ascii")
        if key and key.split() != [key]:
            continue
        found[key] = value.strip().decode("utf-8", "replace")
    return found


class FastClient(Client):
    """nats-py's client with `parse` for its own."""

    _parse_header_lines = staticmethod(parse)
