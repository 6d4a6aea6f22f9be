"""GBNF grammars from JSON Schemas, with fixed spacing: `{"a": 1, "b": [1, 2]}`, as `json.dumps` writes it.

Pure. Output that follows a grammar has the schema's names, types, enums and required properties; lengths are enforced up to `MAX_REPEAT`.
Ranges of whole numbers are enforced where they begin at 0 or above; other ranges and patterns of strings are not expressed: the receiver
checks them. Fixed spacing keeps a small model from writing endless white space.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from voxbridge.shared.errors import Code, VoxbridgeError

WHOLE_LIMIT: Final = 10**15 - 1
"""Largest whole number that is written."""

MAX_DEPTH: Final = 16
MAX_RULES: Final = 1_000
MAX_ENUM: Final = 256
MAX_REPEAT: Final = 64

_COMMON: Final = r"""
char ::= [^"\\\x00-\x1F\x7F] | "\\" ["\\/nt]
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
natural ::= "0" | [1-9] [0-9]{0,14}
number ::= integer ("." [0-9]{1,12})?
boolean ::= "true" | "false"
null ::= "null"
value ::= string | number | boolean | null | array | object
array ::= "[" (value (", " value)*)? "]"
object ::= "{" (string ": " value (", " string ": " value)*)? "}"
"""


def literal(text: str) -> str:
    """Return a GBNF terminal for exactly `text`."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        elif ord(char) <= 0xFFFF:
            out.append(f"\\u{ord(char):04X}")
        else:
            out.append(f"\\U{ord(char):08X}")
    return '"' + "".join(out) + '"'


def json_literal(value: object) -> str:
    """Return a GBNF terminal for a JSON value in the fixed spacing."""
    return literal(json.dumps(value, ensure_ascii=False))


def refuse(message: str, path: str, *, code: Code = Code.INVALID_ARGUMENT, limit: int | None = None) -> VoxbridgeError:
    """Return the error for a schema that cannot be expressed."""
    return VoxbridgeError(code, f"{message} (at {path or 'the top'})", field="schema", limit=limit)


class Grammar:
    """The rules of a grammar; `text(root)` returns the whole grammar."""

    def __init__(self) -> None:
        self._rules: list[str] = []

    def add(self, body: str, path: str = "") -> str:
        """Add a rule and return its name."""
        if len(self._rules) >= MAX_RULES:
            raise refuse(f"The schema needs more than {MAX_RULES} grammar rules", path, code=Code.TOO_LARGE, limit=MAX_RULES)
        name = f"r{len(self._rules)}"
        self._rules.append(f"{name} ::= {body}")
        return name

    def reserve(self, path: str) -> str:
        """Return the name of a rule that is defined later, for schemas that refer to themselves."""
        return self.add("", path)

    def define(self, name: str, body: str) -> None:
        """Set the body of a reserved rule."""
        self._rules[int(name[1:])] = f"{name} ::= {body}"

    def text(self, root: str) -> str:
        """Return the grammar, with `root` as the body of its root rule."""
        return "\n".join([f"root ::= {root}", *self._rules]) + _COMMON


