"""Texts and schemas of strangers, cleaned and bounded before a model or a person is shown them.

Pure. Descriptions can hold what a reader does not see (control, direction and zero-width characters) and no length is promised of them.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

import msgspec

from voxbridge.services.tools.mcp.config import Hints
from voxbridge.services.tools.mcp.messages import Offer
from voxbridge.services.tools.mcp.schemas import Unusable, normal
from voxbridge.shared.errors import Code, VoxbridgeError

DESCRIPTION_LIMIT: Final = 1_024
"""Characters of a tool's description; of one argument's, a quarter."""

SCHEMA_LIMIT: Final = 16 * 1024
"""Bytes of a schema as JSON."""

DEPTH_LIMIT: Final = 16
TOOL_NAME_LIMIT: Final = 128
_JOINERS: Final = "\u200c\u200d"
_ALONE: Final = ("LATIN", "GREEK", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""Beginnings of the names of letters that nothing joins: a joiner between them only hides something."""

_TOLD: Final = ("description", "title")
_VALUES: Final = ("default", "examples")
"""Words whose values nobody chooses by: line ends and hyphens for the end of a line may be in them."""

_NAMES: Final = ("properties", "$defs", "definitions", "patternProperties")


def clean(text: str, limit: int) -> str:
    """Return the text without characters that are not seen, cut to `limit` characters."""
    text = text[: 2 * limit]
    kept = "".join(mark for at, mark in enumerate(text) if mark in "\n\t" or _is_seen(text, at)).strip()
    return kept if len(kept) <= limit else f"{kept[: limit - 1].rstrip()}…"


def _is_seen(text: str, at: int) -> bool:
    """Tell whether a character is seen, or joins two that are: words of Persian and Indic scripts have joiners, and pictures of several."""
    mark = text[at]
    if mark in _JOINERS:
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        return bool(before and after) and _joins(before) and _joins(after)
    return unicodedata.category(mark) not in ("Cc", "Cf", "Cs", "Co")


def _joins(mark: str) -> bool:
    kind = unicodedata.category(mark)
    if mark in "\ufe0e\ufe0f" or kind in ("So", "Sk"):
        return True
    return kind[0] in "LM" and not mark.isascii() and not unicodedata.name(mark, "").startswith(_ALONE)


def offer(name: str, description: str, parameters: Any, output: Any, hints: Hints) -> Offer:
    """Return a tool as it may be shown. Raises `INVALID_ARGUMENT` for one that cannot be offered."""
    if not name or len(name) > TOOL_NAME_LIMIT or clean(name, TOOL_NAME_LIMIT) != name:
        raise _unusable(name, f"a name has 1 to {TOOL_NAME_LIMIT} visible characters")
    try:
        given = normal(schema(name, parameters))
    except Unusable as error:
        raise _unusable(name, str(error)) from error
    if len(msgspec.json.encode(given)) > SCHEMA_LIMIT:
        raise _unusable(name, f"its schema has more than {SCHEMA_LIMIT} bytes once its references are in place")
    told = " ".join(clean(description, DESCRIPTION_LIMIT).split()) or name
    return Offer(name=name, description=told, parameters=given, output=None if output is None else schema(name, output), hints=hints)


def schema(name: str, found: Any) -> dict[str, Any]:
    """Return a schema with its texts cleaned. Raises `INVALID_ARGUMENT` beyond the limits, and for keys or values that are not visible."""
    if not isinstance(found, dict):
        raise _unusable(name, "its schema is not an object")
    cleaned: dict[str, Any] = _part(name, found, DEPTH_LIMIT, names=False)
    try:
        size = len(msgspec.json.encode(cleaned))
    except (TypeError, ValueError, RecursionError) as error:
        raise _unusable(name, f"its schema cannot be written as JSON: {error}") from error
    if size > SCHEMA_LIMIT:
        raise _unusable(name, f"its schema has {size} bytes, and {SCHEMA_LIMIT} is the most")
    return cleaned


def _part(tool: str, found: Any, depth: int, *, names: bool, values: bool = False) -> Any:
    if depth == 0:
        raise _unusable(tool, f"its schema is nested more than {DEPTH_LIMIT} deep")
    if isinstance(found, str):
        plain = found.replace("\r\n", "\n").replace("\r", "\n").replace("\u00ad", "") if values else found
        if clean(plain, SCHEMA_LIMIT) != plain.strip():
            raise _unusable(tool, "its schema holds characters that are not visible")
        return found
    if isinstance(found, list):
        return [_part(tool, one, depth - 1, names=False, values=values) for one in found]
    if not isinstance(found, dict):
        return found
    kept: dict[str, Any] = {}
    for key, value in found.items():
        if not names and key == "$schema":
            continue
        _part(tool, key, depth, names=False)
        if not names and key in _TOLD and isinstance(value, str):
            kept[key] = clean(value, DESCRIPTION_LIMIT // 4)
        else:
            kept[key] = _part(tool, value, depth - 1, names=not names and key in _NAMES, values=not names and key in _VALUES)
    return kept


def _unusable(tool: str, why: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"The tool {clean(tool, 64)!r} is not offered: {why}.", field="tools")
