"""Schemas of MCP tools: odd ones are put right or refused by name, whatever is told of them is read by every dialect and by the grammar."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.models import gbnf
from voxbridge.services.models.core import grammar
from voxbridge.services.tools.mcp.config import Hints
from voxbridge.services.tools.mcp.content import result_of
from voxbridge.services.tools.mcp.schemas import ENUM_LIMIT, NODES_LIMIT, Unusable, normal
from voxbridge.services.tools.mcp.text import SCHEMA_LIMIT, clean, offer
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import dialects

ID = {"identifier": {"type": "string"}}
PAGE = {"type": "object", "properties": {"title": {"type": "string"}, **ID}, "required": ["title"]}


def of(properties: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, of({})),
    (of(None), of({})),
    (of({"a": {"type": "string"}}, required=["a", "b"]), of({"a": {"type": "string"}}, required=["a"])),
    (of({"a": {"type": "string"}}, required=None), of({"a": {"type": "string"}})),
    (of({"a": {"type": "string"}}, required=False), of({"a": {"type": "string"}})),
    (of({"a": {"type": "string", "required": True}, "b": {"required": False}}), of({"a": {"type": "string"}, "b": {}}, required=["a"])),
    (of({"a": {"type": "date"}}), of({"a": {"type": "string", "format": "date"}})),
    (of({"a": {"type": "any"}}), of({"a": {}})),
    (of({"a": {"type": ["int", "null"]}}), of({"a": {"type": ["integer", "null"]}})),
    (of({"a": {"type": "array", "items": None}}), of({"a": {"type": "array"}})),
    (
        of({"a": {"type": "array", "items": [{"type": "string"}, {"type": "bool"}]}}),
        of({"a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": {}}}),
    ),
    (of({"a": True, "b": None}), of({"a": {}, "b": {}})),
    ({"$ref": "#/$defs/Page", "$defs": {"Page": PAGE}}, PAGE),
    ({"$ref": "#/definitions/Page", "definitions": {"Page": PAGE}, "required": ["title"]}, PAGE),
    (
        {"allOf": [{"$ref": "#/$defs/Base"}, of({"b": {}}, required=["b"])], "$defs": {"Base": of(ID, required=["identifier"])}},
        of({**ID, "b": {}}, required=["identifier", "b"]),
    ),
    (
        of({"headers": {"type": "object", "properties": ID}, "more": {"$ref": "#/properties/headers"}}),
        of({"headers": {"type": "object", "properties": ID}, "more": {"type": "object", "properties": ID}}),
    ),
    (of({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": of({"next": {"$ref": "#/$defs/Node"}})}}), of({"a": of({"next": {}})})),
    (of({"a": {"$ref": "#"}}), of({"a": of({"a": {}})})),
    (of({"a": {"anyOf": [{"type": "string"}]}}), of({"a": {"type": "string"}})),
    (
        of({"a": {"$ref": "#/$defs/A~1B", "description": "Its name."}}, **{"$defs": {"A/B": {"type": "string"}}}),
        of({"a": {"type": "string", "description": "Its name."}}),
    ),
    (of({"a": {"type": "string"}}, additionalProperties=None), of({"a": {"type": "string"}})),
    (of({"a": {"not": "x"}}), of({"a": {}})),
    (of({"a": {"type": "String"}}), of({"a": {"type": "string"}})),
    (of({"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}), of({"a": {"type": "number", "exclusiveMinimum": 0}})),
    (of({"a": {"type": "number", "maximum": 3, "exclusiveMaximum": False}}), of({"a": {"type": "number", "maximum": 3}})),
    (of({"a": {"type": "integer", "minimum": "3", "maximum": 9}}), of({"a": {"type": "integer", "maximum": 9}})),
    (of({"a": {"type": "string", "maxLength": -1, "minLength": 1.5}}), of({"a": {"type": "string"}})),
    (
        of({"a": {"type": "string", "pattern": "("}, "b": {"type": "string", "pattern": "^a"}}),
        of({"a": {"type": "string"}, "b": {"type": "string", "pattern": "^a"}}),
    ),
    (of({"a": {"type": "string", "description": 5, "title": ["x"], "format": 7}}), of({"a": {"type": "string"}})),
    (of({"a": {"type": "array", "minItems": "x", "uniqueItems": "yes"}}), of({"a": {"type": "array"}})),
    (of({"a": {"type": "number", "multipleOf": 0}}), of({"a": {"type": "number"}})),
    (of({"a": {"type": "object", "patternProperties": {"(": {}}, "examples": "x"}}), of({"a": {"type": "object"}})),
    ({"type": ["object", "null"], "properties": {"a": {"type": "string"}}}, of({"a": {"type": "string"}})),
]


@pytest.mark.parametrize(("schema", "told"), ODD)
def test_what_is_odd_and_clear_is_put_right(schema: dict[str, Any], told: dict[str, Any]) -> None:
    found = normal(schema)
    assert found == told
    assert normal(found) == found
    Draft202012Validator.check_schema(found)
    for dialect in (dialects.openai, dialects.anthropic, dialects.gemini):
        assert set(dialect(found)["properties"]) == set(told["properties"]), "each model is told every argument"
    assert gbnf._grammar(grammar.for_schema(found))


MEANINGLESS: list[tuple[dict[str, Any], str]] = [
    (of([]), "`properties`"),
    (of({"a": {"type": "colour"}}), "'colour' is not a type"),
    (of({"a": {"enum": []}}), "no values"),
    (of({"a": {"$ref": "https://example.com/a.json"}}), "another document"),
    (of({"a": {"$ref": "#/$defs/B"}}), "refers to nothing"),
    (of({"a": {"$ref": 7}}), "another document"),
    (of({"a": ["string"]}), "not an object"),
    (of({"a": {"allOf": {}}}), "`allOf`"),
    ({"type": "string"}, "not an object"),
    (of({f"a{n}": {} for n in range(NODES_LIMIT)}), "parts"),
]


@pytest.mark.parametrize(("schema", "why"), MEANINGLESS)
def test_what_means_nothing_is_refused_with_its_reason(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(Unusable, match=why):
        normal(schema)


def test_a_bad_tool_is_named() -> None:
    with pytest.raises(VoxbridgeError, match=r"'paint' is not offered: .*'colour' is not a type"):
        offer("paint", "Paint.", of({"a": {"type": "colour"}}), None, Hints())


def test_of_a_long_enum_a_few_values_are_told() -> None:
    values = [f"v{number}" for number in range(ENUM_LIMIT + 1)]
    at = normal(of({"a": {"enum": values[:-1]}}))["properties"]["a"]
    assert at == {"enum": values[:-1]}
    beyond = normal(of({"a": {"type": "string", "enum": values, "description": "Which."}}))["properties"]["a"]
    assert beyond == {"type": "string", "description": "Which. One of 257 values, such as v0, v1, v2, v3, v4, v5, v6, v7."}


def test_references_that_multiply_are_refused() -> None:
    names = [chr(ord("A") + number) for number in range(12)]
    defs = {one: of({f"p{n}": {"$ref": f"#/$defs/{other}"} for n in range(4)}) for one, other in pairwise(names)}
    with pytest.raises(VoxbridgeError, match="references are in place"):
        offer("x", "x", {"$ref": "#/$defs/A", "$defs": {**defs, names[-1]: {"type": "string"}}}, None, Hints())
    wide = {"$defs": {"L": {"type": "string", "description": "d" * 250}}, **of({f"p{n}": {"$ref": "#/$defs/L"} for n in range(100)})}
    with pytest.raises(VoxbridgeError, match=f"more than {SCHEMA_LIMIT} bytes"):
        offer("x", "x", wide, None, Hints())


@pytest.mark.parametrize("text", ["من می\u200cخواهم بروم", "क्\u200dष", "👨\u200d👩\u200d👧", "❤️\u200d🔥"])
def test_joiners_stay_where_something_is_joined(text: str) -> None:
    assert clean(text, 100) == text
    assert offer("x", "x", of({"a": {"enum": [text]}}), None, Hints()).parameters["properties"]["a"]["enum"] == [text]


@pytest.mark.parametrize("text", ["a\u200db", "1\u200c2", "\u200dx", "x\u200d", "д\u200dа", "a \u200d b"])
def test_joiners_that_join_nothing_are_taken_out(text: str) -> None:
    assert clean(text, 100) == text.replace("\u200d", "").replace("\u200c", "")


@pytest.mark.parametrize("text", ["null", " None ", "undefined", ""])
def test_an_answer_of_nothing_is_not_said_as_a_word(text: str) -> None:
    assert result_of("s", "t", {"content": [{"type": "text", "text": text}]}) == {"text": "", "spoken": "Done."}
    assert result_of("s", "t", {"content": [{"type": "text", "text": "null and void"}]})["spoken"] == "null and void"


def test_a_default_may_have_line_ends() -> None:
    given = of({"a": {"type": "string", "default": "one\r\ntwo\u00ad"}})
    assert offer("x", "x", given, None, Hints()).parameters["properties"]["a"]["default"] == "one\r\ntwo\u00ad"
