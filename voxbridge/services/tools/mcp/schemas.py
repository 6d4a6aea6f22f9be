"""Schemas of strangers, made into what every model can be told: self-contained, and of words that all of them read. Pure.

A schema is read once, when its tool is offered. What is odd and clear is put right (`required: false`, a tuple of an old draft, a type
`date`); references are put in place; what means nothing to a caller is refused with its reason, and costs no other tool anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

TYPES: Final = ("string", "number", "integer", "boolean", "null", "array", "object")
ENUM_LIMIT: Final = 256
"""Values of an enum that a model is told; of a longer one it is told the first few, and the server judges."""

NODES_LIMIT: Final = 2_000
"""Values in a schema once its references are in place."""

_FORMATS: Final = {
    "date": "date",
    "datetime": "date-time",
    "date-time": "date-time",
    "timestamp": "date-time",
    "time": "time",
    "email": "email",
    "uuid": "uuid",
    "uri": "uri",
    "url": "uri",
    "file": "",
    "text": "",
    "str": "",
}
_SYNONYMS: Final = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
_ANY: Final = ("any", "mixed", "unknown")
_DROPPED: Final = ("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref", "optional")
_PARTS: Final = ("not", "contains", "propertyNames", "if", "then", "else")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False
    return True


_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"), _is_count
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), lambda value: isinstance(value, bool)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "pattern": _is_pattern,
    "examples": lambda value: isinstance(value, list),
    "patternProperties": lambda value: isinstance(value, Mapping) and all(map(_is_pattern, value)),
    "dependentRequired": lambda value: isinstance(value, Mapping),
    "dependentSchemas": lambda value: isinstance(value, Mapping),
}
"""Judges of the values of words. A vendor refuses a request for one wrong value in one schema, with all tools in it."""


class Unusable(Exception):
    """A schema that no model can be told, and why."""


def normal(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments, an object, as models are told it. Raises `Unusable`."""
    found = _Reader(schema).read(schema, ())
    kinds = found.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise Unusable("its arguments are not an object")
    return {**found, "type": "object", "properties": found.get("properties", {})}


