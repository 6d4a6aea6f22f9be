"""Requests that hold several wishes: "set a timer for five minutes and tell me the time in Rome".

A request is cut only before words that begin a wish of its own, and only where each part surely wants a function: "milk and eggs" are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
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
_BETWEEN: Final = (
    r"\s*(?:[,;.!?]\s+(?:(?:and|then|also|after that|afterwards|next)\s+)*|\s(?:and|then)\s+(?:(?:then|also|after that|afterwards)\s+)*)"
)
_CUT: Final = re.compile(rf"{_BETWEEN}(?=(?:{_BEGINS})\b)", re.IGNORECASE)
_ASKS: Final = "am|are|can|could|did|do|does|has|have|is|may|shall|should|was|were|why|will|would"
_CUT_BESIDES: Final = re.compile(rf"{_BETWEEN}(?=(?:(?:{_BEGINS})\s+\S|(?:{_ASKS})\s+\S+\s+\S))", re.IGNORECASE)
"""Also before questions of three words, since what is only asked for besides need not be the wish for a function; not before "please"."""


_BACK: Final = re.compile(r"\b(?:(?<!is )it|its|them|those|these|that one)\b", re.IGNORECASE)
"""Words for what was named before: a part that speaks of it is no wish of its own."""

_WHERE: Final = re.compile(r"(?:at|from|in|inside|into|on)(?: \S+){1,3}", re.IGNORECASE)
"""Place or time that a wish begins with: "in the left terminal, make a folder" is one."""

_WHEN: Final = re.compile(r"(?:if|when|whenever|every time|as soon as|once)\b", re.IGNORECASE)
"""Beginning of a request whose wishes are for later."""


def wishes(said: str, wanted: Callable[[str], str]) -> list[str]:
    """Return the wishes of a request in their order: the request itself, if it is not several.

    `wanted` returns the function that a text surely wants, or an empty string. A request that wants another one than each of its parts is
    one wish.
    """
    first, *others = [part for part in (part.strip() for part in _CUT.split(said, maxsplit=PARTS_LIMIT - 1)) if part] or [said]
    if not others or _WHEN.match(first) or _WHERE.fullmatch(first) or any(_BACK.search(part) for part in others):
        return [said]
    functions = [wanted(part) for part in (first, *others)]
    return [first, *others] if all(functions) and wanted(said) in functions else [said]


class Besides(msgspec.Struct, frozen=True):
    """A request in which one wish takes the others along: `part` are the words of the wish for `function`, `rest` those of the others."""

    function: str
    part: str
    rest: str


def besides(said: str, wanted: Callable[[str], str], takers: Collection[str]) -> Besides | None:
    """Return what a request asks for besides one of the functions that take such a rest along; None if it does not, or wants no such
    function. "Start voice mode and tell me a joke" asks for a joke besides."""
    if not takers:
        return None
    parts = [part for part in (part.strip() for part in _CUT_BESIDES.split(said, maxsplit=PARTS_LIMIT - 1)) if part]
    functions = [wanted(part) for part in parts]
    found = next((index for index, name in enumerate(functions) if name in takers), None)
    if found is None or len(parts) < 2:
        return None
    rest = [part for part, name in zip(parts, functions, strict=True) if name != functions[found]]
    return Besides(functions[found], parts[found], " and ".join(rest)) if rest else None


def is_said(result: str) -> bool:
    """Tell whether a session says the result of a call as it is: only then may the call of the next wish follow at once."""
    try:
        found = msgspec.json.decode(result)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) and any(isinstance(found.get(name), str) and found[name] for name in ("spoken", "error"))
