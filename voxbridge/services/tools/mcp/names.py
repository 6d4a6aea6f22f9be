"""The names that tools of MCP servers have here: `<server>__<tool>`, in the characters that every provider takes.

Pure. A name that has to be changed or cut ends with a hash of the whole, so it is the same at each start and no other tool's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

NAME_LIMIT: Final = 64
_HASH: Final = 8
_UNUSABLE: Final = re.compile(r"[^a-zA-Z0-9_-]+")


def tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool: 1 to 64 of `a-zA-Z0-9_-`."""
    whole = f"{server}__{tool}"
    usable = _UNUSABLE.sub("_", whole)
    if usable == whole and tool and len(whole) <= NAME_LIMIT:
        return whole
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{usable[: NAME_LIMIT - _HASH - 1]}_{digest}"


def collisions(server: str, tools: Iterable[str]) -> set[str]:
    """Return the tools of a server that share a name with another one, capitals aside: which of them was meant would be a guess."""
    seen: dict[str, str] = {}
    refused: set[str] = set()
    for tool in tools:
        name = tool_name(server, tool).casefold()
        if name in seen:
            refused |= {tool, seen[name]}
        seen[name] = tool
    return refused