class _Reader:
    def __init__(self, top: Mapping[str, Any]) -> None:
        self._top = top
        self._left = NODES_LIMIT

    def read(self, schema: Any, trail: tuple[str, ...]) -> dict[str, Any]:
        """Return a schema, or a part of one. `trail` are the references that lead to it: one that leads to itself allows anything."""
        self._left -= 1
        if self._left < 0:
            raise Unusable(f"its schema has more than {NODES_LIMIT} parts once its references are in place")
        if schema is None or schema is True or schema is False:
            return {}
        if not isinstance(schema, Mapping):
            raise Unusable("a part of its schema is not an object")
        reference = schema.get("$ref")
        if reference is not None:
            found = {} if reference in trail else self.read(self._at(reference), (*trail, reference))
            beside = {word: value for word, value in schema.items() if word not in _DROPPED}
            schema = {**found, **beside} if beside else found
        kept = {word: value for word, value in schema.items() if word not in _DROPPED}
        kept = self._typed(_valued(kept))
        kept = self._combined(kept, trail)
        return self._structured(kept, trail)

    def _at(self, reference: object) -> Any:
        """Return what a reference within the schema points to."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise Unusable(f"its schema refers to another document ({str(reference)[:60]!r})")
        found: Any = self._top
        for step in reference.removeprefix("#").strip("/").split("/") if reference.strip("#/") else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name)] if name.isdigit() and int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            raise Unusable(f"its schema refers to nothing ({reference[:60]!r})")
        return found

    def _typed(self, schema: dict[str, Any]) -> dict[str, Any]:
        kinds = schema.pop("type", None)
        many = isinstance(kinds, list)
        names = [str(kind).strip() for kind in (kinds if many else [kinds] if kinds is not None else [])]
        found: list[str] = []
        for name in names:
            low = name.casefold()
            if low in _ANY:
                return schema
            if low in _FORMATS:
                schema = {**({"format": _FORMATS[low]} if _FORMATS[low] else {}), **schema}
                low = "string"
            low = _SYNONYMS.get(low, low)
            if low not in TYPES:
                raise Unusable(f"{name[:40]!r} is not a type of JSON Schema")
            found += [] if low in found else [low]
        if found:
            schema["type"] = found if len(found) > 1 else found[0]
        if "enum" in schema:
            schema = self._enum(schema)
        return schema

    def _enum(self, schema: dict[str, Any]) -> dict[str, Any]:
        values = schema["enum"]
        if not isinstance(values, list) or not values:
            raise Unusable("an enum of it has no values, so nothing fits")
        if len(values) <= ENUM_LIMIT:
            return schema
        some = ", ".join(str(value)[:40] for value in values[:8])
        told = f"{schema.get('description', '')} One of {len(values)} values, such as {some}.".strip()
        return {**{word: value for word, value in schema.items() if word != "enum"}, "description": told}

    def _combined(self, schema: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
        """Merge `allOf`, and read the alternatives of `anyOf` and `oneOf`."""
        all_of: dict[str, Any] = {}
        for one in _list(schema.pop("allOf", None), "allOf"):
            all_of = _merged(all_of, self.read(one, trail))
        if all_of:
            schema = _merged(all_of, self._structured(schema, trail))
        for word in ("anyOf", "oneOf"):
            if word not in schema:
                continue
            options = [self.read(option, trail) for option in _list(schema.pop(word), word)]
            if len(options) == 1:
                schema = _merged(options[0], schema)
            elif options:
                schema[word] = options
        return schema

    def _structured(self, schema: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
        properties = schema.get("properties")
        if properties is None:
            schema.pop("properties", None)
        elif not isinstance(properties, Mapping):
            raise Unusable("`properties` of its schema is not an object")
        required = schema.pop("required", None)
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        if isinstance(properties, Mapping):
            names += [name for name, one in properties.items() if isinstance(one, Mapping) and one.get("required") is True]
            schema["properties"] = {name: self.read(one, trail) for name, one in properties.items()}
            wanted = list(dict.fromkeys(name for name in names if name in properties))
            if wanted:
                schema["required"] = wanted
        items = schema.get("items")
        if isinstance(items, list):  # the tuple of drafts before 2020-12
            schema["prefixItems"] = [self.read(one, trail) for one in items]
            schema["items"] = {}
        elif items is not None:
            schema["items"] = self.read(items, trail)
        elif "items" in schema:
            del schema["items"]
        if isinstance(schema.get("prefixItems"), list):
            schema["prefixItems"] = [self.read(one, trail) for one in schema["prefixItems"]]
        for word in ("additionalProperties", "unevaluatedProperties", *_PARTS):
            if isinstance(schema.get(word), Mapping):
                schema[word] = self.read(schema[word], trail)
            elif word in schema and not isinstance(schema[word], bool):
                del schema[word]
        return schema


def _valued(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the words whose values mean nothing, such as a length of -1; the server judges by its own. The bounds of an
    old draft, where `exclusiveMinimum` says of `minimum` what it means, are those of today."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and bound in schema:
            schema[exclusive] = schema.pop(bound)
    return {word: value for word, value in schema.items() if word not in _VALUES or _VALUES[word](value)}


def _list(found: Any, word: str) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise Unusable(f"`{word}` of its schema is not a list")
    return found


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that asks for what both do: the properties of both, and what either requires."""
    found = {**one, **other}
    if "properties" in one or "properties" in other:
        found["properties"] = {**(one.get("properties") or {}), **(other.get("properties") or {})}
    required = [name for part in (one, other) for name in (part.get("required") or []) if isinstance(part.get("required"), list)]
    if required:
        found["required"] = list(dict.fromkeys(required))
    return found
