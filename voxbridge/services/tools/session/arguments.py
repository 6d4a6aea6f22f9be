"""The check of arguments by a JSON Schema that a stranger wrote: patterns are searched by RE2, which cannot be made to run for long.

Pure; nothing is lost in a crash here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import re2
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.platform.problems import invalid


def check_schema(tool: str, schema: dict[str, Any]) -> None:
    """Check that a tool's schema can be used. Raises `Problem` naming what is wrong."""
    where = f"tools.{tool}.parameters"
    try:
        Draft202012Validator.check_schema(schema)
        for pattern in _patterns(schema):
            _searcher(pattern)
    except SchemaError as error:
        path = ".".join(str(one) for one in error.absolute_path)
        raise invalid(tool, f"{where}.{path}".rstrip("."), f"it is not a JSON Schema: {error.message[:200]}") from None
    except re2.error as error:
        raise invalid(tool, where, f"a pattern cannot be searched (look-around and back-references are not there): {error}") from None


def check(tool: str, schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Check the arguments of a call. Raises `INVALID_ARGUMENT` naming the one that is wrong."""
    error = best_match(_Validator(schema).iter_errors(arguments))
    if error is None:
        return
    path = ".".join(str(one) for one in error.absolute_path)
    known = ", ".join(list(schema.get("properties", {}))[:16]) or "none"
    where = f" for `{path}`" if path else ""
    raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{tool}: {error.message[:200]}{where}. Its arguments are: {known}.", field=path or None)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for word, value in schema.items():
            if word == "pattern" and isinstance(value, str):
                yield value
            elif word == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _patterns(one)


@lru_cache(maxsize=512)
def _searcher(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _searcher(pattern).search(instance):
        yield ValidationError(f"{msgspec.json.encode(instance[:80]).decode()} does not match {pattern[:80]!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _searcher(pattern).search(name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)


_extend: Any = validators.extend
_Validator: Any = _extend(Draft202012Validator, {"pattern": _pattern, "patternProperties": _pattern_properties})
