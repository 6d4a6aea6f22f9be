"""Grammars from schemas: llama.cpp accepts them, and they admit exactly the valid values of the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.gbnf import Gbnf, accepts
from voxbridge.services.models.core import grammar
from voxbridge.services.models.core.chatml import Choice, Tool, tool_grammar
from voxbridge.shared.errors import Code, VoxbridgeError

NAMES = st.from_regex(r"[a-z_][a-z0-9_ \"\\é]{0,8}", fullmatch=True)
SCALARS = st.one_of(
    st.just({"type": "string"}),
    st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, st.integers(0, 3), st.integers(0, 20)),
    st.just({"type": "integer"}),
    st.just({"type": "integer", "minimum": 0}),
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, st.integers(0, 2_000), st.integers(0, 20_000)),
    st.just({"type": "number"}),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["string", "null"]}),
    st.builds(
        lambda values: {"enum": values}, st.lists(st.one_of(st.text(max_size=6), st.integers(), st.booleans()), min_size=1, max_size=4)
    ),
    st.builds(lambda value: {"const": value}, st.text(max_size=6)),
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(NAMES, inner, max_size=4)
    return properties.flatmap(
        lambda made: st.builds(
            lambda required: {"type": "object", "properties": made, "required": sorted(required), "additionalProperties": False},
            st.sets(st.sampled_from(sorted(made))) if made else st.just(set()),
        )
    )


SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        _objects(inner),
        st.builds(
            lambda item, low, more: {"type": "array", "items": item, "minItems": low, "maxItems": low + more},
            inner,
            st.integers(0, 2),
            st.integers(0, 2),
        ),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


def an_instance(schema: dict[str, Any], draw: st.DataObject) -> Any:
    """Draw a value that the schema admits."""
    if "enum" in schema:
        return draw.draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return an_instance(draw.draw(st.sampled_from(schema["anyOf"])), draw)
    kind = schema["type"]
    if isinstance(kind, list):
        kind = draw.draw(st.sampled_from(kind))
    match kind:
        case "string":
            plain = st.characters(exclude_categories=("Cc", "Cs"))
            return draw.draw(st.text(plain, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 10)))
        case "integer":
            return draw.draw(st.integers(schema.get("minimum", -(10**9)), schema.get("maximum", 10**9)))
        case "number":
            return draw.draw(st.decimals(-1000, 1000, places=2).map(float))
        case "boolean":
            return draw.draw(st.booleans())
        case "null":
            return None
        case "array":
            count = draw.draw(st.integers(schema["minItems"], schema["maxItems"]))
            return [an_instance(schema["items"], draw) for _ in range(count)]
    required = schema["required"]
    chosen = [name for name in schema["properties"] if name in required or draw.draw(st.booleans())]
    return {name: an_instance(schema["properties"][name], draw) for name in chosen}


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.data())
def test_what_a_schema_admits_its_grammar_accepts_as_json_dumps_writes_it(schema: dict[str, Any], data: st.DataObject) -> None:
    text = grammar.for_schema(schema)
    assert accepts(text, json.dumps(an_instance(schema, data), ensure_ascii=False))


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.randoms(use_true_random=False))
def test_whatever_a_grammar_writes_is_json_that_fits_the_schema(schema: dict[str, Any], random: Any) -> None:
    value = json.loads(Gbnf(grammar.for_schema(schema)).write(random))
    assert fits(schema, value)


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Return whether a value fits; a small validator for the schemas of this file."""
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return bool(value == schema["const"])
    if "anyOf" in schema:
        return any(fits(option, value) for option in schema["anyOf"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return any(_fits_kind(kind, schema, value) for kind in kinds)


def _fits_kind(kind: str, schema: dict[str, Any], value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str) and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30)
        case "integer":
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            inside = isinstance(value, list) and all(fits(schema["items"], item) for item in value)
            return inside and schema["minItems"] <= len(value) <= schema["maxItems"]
    names = set(schema["properties"])
    known = isinstance(value, dict) and set(schema["required"]) <= set(value) <= names
    return known and all(fits(schema["properties"][name], item) for name, item in value.items())


ENGINE_CHECKS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "minimum": 1}}, "required": ["a"]},
    {"type": "array", "items": {"enum": ["ä", 'quo"te', "back\\slash", "🙂"]}, "maxItems": 3},
    {"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"},
    {"type": "object"},
    {},
]


@pytest.mark.parametrize("schema", ENGINE_CHECKS, ids=["object", "enum", "recursive", "any object", "anything"])
def test_a_grammar_names_every_rule_it_uses(schema: dict[str, Any]) -> None:
    Gbnf(grammar.for_schema(schema)).check()


