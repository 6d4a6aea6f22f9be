"""Parameters of a page's tool: the three forms in which they may be written, made one JSON Schema.

| form | example |
|---|---|
| simple | `{city: "string", limit: "number?", tags: "string[]"}` |
| extended | `{status: {type: "string?", description: "…", enum: ["open", "closed"]}}` |
| JSON Schema | `{type: "object", properties: {…}, required: […]}` |

Owns the forms and their limits. Does not own the check of arguments. Pure; nothing is lost in a crash here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from voxbridge.shared.platform.problems import invalid, too_large

BYTES_LIMIT: Final = 16_384
"""Bytes of a tool's JSON Schema."""

DEPTH_LIMIT: Final = 12
PROPERTIES_LIMIT: Final = 64
"""Properties of one object."""

ENUM_LIMIT: Final = 256
TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")

_KEYWORDS: Final = frozenset(
    {
        "$schema", "$id", "$defs", "$comment", "type", "properties", "required", "additionalProperties", "description", "title",
        "default", "examples", "minProperties", "maxProperties", "patternProperties", "propertyNames",
        "allOf", "anyOf", "oneOf", "not", "enum", "const", "dependentRequired", "deprecated", "readOnly", "writeOnly",
    }
)  # fmt: skip
_MORE: Final = frozenset({"if", "then", "else", "dependentSchemas", "definitions", "unevaluatedProperties", "$anchor", "strict"})
"""Further keywords, which are taken for such beside `properties`: alone they may be the names of parameters."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_SCHEMAS: Final = ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")


def schema_of(tool: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a tool's parameters as a JSON Schema of an object. Raises `Problem` naming tool, field and limit."""
    where = f"tools.{tool}.parameters"
    given = dict(parameters or {})
    schema = _checked(tool, given, where) if _is_schema(given) else _object(tool, given, where, 1)
    schema = {"properties": {}, **schema}
    _walk(tool, schema, where, 1)
    size = len(msgspec.json.encode(schema))
    if size > BYTES_LIMIT:
        raise too_large(tool, where, f"its JSON Schema has {size} bytes", BYTES_LIMIT)
    return schema


def _is_schema(given: Mapping[str, Any]) -> bool:
    """Tell a JSON Schema from parameters of which one is called `type`."""
    words, properties = {name for name in given if not name.startswith("x-")}, given.get("properties")
    known = _KEYWORDS if properties is None else _KEYWORDS | _MORE
    return given.get("type") == "object" and words <= known and isinstance(properties or {}, Mapping)


def _checked(tool: str, schema: dict[str, Any], where: str) -> dict[str, Any]:
    required = schema.get("required", [])
    known = schema.get("properties", {})
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        raise invalid(tool, f"{where}.required", "`required` is a list of names")
    unknown = [one for one in required if one not in known]
    if unknown and schema.get("additionalProperties") is False:
        raise invalid(tool, f"{where}.required", f"`required` names {unknown[0][:64]!r}, which is not a property")
    return schema


def _object(tool: str, given: Mapping[str, Any], where: str, depth: int) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, told in given.items():
        properties[name], needed = _one(tool, told, f"{where}.{name}", depth)
        if needed:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _one(tool: str, told: Any, where: str, depth: int) -> tuple[dict[str, Any], bool]:
    """Return the schema of one parameter, and whether it is needed."""
    if depth > DEPTH_LIMIT:
        raise too_large(tool, where, "it is nested too deeply", DEPTH_LIMIT)
    if isinstance(told, str):
        return _typed(tool, told, where)
    if not isinstance(told, Mapping):
        raise invalid(tool, where, 'a parameter is a type such as "string", or an object with a `type`')
    told = dict(told)
    several = isinstance(told.get("type"), list) and bool(told["type"]) and all(one in TYPES for one in told["type"])
    if not several and not isinstance(told.get("type"), str):
        if any(key in told for key in ("anyOf", "oneOf", "enum", "const")):
            return told, True
        raise invalid(tool, f"{where}.type", f"a parameter has a `type`, one of {', '.join(TYPES)}; append `?` if it may be left out")
    schema, needed = ({"type": told["type"]}, True) if several else _typed(tool, told.pop("type"), where)
    if isinstance(told.get("properties"), Mapping) and "required" not in told:
        told |= _object(tool, told["properties"], where, depth + 1)
    if isinstance(told.get("items"), str | Mapping):
        told["items"], _ = _one(tool, told["items"], f"{where}.items", depth + 1)
    return {**schema, **told}, needed


def _typed(tool: str, name: str, where: str) -> tuple[dict[str, Any], bool]:
    needed = not name.endswith("?")
    base = name.removesuffix("?").strip()
    if base.endswith("[]"):
        inner, _ = _typed(tool, base.removesuffix("[]"), where)
        return {"type": "array", "items": inner}, needed
    if base not in TYPES:
        known = ", ".join(TYPES)
        raise invalid(tool, where, f"{name[:40]!r} is not a type; the types are {known}, with `[]` for a list and `?` for an optional one")
    return {"type": base}, needed


def _walk(tool: str, schema: Any, where: str, depth: int) -> None:
    """Check a schema within its limits, wherever schemas stand in it."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise invalid(tool, where, "a schema is an object")
    if depth > DEPTH_LIMIT:
        raise too_large(tool, where, "it is nested too deeply", DEPTH_LIMIT)
    for word in _REFERENCES:
        if word in schema:
            raise invalid(tool, f"{where}.{word}", f"`{word}` is not followed; write what it names in its place")
    properties = schema.get("properties", {})
    if isinstance(properties, Mapping) and len(properties) > PROPERTIES_LIMIT:
        raise too_large(tool, where, f"it has {len(properties)} properties", PROPERTIES_LIMIT)
    values = schema.get("enum", [])
    if not isinstance(values, list) or ("enum" in schema and not values):
        raise invalid(tool, f"{where}.enum", "`enum` is a list of at least one value")
    if len(values) > ENUM_LIMIT:
        raise too_large(tool, f"{where}.enum", f"it has {len(values)} values", ENUM_LIMIT)
    for word in _SCHEMAS:
        if word in schema:
            _walk(tool, schema[word], f"{where}.{word}", depth + 1)
    for word in _LISTS:
        for number, one in enumerate(schema.get(word, [])):
            _walk(tool, one, f"{where}.{word}[{number}]", depth + 1)
    for word in _MAPS:
        found = schema.get(word, {})
        if not isinstance(found, Mapping):
            raise invalid(tool, f"{where}.{word}", f"`{word}` is an object of schemas")
        for name, one in found.items():
            _walk(tool, one, f"{where}.{name}", depth + 1)
