"""JSON: checking, formatting, and finding a part of it by its path."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, count, given, plain, refused
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep

DIGITS_LIMIT: Final = 4_000
"""Digits of a whole number that is read as one; Python reads 4,300 at most."""
_KINDS: Final = {dict: "object", list: "array", str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}


class NotJson(Exception):
    """A text is not JSON. `line` and `column` count from 1; 0 where no place is known."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column

    def refusal(self) -> VoxbridgeError:
        """Return the error that says so."""
        where = f" at line {self.line}, column {self.column}" if self.line else ""
        return refused(f"This is not valid JSON: {self.problem}{where}.")


@dataclass(slots=True)
class Parsed:
    """A JSON value, and keys that occurred more than once in an object: of these the last one counts."""

    value: Any
    repeated: list[str] = field(default_factory=list)


def parse(text: str) -> Parsed:
    """Parse JSON as RFC 8259 has it. Raises `NotJson`."""
    repeated: dict[str, None] = {}

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            repeated.update((key, None) for key, times in Counter(key for key, _ in found).items() if times > 1)
        return made

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg.lower(), error.lineno, error.colno) from error
    except RecursionError:
        raise NotJson(f"it is nested more than {DEPTH_LIMIT} levels deep") from None
    if is_deep(value):
        raise NotJson(f"it is nested more than {DEPTH_LIMIT} levels deep")
    return Parsed(value, list(repeated))


def value_of(text: str) -> Any:
    """Return the value of a JSON text. Raises `INVALID_ARGUMENT` naming the place."""
    try:
        return parse(text).value
    except NotJson as error:
        raise error.refusal() from error


def check(text: str) -> dict[str, Any]:
    """Return whether a text is JSON, and what it holds or what is wrong."""
    try:
        parsed = parse(text)
    except NotJson as error:
        where = f" in line {error.line}" if error.line else ""
        return {
            "valid": False,
            "problem": error.problem,
            "line": error.line,
            "column": error.column,
            "spoken": f"No, it is not valid JSON: {error.problem}{where}.",
        }
    value = parsed.value
    kind = _KINDS[type(value)]
    result: dict[str, Any] = {"valid": True, "type": kind}
    about = f"an {kind}" if kind in ("object", "array") else f"a {kind}" if kind in ("text", "number") else kind
    if isinstance(value, dict | list):
        result["entries"] = len(value)
        about += f" with {count(len(value), 'entry', 'entries')}"
    if parsed.repeated:
        result["repeated_keys"] = [plain(key) for key in parsed.repeated[:LISTED_LIMIT]]
        about += ", but it has a key more than once"
    return result | {"spoken": f"Yes, it is valid JSON: {about}."}


def formatted(text: str, indent: int, *, sort_keys: bool) -> str:
    """Return JSON laid out, its numbers as they were written; with an indent of 0 in one line without spaces."""
    value = value_of(text)
    if not sort_keys:
        try:
            return msgspec.json.format(text, indent=indent or -1)
        except msgspec.DecodeError as error:
            raise refused(f"This is not valid JSON: {error}.") from error
    return dump(value, indent, sort_keys=True)


def dump(value: Any, indent: int, *, sort_keys: bool = False) -> str:
    """Return a value as JSON. Raises `INVALID_ARGUMENT` for a number that JSON does not have."""
    try:
        separators = None if indent else (",", ":")
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent or None, separators=separators, sort_keys=sort_keys)
    except ValueError as error:
        raise refused("It holds a number that is too large or is none, which JSON cannot say.") from error


def query(text: str, path: str) -> dict[str, Any]:
    """Return what a JMESPath expression finds; `$.` of a JSONPath before it is left out."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    value = value_of(text)
    expression = path.strip().removeprefix("$").lstrip(".") or "@"
    try:
        found = jmespath.search(expression, value)
    except (JMESPathError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        why = " ".join(str(error).split())[:200] if not isinstance(error, RecursionError) else "it is nested too deeply"
        raise refused(f"The path {path[:60]!r} cannot be used: {why}. Write it as in people[0].name.", "path") from error
    if is_deep(found):
        raise refused(f"What the path finds is nested more than {DEPTH_LIMIT} levels deep.", "path")
    if found is None:
        return {"found": False, "value": None, "spoken": "There is nothing at that path."}
    if isinstance(found, list | dict):
        noun = ("entry", "entries")
        return {"found": True, "value": plain(found), "count": len(found), "spoken": f"I found {count(len(found), *noun)} there."}
    return {"found": True, "value": plain(found), "spoken": f"It is {given(str(plain(found)))[:200]}."}


def _no_constant(name: str) -> Any:
    raise NotJson(f"{name} is not a JSON number")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS_LIMIT else float(digits)
