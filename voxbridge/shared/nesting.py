"""Nesting limit of data from outside. Data nested deeper than the interpreter can follow would raise RecursionError later, elsewhere.

Owns the limit and measuring the depth, without recursion. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

DEPTH_LIMIT: Final = 64
"""Nesting depth of objects and arrays."""


def is_deep(value: object, limit: int = DEPTH_LIMIT) -> bool:
    """Return whether decoded data nests more than `limit` objects and arrays within one another."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            part for one in level for part in (one.values() if isinstance(one, dict) else one) if isinstance(part, dict | list)
        ]  # fmt: skip
        if not level:
            return False
    return True


def is_deep_json(text: bytes, limit: int = DEPTH_LIMIT) -> bool:
    """Return whether this JSON is nested deeper than `limit`; false for invalid JSON. Text with few brackets is not decoded for this."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    try:
        return is_deep(msgspec.json.decode(text), limit)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