class _Compiler:
    def __init__(self, grammar: Grammar, schema: Mapping[str, Any]) -> None:
        self._grammar, self._top = grammar, schema
        self._references: dict[str, str] = {}

    def rule(self, schema: object, path: str, depth: int) -> str:
        """Return an expression (a rule name, a terminal, or a group) for a schema."""
        if depth > MAX_DEPTH:
            raise refuse(f"The schema is nested deeper than {MAX_DEPTH}", path, code=Code.TOO_LARGE, limit=MAX_DEPTH)
        if schema is True:
            return "value"
        if not isinstance(schema, Mapping):
            raise refuse("A schema is an object", path)
        if "$ref" in schema:
            return self._reference(schema["$ref"], path, depth)
        if "const" in schema:
            return json_literal(schema["const"])
        if "enum" in schema:
            return self._enum(schema["enum"], path)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._any(schema[word], f"{path}/{word}", depth)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            return self._any([{**schema, "type": each} for each in kind], path, depth)
        return self._typed(kind, schema, path, depth)

    def _typed(self, kind: object, schema: Mapping[str, Any], path: str, depth: int) -> str:
        match kind:
            case None:
                return "value"
            case "string":
                return self._string(schema)
            case "integer":
                return _whole(schema)
            case "number":
                return 'natural ("." [0-9]{1,12})?' if _at_least_zero(schema) else "number"
            case "boolean" | "null":
                return str(kind)
            case "array":
                return self._array(schema, path, depth)
            case "object":
                return self._object(schema, path, depth)
        raise refuse(f"The type {kind!r} is not one of JSON Schema", path)

    def _reference(self, target: object, path: str, depth: int) -> str:
        if not isinstance(target, str) or not target.startswith("#"):
            raise refuse("Only references within the schema are followed", path)
        if target not in self._references:
            found: Any = self._top
            for step in target.removeprefix("#").strip("/").split("/") if target != "#" else []:
                found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
            if found is None:
                raise refuse(f"{target} refers to nothing", path)
            name = self._references[target] = self._grammar.reserve(path)
            self._grammar.define(name, self.rule(found, target, depth + 1))
        return self._references[target]

    def _enum(self, values: object, path: str) -> str:
        if not isinstance(values, Sequence) or isinstance(values, str) or not 1 <= len(values) <= MAX_ENUM:
            raise refuse(f"An enum has 1 to {MAX_ENUM} values", path, limit=MAX_ENUM)
        return "(" + " | ".join(json_literal(value) for value in values) + ")"

    def _any(self, options: object, path: str, depth: int) -> str:
        if not isinstance(options, Sequence) or isinstance(options, str) or not 1 <= len(options) <= MAX_ENUM:
            raise refuse(f"A choice has 1 to {MAX_ENUM} options", path, limit=MAX_ENUM)
        return "(" + " | ".join(self.rule(option, f"{path}/{i}", depth + 1) for i, option in enumerate(options)) + ")"

    def _string(self, schema: Mapping[str, Any]) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength")
        low = min(low, MAX_REPEAT) if isinstance(low, int) else 0
        if isinstance(high, int) and low <= high <= MAX_REPEAT:
            return f'"\\"" char{{{low},{high}}} "\\""'
        return f'"\\"" char{{{low},}} "\\""' if low else "string"

    def _array(self, schema: Mapping[str, Any], path: str, depth: int) -> str:
        item = self._grammar.add(self.rule(schema.get("items", True), f"{path}/items", depth + 1), path)
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        low = min(low, MAX_REPEAT) if isinstance(low, int) else 0
        if isinstance(high, int) and low <= high <= MAX_REPEAT:
            if high == 0:
                return '"[]"'
            some = f'{item} (", " {item}){{{max(low - 1, 0)},{high - 1}}}'
        else:
            some = f'{item} (", " {item}){{{max(low - 1, 0)},}}'
        return f'"[" {some} "]"' if low else f'"[" ({some})? "]"'

    def _object(self, schema: Mapping[str, Any], path: str, depth: int) -> str:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            raise refuse("`properties` is an object", path)
        if not properties:
            extra = schema.get("additionalProperties", True)
            if extra is False:
                return '"{}"'
            value = self._grammar.add(self.rule(extra if isinstance(extra, Mapping) else True, path, depth + 1), path)
            return f'"{{" (string ": " {value} (", " string ": " {value})*)? "}}"'
        first, _ = self._pairs(list(properties.items()), _required(schema, path), path, depth)
        return f'"{{" {first} "}}"'

    def _pairs(self, properties: Sequence[tuple[str, object]], required: set[str], path: str, depth: int) -> tuple[str, str]:
        """Return the rules of an object's properties when none was written yet, and when one was."""
        first, later = '""', '""'
        for name, sub in reversed(properties):
            pair = self._grammar.add(f"{json_literal(name)} {literal(': ')} {self.rule(sub, f'{path}/{name}', depth + 1)}", path)
            after = later
            if name in required:
                first = self._grammar.add(f"{pair} {after}", path)
                later = self._grammar.add(f'", " {pair} {after}', path)
            else:
                first = self._grammar.add(f"{pair} {after} | {first}", path)
                later = self._grammar.add(f'(", " {pair})? {after}', path)
        return first, later

    def after_key(self, schema: Mapping[str, Any]) -> str:
        """Return an expression for the rest of an object, from the value of its first property on."""
        (name, sub), *others = schema["properties"].items()
        value = self._grammar.add(self.rule(sub, f"/{name}", 1), f"/{name}")
        _, later = self._pairs(others, _required(schema, ""), "", 0)
        return f'{value} {later} "}}"'


