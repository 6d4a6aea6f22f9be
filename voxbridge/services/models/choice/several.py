"""Requests that hold several wishes: "set a timer for five minutes and tell me the time in Rome".

A request is cut only before words that begin a wish of its own, and only where each part surely wants a function: "milk and eggs" are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

PARTS_LIMIT: Final = 4
"""Wishes of one request; what is said beyond them belongs to the last."""

_BEGINS: Final = (
    "add|arrange|ask|calculate|cancel|change|check|close|compare|compute|convert|count|create|decode|define|delete|describe|encode|explain"
    "|find|format|generate|get|give|go|hash|how|list|look|make|name|note|open|pause|please|put|read|remember|remind|remove|rename|repeat"
    "|run|save|say|search|set|show|split|start|stop|store|switch|take|tell|toggle|translate|turn|undo|validate|what|what's|when|where"
    "|which|who|write"
)
_CUT: Final = re.compile(
    rf"\s*(?:[,;.!?]\s+(?:(?:and|then|also|after that|afterwards|next)\s+)*|\s(?:and|then)\s+(?:(?:then|also|after that|afterwards)\s+)*)"
    rf"(?=(?:{_BEGINS})\b)",
    re.IGNORECASE,
)


_BACK: Final = re.compile(r"\b(?:(?<!is )it|its|them|those|these|that one)\b", re.IGNORECASE)
"""Words for what was named before: a part that speaks of it is no wish of its own."""

_WHEN: Final = re.compile(r"(?:if|when|whenever|every time|as soon as|once)\b", re.IGNORECASE)
"""Beginning of a request whose wishes are for later."""


def wishes(said: str, wanted: Callable[[str], str]) -> list[str]:
    """Return the wishes of a request in their order: the request itself, if it is not several.

    `wanted` returns the function that a text surely wants, or an empty string. A request that wants another one than each of its parts is
    one wish.
    """
    first, *others = [part for part in (part.strip() for part in _CUT.split(said, maxsplit=PARTS_LIMIT - 1)) if part] or [said]
    if not others or _WHEN.match(first) or any(_BACK.search(part) for part in others):
        return [said]
    functions = [wanted(part) for part in (first, *others)]
    return [first, *others] if all(functions) and wanted(said) in functions else [said]


def is_said(result: str) -> bool:
    """Tell whether a session says the result of a call as it is: only then may the call of the next wish follow at once."""
    try:
        found = msgspec.json.decode(result)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) and any(isinstance(found.get(name), str) and found[name] for name in ("spoken", "error"))
