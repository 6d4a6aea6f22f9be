"""How deep data from outside may be nested. What is deeper than the interpreter follows ends in a RecursionError somewhere else, later.

Owns the bound and how depth is found, without recursion. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

DEPTH_LIMIT: Final = 64
"""Objects and arrays within one another."""


def is_deep(value: object, limit: int = DEPTH_LIMIT) -> bool:
    """Whether decoded data has more than `limit` objects and arrays within one another."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            part for one in level for part in (one.values() if isinstance(one, dict) else one) if isinstance(part, dict | list)
        ]  # fmt: skip
        if not level:
            return False
    return True


def is_deep_json(text: bytes, limit: int = DEPTH_LIMIT) -> bool:
    """Whether this JSON is nested deeper; false for what is no JSON. What has few brackets is not read for it."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    try:
        return is_deep(msgspec.json.decode(text), limit)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
