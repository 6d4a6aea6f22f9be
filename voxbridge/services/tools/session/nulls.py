"""Arguments given as `null`: models write it for what they leave out.

Pure. A `null` that the schema of the argument allows is a value and stays. So does one for an argument that is
needed; it is refused as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEP = 8
"""References and alternatives that are followed; a schema that goes deeper keeps its `null`."""


def without_nulls(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without each `null` that stands for an argument that may be left out."""
    known, needed = schema.get("properties"), schema.get("required")
    if not isinstance(known, Mapping) or None not in arguments.values():
        return dict(arguments)
    kept = needed if isinstance(needed, list | tuple) else ()
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name in kept or name not in known or not _refuses_null(known[name], schema, _DEEP)
    }


def _refuses_null(known: Any, schema: Mapping[str, Any], deep: int) -> bool:
    """Tell whether a schema surely does not allow `null`."""
    if not isinstance(known, Mapping) or not deep:
        return known is False
    if "const" in known or "enum" in known:
        return None not in known.get("enum", [known.get("const")])
    if "type" in known:
        types = known["type"] if isinstance(known["type"], list) else [known["type"]]
        return "null" not in types
    for word in ("anyOf", "oneOf"):
        if isinstance(known.get(word), list):
            return all(_refuses_null(one, schema, deep - 1) for one in known[word])
    if isinstance(known.get("allOf"), list):
        return any(_refuses_null(one, schema, deep - 1) for one in known["allOf"])
    reference = known.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        return _refuses_null(schema.get("$defs", {}).get(reference.removeprefix("#/$defs/")), schema, deep - 1)
    return False
