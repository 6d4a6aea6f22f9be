"""Check of a step's arguments against a function's JSON Schema, as far as they are known before the run. Pure.

A pipe stands for a value of the type that is known of it, or of any. Words of figures count as numbers, as they do in a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from voxbridge.services.tools.runs.pipes import Pipe, split

DEPTH_LIMIT: Final = 32
"""References and levels of a schema that are followed; what lies deeper is left to the call."""

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
    "null": type(None),
}
_OTHER_TYPE: Final = ("must be a ", "must be an ")
TypeOf = Callable[[Pipe], str]
"""Returns the JSON type of a pipe's value; empty where it is not known."""


def problems(value: Any, schema: Mapping[str, Any], type_of: TypeOf, *, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a value: the place, and a part of a sentence."""
    yield from _problems(value, schema, _Known(schema.get("$defs", {}), type_of), at, 0)


class _Known:
    def __init__(self, definitions: Mapping[str, Any], type_of: TypeOf) -> None:
        self.definitions = definitions
        self.type_of = type_of


def _problems(value: Any, schema: Any, known: _Known, at: str, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping) or depth > DEPTH_LIMIT:
        return
    if "$ref" in schema:
        yield from _problems(value, known.definitions.get(str(schema["$ref"]).rpartition("/")[2]), known, at, depth + 1)
        return
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        found_in = [next(_problems(value, one, known, at, depth + 1), None) for one in choices]
        if all(found_in):
            near = [why for why in found_in if why is not None and not why[1].startswith(_OTHER_TYPE)]
            yield near[0] if len(near) == 1 else (at, "fits none of the allowed forms")
        return
    found = _type(value, known.type_of)
    wanted = schema.get("type")
    allowed = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if found and allowed and not any(_is_a(value, found, one) for one in allowed):
        yield at, f"must be {_a(allowed)}, not {_a([found])}"
        return
    if not isinstance(value, str) or not any(isinstance(part, Pipe) for part in split(value)):
        yield from _details(value, schema, known, at, depth)


def _details(value: Any, schema: Mapping[str, Any], known: _Known, at: str, depth: int) -> Iterator[tuple[str, str]]:
    if "enum" in schema and value not in schema["enum"]:
        yield at, f"must be one of {', '.join(str(one) for one in schema['enum'][:8])}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name}".lstrip("."), "is missing"
        for name, one in value.items():
            where = f"{at}.{name}".lstrip(".")
            if name in properties:
                yield from _problems(one, properties[name], known, where, depth + 1)
            elif schema.get("additionalProperties") is False:
                yield where, f"is no argument of it; there is {', '.join(properties) or 'none'}"
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _problems(one, schema.get("items"), known, f"{at}[{number}]", depth + 1)
    elif isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)) or len(value) < schema.get("minLength", 0):
            yield at, f"must have {schema.get('minLength', 0)} to {schema.get('maxLength', 'any number of')} characters"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            yield at, f"must be {schema.get('minimum', 'anything')} to {schema.get('maximum', 'anything')}"


def _type(value: Any, type_of: TypeOf) -> str:
    if isinstance(value, str):
        parts = split(value)
        if len(parts) == 1 and isinstance(parts[0], Pipe):
            return type_of(parts[0])
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, kind in _TYPES.items() if isinstance(value, kind)), "")


def _is_a(value: Any, found: str, wanted: Any) -> bool:
    if found == wanted or (found == "integer" and wanted == "number") or wanted not in _TYPES:
        return True
    if found == "number" and wanted == "integer":
        return not isinstance(value, float) or value.is_integer()
    if found == "string" and wanted in ("integer", "number", "boolean", "null"):
        return _reads_as(value, wanted) if isinstance(value, str) else True
    return False


def _reads_as(text: str, wanted: str) -> bool:
    """Tell whether a call would take a text for another type; a text with pipes is known only in the run."""
    if "${" in text:
        return not split(text)[1:] or wanted in ("integer", "number")
    word = text.strip().casefold()
    if wanted == "null":
        return word in ("null", "none", "")
    if wanted == "boolean":
        return word in ("true", "false", "0", "1")
    return word.lstrip("-").replace(".", "", 1).isdecimal()


def _a(types: list[Any]) -> str:
    return " or ".join(f"{'an' if str(one)[0] in 'aio' else 'a'} {one}" for one in types)