def test_a_schema_that_refers_to_itself_admits_any_depth() -> None:
    text = grammar.for_schema(ENGINE_CHECKS[2])
    assert accepts(text, '{"next": {"next": {}}}')
    assert not accepts(text, '{"other": {}}')


@pytest.mark.parametrize(("low", "high"), [(0, 9), (1, 20), (1, 200), (7, 7), (95, 1_203), (0, 43_200), (1_000, 1_000), (199, 1_999)])
def test_whole_numbers_are_those_of_their_range_and_no_others(low: int, high: int) -> None:
    text = grammar.for_schema({"type": "integer", "minimum": low, "maximum": high})
    beside = {*range(max(0, low - 3), low), *range(high + 1, high + 4), high * 10, low * 10 + 10 * high}
    within = range(low, high + 1, max(1, (high - low) // 50))
    assert all(accepts(text, str(number)) for number in (*within, high))
    assert not any(accepts(text, number) for number in (*map(str, beside), "-1", f"0{high}", ""))


def test_spacing_is_fixed() -> None:
    text = grammar.for_schema(
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    )
    assert accepts(text, '{"a": 1, "b": 2}')
    for padded in ('{"a":1, "b": 2}', '{ "a": 1, "b": 2}', '{"a": 1,\n"b": 2}', '{"b": 2, "a": 1}', '{"a": 1}'):
        assert not accepts(text, padded)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "thing"}, "'thing' is not one of JSON Schema"),
        ({"$ref": "#/nowhere"}, "refers to nothing"),
        ({"$ref": "https://elsewhere"}, "within the schema"),
        ({"enum": []}, "1 to 256 values"),
        ({"anyOf": []}, "1 to 256 options"),
        ({"type": "object", "properties": {"a": 1}}, "A schema is an object"),
        ({"type": "object", "properties": []}, "`properties` is an object"),
        ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, "names 'b', which is not a property"),
    ],
)
def test_a_schema_without_a_meaning_is_refused_with_the_reason(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(VoxbridgeError, match=message) as refused:
        grammar.for_schema(schema)
    assert refused.value.field == "schema"


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def test_the_depth_of_a_schema_has_a_limit() -> None:
    Gbnf(grammar.for_schema(_nested(grammar.MAX_DEPTH))).check()
    with pytest.raises(VoxbridgeError, match="nested deeper than 16") as refused:
        grammar.for_schema(_nested(grammar.MAX_DEPTH + 1))
    assert refused.value.code is Code.TOO_LARGE
    assert refused.value.limit == grammar.MAX_DEPTH


def test_the_size_of_a_grammar_has_a_limit() -> None:
    properties = {f"p{i}": {"type": "string"} for i in range(grammar.MAX_RULES)}
    with pytest.raises(VoxbridgeError, match="more than 1000 grammar rules") as refused:
        grammar.for_schema({"type": "object", "properties": properties})
    assert refused.value.code is Code.TOO_LARGE


TOOLS = [
    Tool(
        "set_timer",
        "",
        {
            "type": "object",
            "properties": {"seconds": {"type": "integer", "minimum": 1}, "label": {"type": "string"}},
            "required": ["seconds"],
        },
    ),
    Tool("list_timers", "", {"type": "object", "properties": {}}),
]


def test_an_answer_is_words_or_one_valid_call() -> None:
    text = tool_grammar(TOOLS, Choice())
    for good in ("Sure, I can.", "42 is it.", "Ça va?", '{"tool": "set_timer", "args": {"seconds": 10}}'):
        assert accepts(text, good)
    for bad in (
        '{"tool": "other", "args": {}}',
        '{"tool": "set_timer", "args": {}}',
        '{"tool": "set_timer"}',
        "`code`",
        "{words}",
        "",
        "# Title",
    ):
        assert not accepts(text, bad)


def test_a_required_call_admits_no_words_and_none_admits_no_call() -> None:
    call = '{"tool": "set_timer", "args": {"seconds": 1, "label": "tea"}}'
    assert accepts(tool_grammar(TOOLS, Choice("required")), call)
    assert not accepts(tool_grammar(TOOLS, Choice("required")), "words")
    assert accepts(tool_grammar(TOOLS, Choice("none")), "words")
    assert not accepts(tool_grammar(TOOLS, Choice("none")), call)
    assert not accepts(tool_grammar(TOOLS, Choice("required", "list_timers")), call)