def _required(schema: Mapping[str, Any], path: str) -> set[str]:
    required = set(schema.get("required", ()))
    if unknown := required - set(schema["properties"]):
        raise refuse(f"`required` names {min(unknown)!r}, which is not a property", path)
    return required


def _whole(schema: Mapping[str, Any]) -> str:
    """Return the expression of the whole numbers that a schema admits, as far as that is expressed."""
    if not _at_least_zero(schema):
        return "integer"
    low = max(_bound(schema, "minimum", 0), _bound(schema, "exclusiveMinimum", -1) + 1)
    high = min(_bound(schema, "maximum", WHOLE_LIMIT), _bound(schema, "exclusiveMaximum", WHOLE_LIMIT + 1) - 1)
    return "natural" if (low, high) == (0, WHOLE_LIMIT) or low > high else f"({' | '.join(_between(low, high))})"


def _bound(schema: Mapping[str, Any], word: str, usual: int) -> int:
    found = schema.get(word)
    whole = isinstance(found, int) or (isinstance(found, float) and found.is_integer())
    return min(int(found), WHOLE_LIMIT) if found is not None and whole and not isinstance(found, bool) else usual


def _between(low: int, high: int) -> list[str]:
    """Return expressions of the whole numbers from one to another, shorter ones first."""
    found: list[str] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first, last = max(low, 10 ** (length - 1) if length > 1 else 0), min(high, 10**length - 1)
        found += _digits(str(first), str(last))
    return found


def _digits(first: str, last: str) -> list[str]:
    """Return expressions of the figures from one to another of the same length."""
    if first == last:
        return [literal(first)]
    if len(first) == 1:
        return [f"[{first}-{last}]"]
    rest = len(first) - 1
    if first[0] == last[0]:
        return [f"{literal(first[0])} {one}" for one in _digits(first[1:], last[1:])]
    begin, end, found, ending = int(first[0]), int(last[0]), [], []
    if first[1:] != "0" * rest:
        found = [f"{literal(first[0])} {one}" for one in _digits(first[1:], "9" * rest)]
        begin += 1
    if last[1:] != "9" * rest:
        ending = [f"{literal(last[0])} {one}" for one in _digits("0" * rest, last[1:])]
        end -= 1
    middle = [f"[{begin}-{end}] [0-9]{{{rest}}}"] if begin <= end else []
    return [*found, *middle, *ending]


def _at_least_zero(schema: Mapping[str, Any]) -> bool:
    for word in ("minimum", "exclusiveMinimum"):
        low = schema.get(word)
        if isinstance(low, int | float) and not isinstance(low, bool) and low >= 0:
            return True
    return False


def first_key(schema: Mapping[str, Any]) -> str:
    """Return the text that every object of a schema begins with, up to the value of its first property; empty if there is no such text."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or not schema.keys().isdisjoint({"$ref", "const", "enum", "anyOf", "oneOf"}):
        return ""
    name = next(iter(properties))
    certain = schema.get("type", "object") == "object" and name in schema.get("required", ())
    return f"{{{json.dumps(name, ensure_ascii=False)}: " if certain else ""


def compile_into(grammar: Grammar, schema: Mapping[str, Any], *, after_key: bool = False) -> str:
    """Add the rules for a schema, and return the expression that stands for it, or for what follows its `first_key`. Raises
    `INVALID_ARGUMENT` or `TOO_LARGE`."""
    compiler = _Compiler(grammar, schema)
    return grammar.add(compiler.after_key(schema) if after_key else compiler.rule(schema, "", 0))


def for_schema(schema: Mapping[str, Any]) -> str:
    """Return the grammar of a JSON Schema."""
    grammar = Grammar()
    return grammar.text(compile_into(grammar, schema))


def for_any_object() -> str:
    """Return the grammar of any JSON object."""
    return Grammar().text("object")
