"""The schemas of functions as each vendor takes them. One source, the function's JSON Schema; one dialect for each vendor.

Owns what is changed and why; the meaning is kept where the vendor can express it, and widened where it cannot, because the tool executor
checks every argument by the original schema. Pure. Order and bytes are stable, so that a vendor's cache of the prompt holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Schema = dict[str, Any]
NODES_LIMIT: Final = 5_000
"""Values in a schema beyond which no further reference is replaced: any value is allowed there."""

_ANTHROPIC_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_ANTHROPIC: Final = re.compile(r"[^a-zA-Z0-9_.-]+")
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_EMPTY: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def gemini(schema: Schema) -> Schema:
    """Return a schema for Gemini: without references, lists of types and constants, which were refused on one of its paths or another."""
    return _object(_walk(_Inliner({**schema.get("definitions", {}), **schema.get("$defs", {})}).put(schema), _simple))


def openai(schema: Schema) -> Schema:
    """Return a schema for OpenAI and compatible endpoints: an object at the top, without alternatives there."""
    return _object(_walk(schema, _kept))


def anthropic(schema: Schema) -> Schema:
    """Return a schema for Anthropic: an object at the top, without alternatives there, with the names of `anthropic_names`."""
    found = _object(_walk(schema, _kept))
    told = {name: alias for alias, name in anthropic_names(schema).items()}
    if not told:
        return found
    found["properties"] = {told.get(name, name): of for name, of in found["properties"].items()}
    if isinstance(found.get("required"), list):
        found["required"] = [told.get(name, name) for name in found["required"]]
    return found


def anthropic_names(schema: Schema) -> dict[str, str]:
    """Return the arguments' own names by those that Anthropic is told, where it refuses them (`$filter`, `user name`). It refuses the
    whole request for one: github.com/n8n-io/n8n/issues/30590, github.com/ComposioHQ/composio/issues/3500."""
    names = list(_object(schema)["properties"])
    found: dict[str, str] = {}
    for name in names:
        if _ANTHROPIC_NAME.fullmatch(name):
            continue
        alias = base = _NOT_ANTHROPIC.sub("_", name).strip("_")[:56] or "argument"
        number = 1
        while alias in names or alias in found:
            number += 1
            alias = f"{base}_{number}"
        found[alias] = name
    return found


def _walk(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Change each schema within a schema, innermost first. Values of `enum`, `const`, `default` and `examples` are no schemas."""
    if not isinstance(schema, dict):
        return schema
    changed: Schema = {}
    for word, value in schema.items():
        if word in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            changed[word] = {name: _walk(of, change) for name, of in value.items()}
        elif word in (*_COMBINED, "prefixItems") and isinstance(value, list):
            changed[word] = [_walk(of, change) for of in value]
        elif word in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
            changed[word] = _walk(value, change)
        else:
            changed[word] = value
    return change(changed)


def _kept(schema: Schema) -> Schema:
    return {word: value for word, value in schema.items() if word != "$schema"}


def _simple(schema: Schema) -> Schema:
    schema = {word: value for word, value in schema.items() if word not in ("$schema", "$id", "$comment", "$defs", "definitions")}
    kinds = schema.get("type")
    if isinstance(kinds, list):
        real = [kind for kind in kinds if kind != "null"]
        if len(real) == 1:
            schema["type"] = real[0]
        else:
            del schema["type"]
            if real:
                schema["anyOf"] = [{"type": kind} for kind in real]
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    for word in ("anyOf", "oneOf"):
        options = [one for one in schema.get(word, ()) if one != {"type": "null"}]
        if word in schema and len(options) == 1 and isinstance(options[0], dict):
            rest = {key: value for key, value in schema.items() if key != word}
            schema = {**options[0], **rest}
        elif word in schema:
            schema[word] = options
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


class _Inliner:
    """Puts the schemas that references name in their place. One that refers to itself, and what goes beyond the limit, allows anything."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self._open: list[str] = []
        self._left = NODES_LIMIT

    def put(self, schema: Any) -> Any:
        """Return a schema, or a part of one, without references."""
        self._left -= 1
        if isinstance(schema, list):
            return [self.put(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return {word: value if word in ("enum", "examples") else self.put(value) for word, value in schema.items()}
        name = reference.rpartition("/")[2]
        beside = {word: value for word, value in schema.items() if word != "$ref"}
        if name in self._open or name not in self._known or self._left <= 0:
            return beside
        self._open.append(name)
        found = self.put(self._known[name])
        self._open.pop()
        return {**found, **beside} if isinstance(found, dict) else beside


def _object(schema: Any) -> Schema:
    """Return a schema whose top is an object with its properties: alternatives there are merged, and none of their words is required."""
    if not isinstance(schema, dict):
        return dict(_EMPTY)
    options = [option for word in _COMBINED for option in schema.get(word, ()) if isinstance(option, dict)]
    top = {word: value for word, value in schema.items() if word not in _COMBINED}
    properties = dict(top.get("properties", {}))
    for option in options:
        properties = {**option.get("properties", {}), **properties}
    return {**top, "type": "object", "properties": properties}
