"""The three forms of parameters, and their limits."""

from __future__ import annotations

from typing import Any

import pytest

from voxbridge.shared.errors import Code
from voxbridge.shared.platform.parameters import BYTES_LIMIT, DEPTH_LIMIT, ENUM_LIMIT, PROPERTIES_LIMIT, schema_of
from voxbridge.shared.platform.problems import Problem

NAME = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        (None, {"properties": {}, "type": "object", "required": []}),
        ({"city": "string"}, NAME),
        ({"limit": "number?"}, {"type": "object", "properties": {"limit": {"type": "number"}}, "required": []}),
        (
            {"city": {"type": "string", "description": "Name"}},
            {"type": "object", "properties": {"city": {"type": "string", "description": "Name"}}, "required": ["city"]},
        ),
        (
            {"status": {"type": "string?", "enum": ["open", "closed"]}},
            {"type": "object", "properties": {"status": {"type": "string", "enum": ["open", "closed"]}}, "required": []},
        ),
        (NAME, NAME),
        (
            {"due": {"type": ["string", "null"]}},
            {"type": "object", "properties": {"due": {"type": ["string", "null"]}}, "required": ["due"]},
        ),
        (
            {"type": "object", "strict": "boolean"},
            {"type": "object", "properties": {"type": {"type": "object"}, "strict": {"type": "boolean"}}, "required": ["type", "strict"]},
        ),
        (
            {"tags": {"type": ["array", "null"], "items": "string"}},
            {"type": "object", "properties": {"tags": {"type": ["array", "null"], "items": {"type": "string"}}}, "required": ["tags"]},
        ),
        (
            {**NAME, "if": {"required": ["city"]}, "then": {"maxProperties": 1}, "x-order": 1, "strict": True},
            {**NAME, "if": {"required": ["city"]}, "then": {"maxProperties": 1}, "x-order": 1, "strict": True},
        ),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "string"}, {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}),
        (
            {"tags": "string[]", "sizes": {"type": "array?", "items": "number"}},
            {
                "type": "object",
                "properties": {
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "sizes": {"type": "array", "items": {"type": "number"}},
                },
                "required": ["tags"],
            },
        ),
        (
            {"address": {"type": "object", "properties": {"street": "string", "zip": "string?"}}},
            {
                "type": "object",
                "properties": {
                    "address": {
                        "type": "object",
                        "properties": {"street": {"type": "string"}, "zip": {"type": "string"}},
                        "required": ["street"],
                    }
                },
                "required": ["address"],
            },
        ),
    ],
)
def test_each_form_becomes_one_json_schema(given: dict[str, Any] | None, schema: dict[str, Any]) -> None:
    assert schema_of("tool", given) == schema


def deep(levels: int) -> dict[str, Any]:
    return {"type": "array", "items": deep(levels - 1)} if levels else {"type": "string"}


@pytest.mark.parametrize(
    ("given", "field", "code"),
    [
        ({"city": "text"}, "tools.tool.parameters.city", Code.INVALID_ARGUMENT),
        ({"city": {"type": ["string", "text"]}}, "tools.tool.parameters.city.type", Code.INVALID_ARGUMENT),
        ({"city": 3}, "tools.tool.parameters.city", Code.INVALID_ARGUMENT),
        ({"city": {"description": "x"}}, "tools.tool.parameters.city.type", Code.INVALID_ARGUMENT),
        ({"city": {"type": "string", "enum": []}}, "tools.tool.parameters.city.enum", Code.INVALID_ARGUMENT),
        ({"city": {"type": "string", "enum": list(range(ENUM_LIMIT + 1))}}, "tools.tool.parameters.city.enum", Code.TOO_LARGE),
        ({f"p{n}": "string" for n in range(PROPERTIES_LIMIT + 1)}, "tools.tool.parameters", Code.TOO_LARGE),
        ({"city": {"type": "string", "description": "x" * BYTES_LIMIT}}, "tools.tool.parameters", Code.TOO_LARGE),
        ({"a": deep(DEPTH_LIMIT)}, "tools.tool.parameters.a" + ".items" * DEPTH_LIMIT, Code.TOO_LARGE),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "tools.tool.parameters.a.$ref", Code.INVALID_ARGUMENT),
        ({"type": "object", "properties": {}, "required": "a"}, "tools.tool.parameters.required", Code.INVALID_ARGUMENT),
    ],
)
def test_what_cannot_be_a_schema_is_refused_with_tool_and_field(given: dict[str, Any], field: str, code: Code) -> None:
    with pytest.raises(Problem) as caught:
        schema_of("tool", given)
    assert (caught.value.field, caught.value.code, caught.value.tool) == (field, code, "tool")
    assert "'tool'" in caught.value.message


def test_what_is_at_a_limit_is_taken() -> None:
    schema_of("tool", {f"p{n}": "string" for n in range(PROPERTIES_LIMIT)})
    schema_of("tool", {"one": {"type": "string", "enum": list(range(ENUM_LIMIT))}})
    schema_of("tool", {"a": deep(DEPTH_LIMIT - 2)})
