"""Values from outside, in the form that the log can store.

The log's encoding has integers of 64 bits; JSON has integers of any length. Pure.
"""

from __future__ import annotations

from typing import Any, Final

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1


def storable(value: Any) -> Any:
    """Return a JSON value with integers beyond 64 bits as text, so that a later check can name the field."""
    match value:
        case bool():
            return value
        case int():
            return value if _LEAST <= value <= _MOST else str(value)
        case dict():
            return {name: storable(one) for name, one in value.items()}
        case list():
            return [storable(one) for one in value]
        case _:
            return value
