"""Bounds that the utilities share: how much they take and give, and how they refuse."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from voxbridge.shared.errors import Code, VoxbridgeError

TEXT_LIMIT: Final = 65_536
"""Characters of a text that a utility takes."""
GIVEN_LIMIT: Final = 60_000
"""Bytes of a text that a utility gives, as JSON: what is beside it in the result must fit too."""
LISTED_LIMIT: Final = 50
"""Entries of a list in a result; how many there are in all stands beside it."""
NODE_LIMIT: Final = 100_000
"""Values in a document, with what aliases repeat counted each time."""
WIDE: Final = 2**63

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT)]
"""A text to work on."""
AnyText = Annotated[str, Meta(max_length=TEXT_LIMIT)]
"""A text to work on that may be empty."""


def refused(message: str, field: str = "text") -> VoxbridgeError:
    """Return the error for an argument that cannot be used."""
    return VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)


def given(text: str) -> str:
    """Return a text that fits into a result. Raises `TOO_LARGE`: half a document would be mistaken for a whole one."""
    size = len(msgspec.json.encode(storable(text)))
    if size > GIVEN_LIMIT:
        message = f"The result has {size:,} bytes and may have {GIVEN_LIMIT:,}. Work on a smaller part."
        raise VoxbridgeError(Code.TOO_LARGE, message, limit=GIVEN_LIMIT)
    return storable(text)


def storable(text: str) -> str:
    """Return a text that can be written as UTF-8: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> Any:
    """Return decoded JSON as a result may hold it: numbers that JSON or 64 bits do not hold become texts."""
    if isinstance(value, dict):
        return {storable(str(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -WIDE <= value < WIDE:
        return str(value)
    return value


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 line`, `2 lines`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
