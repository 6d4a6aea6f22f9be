"""What the log can hold of values that come from outside.

The log's encoding has whole numbers of 64 bits; JSON has them as long as one likes. Pure.
"""

from __future__ import annotations

from typing import Any, Final

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1


def storable(value: Any) -> Any:
    """A JSON value with whole numbers beyond 64 bits as text, so that whoever checks it can name the field."""
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
