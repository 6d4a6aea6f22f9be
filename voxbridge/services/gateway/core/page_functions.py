"""Functions that a page declares in `start` and runs itself: their shape, their limits, and an error that names what is wrong.

Owns the check of a declaration; every provider accepts what passes it. Does not own whether a name is free: the voice service knows the
installation's functions. Pure; nothing is lost in a crash here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from voxbridge.shared.agents.functions import BROWSER_FUNCTIONS, Function, is_names
from voxbridge.shared.errors import Code, VoxbridgeError

FUNCTIONS_LIMIT: Final = 32
BYTES_LIMIT: Final = 16_384
"""Bytes of all declarations of a page as JSON: the model reads all of them with each turn."""
DESCRIPTION_LIMIT: Final = 1_024
DEPTH_LIMIT: Final = 8
TIMEOUT_MS: Final = (1_000, 300_000)
USUAL_TIMEOUT_MS: Final = 30_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_EMPTY: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


class PageFunction(msgspec.Struct, frozen=True, rename="camel"):
    """A function as declared by a page. `parameters` is a JSON Schema of an object, None for a function without arguments."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    timeout_ms: int = USUAL_TIMEOUT_MS

    @property
    def by_name(self) -> bool:
        """True for a name of `BROWSER_FUNCTIONS` alone: the catalogue has the words and the schema, the page only answers."""
        return self.name in BROWSER_FUNCTIONS and self == PageFunction(self.name)


def check(declared: Sequence[PageFunction]) -> tuple[Function, ...]:
    """Return the declared functions for the log, without those that the catalogue declares.

    Raises `INVALID_ARGUMENT` or `TOO_LARGE` naming field and limit."""
    if len(declared) > FUNCTIONS_LIMIT:
        message = f"A page declares at most {FUNCTIONS_LIMIT} functions; these are {len(declared)}."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="tools", limit=FUNCTIONS_LIMIT)
    names: set[str] = set()
    for number, one in enumerate(declared):
        _check_one(one, f"tools[{number}]")
        if one.name in names:
            raise _wrong(f"tools[{number}].name", f"{one.name} is declared twice")
        names.add(one.name)
    size = len(msgspec.json.encode(declared))
    if size > BYTES_LIMIT:
        message = f"The functions of a page have at most {BYTES_LIMIT} bytes of JSON; these have {size}."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="tools", limit=BYTES_LIMIT)
    return tuple(
        Function(
            name=one.name,
            description=one.description or _called(one),
            parameters={**_EMPTY, **(one.parameters or {})},
            kind="browser",
            timeout_s=one.timeout_ms / 1_000,
        )
        for one in declared
        if not one.by_name
    )


def _called(one: PageFunction) -> str:
    """Return what a function without a description is told to do; nothing where the catalogue says it, and the page what there is."""
    names = is_names(Function(name=one.name, description="", parameters=one.parameters or {}))
    return "" if names else f"{one.name.replace('_', ' ').strip().capitalize()}."


def check_names(names: Sequence[str]) -> None:
    """Check the names of functions that a page answers. Raises `INVALID_ARGUMENT` or `TOO_LARGE` naming field and limit."""
    if len(names) > FUNCTIONS_LIMIT:
        message = f"A page names at most {FUNCTIONS_LIMIT} functions; these are {len(names)}."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="browserFunctions", limit=FUNCTIONS_LIMIT)
    for number, name in enumerate(names):
        _check_name(name, f"browserFunctions[{number}]")


def answered(declared: Sequence[PageFunction], named: Sequence[str] | None, *, v1: bool) -> tuple[str, ...]:
    """Return the functions of the catalogue that a page answers. A plain client that names none, not even an empty list, answers all."""
    names = BROWSER_FUNCTIONS if named is None and not v1 else named or ()
    return tuple(dict.fromkeys([*names, *(one.name for one in declared if one.by_name)]))


def _check_one(one: PageFunction, field: str) -> None:
    _check_name(one.name, f"{field}.name")
    if len(one.description) > DESCRIPTION_LIMIT:
        raise _wrong(f"{field}.description", f"it has at most {DESCRIPTION_LIMIT} characters", DESCRIPTION_LIMIT)
    low, high = TIMEOUT_MS
    if not low <= one.timeout_ms <= high:
        raise _wrong(f"{field}.timeoutMs", f"it is from {low} to {high} ms", f"{low}..{high}")
    if one.parameters is not None:
        _check_schema({"type": "object", **one.parameters}, f"{field}.parameters", 1, object_only=True)


def _check_name(name: str, field: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise _wrong(field, "a name has 1 to 64 letters, digits and underscores and begins with no digit", _NAME.pattern)


def _check_schema(schema: Any, field: str, depth: int, *, object_only: bool = False) -> None:
    """Check a schema against the subset that all providers support: types, properties, items, enums and choices, without references."""
    if not isinstance(schema, dict):
        raise _wrong(field, "a schema is an object")
    if depth > DEPTH_LIMIT:
        raise _wrong(field, f"a schema is nested {DEPTH_LIMIT} deep at most", DEPTH_LIMIT)
    if "$ref" in schema or "$defs" in schema:
        raise _wrong(field, "references are not followed: write the schema in its place")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or any(not isinstance(kind, str) or kind not in _TYPES for kind in kinds):
        raise _wrong(f"{field}.type", f"it is one of {', '.join(sorted(_TYPES))}")
    if object_only and kinds != ["object"]:
        raise _wrong(f"{field}.type", "the arguments of a function are an object")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise _wrong(f"{field}.properties", "it is an object")
    for name, of in properties.items():
        _check_schema(of, f"{field}.properties.{name[:64]}", depth + 1)
    required = schema.get("required", [])
    if not isinstance(required, list) or any(not isinstance(name, str) or name not in properties for name in required):
        raise _wrong(f"{field}.required", "it lists names of `properties`")
    if "items" in schema:
        _check_schema(schema["items"], f"{field}.items", depth + 1)
    if "enum" in schema and (not isinstance(schema["enum"], list) or not 1 <= len(schema["enum"]) <= 256):
        raise _wrong(f"{field}.enum", "it lists 1 to 256 values", 256)
    for word in ("anyOf", "oneOf"):
        options = schema.get(word, [])
        if word in schema and (not isinstance(options, list) or not options):
            raise _wrong(f"{field}.{word}", "it lists schemas")
        for number, option in enumerate(options):
            _check_schema(option, f"{field}.{word}[{number}]", depth + 1)


def _wrong(field: str, why: str, limit: float | str | None = None) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` is wrong: {why}.", field=field, limit=limit)
