"""Functions that a page declares in `start`: accepted ones, and refusals with the name of the field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.gateway.core.driver import fresh, say
from voxbridge.services.gateway.core import messages
from voxbridge.services.gateway.core.outputs import Open
from voxbridge.services.gateway.core.page_functions import (
    BYTES_LIMIT,
    DEPTH_LIMIT,
    DESCRIPTION_LIMIT,
    FUNCTIONS_LIMIT,
    TIMEOUT_MS,
    PageFunction,
    check,
)
from voxbridge.shared.agents.functions import BROWSER_FUNCTIONS, Function, is_names
from voxbridge.shared.errors import Code, VoxbridgeError

PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def start(*tools: Any) -> messages.Start:
    message = messages.read(json.dumps({"type": "start", "mode": "local", "tools": list(tools)}).encode())
    assert isinstance(message, messages.Start)
    return message


def refused(*tools: Any) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as caught:
        start(*tools)
    return caught.value


def test_a_declared_function_is_the_pages_with_all_that_was_said_of_it() -> None:
    declared = {"name": "open_map", "description": "Show a place.", "parameters": PLACE, "timeoutMs": 5_000}
    assert check(start(declared).tools) == (
        Function(name="open_map", description="Show a place.", parameters=PLACE, kind="browser", timeout_s=5.0),
    )


def test_a_name_alone_is_a_function_without_arguments_described_by_its_name() -> None:
    assert check(start({"name": "page_title"}).tools) == (
        Function(
            name="page_title", description="Page title.", parameters={"type": "object", "properties": {}}, kind="browser", timeout_s=30
        ),
    )


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"type": "string"}, "tools[0].parameters.type"),
        ({"type": "objekt"}, "tools[0].parameters.type"),
        ({"properties": []}, "tools[0].parameters.properties"),
        ({"properties": {"a": 5}}, "tools[0].parameters.properties.a"),
        ({"properties": {"a": {"type": "text"}}}, "tools[0].parameters.properties.a.type"),
        ({"properties": {"a": {"$ref": "#/x"}}}, "tools[0].parameters.properties.a"),
        ({"properties": {"a": {"enum": []}}}, "tools[0].parameters.properties.a.enum"),
        ({"properties": {"a": {"enum": list(range(257))}}}, "tools[0].parameters.properties.a.enum"),
        ({"properties": {"a": {"type": "array", "items": 1}}}, "tools[0].parameters.properties.a.items"),
        ({"properties": {"a": {"anyOf": [{"type": "nil"}]}}}, "tools[0].parameters.properties.a.anyOf[0].type"),
        ({"properties": {"a": {"oneOf": []}}}, "tools[0].parameters.properties.a.oneOf"),
        ({"required": ["a"]}, "tools[0].parameters.required"),
        ({"required": "a", "properties": {"a": {}}}, "tools[0].parameters.required"),
    ],
)
def test_a_schema_that_not_every_model_takes_is_refused_by_its_place(parameters: Any, field: str) -> None:
    error = refused({"name": "a", "parameters": parameters})
    assert (error.code, error.field) == (Code.INVALID_ARGUMENT, field)


@pytest.mark.parametrize("name", ["", "5a", "a-b", "a b", "ä", "a" * 65, "a.b"])
def test_a_name_is_what_every_model_takes_as_one(name: str) -> None:
    assert refused({"name": name}).field == "tools[0].name"


def test_names_are_declared_once() -> None:
    error = refused({"name": "a"}, {"name": "b"}, {"name": "a"})
    assert (error.field, "declared twice" in error.message) == ("tools[2].name", True)


@pytest.mark.parametrize("ms", [TIMEOUT_MS[0] - 1, TIMEOUT_MS[1] + 1])
def test_a_time_out_has_bounds(ms: int) -> None:
    assert refused({"name": "a", "timeoutMs": ms}).limit == f"{TIMEOUT_MS[0]}..{TIMEOUT_MS[1]}"


@pytest.mark.parametrize("ms", TIMEOUT_MS)
def test_a_time_out_at_its_bounds_is_taken(ms: int) -> None:
    assert check(start({"name": "a", "timeoutMs": ms}).tools)[0].timeout_s == ms / 1_000


def test_a_description_at_its_limit_is_taken_and_one_beyond_it_is_not() -> None:
    start({"name": "a", "description": "x" * DESCRIPTION_LIMIT})
    assert refused({"name": "a", "description": "x" * (DESCRIPTION_LIMIT + 1)}).limit == DESCRIPTION_LIMIT


def test_so_many_functions_and_one_more() -> None:
    some = [{"name": f"f{number}"} for number in range(FUNCTIONS_LIMIT + 1)]
    start(*some[:-1])
    error = refused(*some)
    assert (error.code, error.field, error.limit) == (Code.TOO_LARGE, "tools", FUNCTIONS_LIMIT)


def test_so_many_bytes_and_one_more() -> None:
    def sized(size: int) -> list[PageFunction]:
        some = [PageFunction(name=f"f{number}", description="x" * 1_000) for number in range(15)]
        rest = size - len(msgspec.json.encode([*some, PageFunction(name="last", parameters={"title": ""})]))
        return [*some, PageFunction(name="last", parameters={"title": "x" * rest})]

    check(sized(BYTES_LIMIT))
    with pytest.raises(VoxbridgeError) as caught:
        check(sized(BYTES_LIMIT + 1))
    assert (caught.value.code, caught.value.limit) == (Code.TOO_LARGE, BYTES_LIMIT)


def test_a_schema_at_the_deepest_level_and_one_below_it() -> None:
    def nested(levels: int) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": nested(levels - 1)}} if levels > 1 else {"type": "object"}

    start({"name": "a", "parameters": nested(DEPTH_LIMIT)})
    assert refused({"name": "a", "parameters": nested(DEPTH_LIMIT + 1)}).limit == DEPTH_LIMIT


@pytest.mark.parametrize("tools", [5, [5], [{}], [{"name": 5}], [{"name": "a", "parameters": []}], [{"name": "a", "timeoutMs": "1"}]])
def test_what_is_no_declaration_is_an_invalid_message(tools: Any) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        messages.read(json.dumps({"type": "start", "mode": "local", "tools": tools}).encode())
    assert caught.value.code == Code.INVALID_MESSAGE


def test_numbers_that_the_log_cannot_keep_are_refused() -> None:
    assert refused({"name": "a", "parameters": {"properties": {"n": {"maximum": 2**70}}}}).field == "tools"


def capabilities(*, v1: bool = True, **fields: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a page that starts a session with these fields answers of the catalogue, and what it declares itself."""
    (opening,) = say(fresh(v1=v1), {"type": "start", "mode": "local", **fields})
    assert isinstance(opening, Open)
    return opening.event.client.browser, tuple(one.name for one in opening.event.functions)


def test_a_plain_client_that_names_nothing_answers_all_functions_of_a_page() -> None:
    assert capabilities(v1=False) == (BROWSER_FUNCTIONS, ())
    assert capabilities(v1=False, tools=[{"name": "own"}]) == (BROWSER_FUNCTIONS, ("own",))
    assert capabilities(v1=False, browserFunctions=[]) == ((), ())
    assert capabilities(v1=False, browserFunctions=["switch_theme"]) == (("switch_theme",), ())


def test_a_v1_client_answers_what_it_names() -> None:
    assert capabilities() == ((), ())
    assert capabilities(browserFunctions=["switch_theme", "switch_theme"]) == (("switch_theme",), ())


def test_a_function_of_the_catalogue_may_be_declared_by_its_name_alone() -> None:
    assert capabilities(tools=[{"name": "navigate_page"}, {"name": "own"}]) == (("navigate_page",), ("own",))


def test_a_page_may_declare_its_own_in_place_of_the_catalogues() -> None:
    own = {"name": "navigate_page", "description": "Go.", "parameters": PLACE}
    assert capabilities(tools=[own]) == ((), ("navigate_page",))


def test_a_page_may_say_what_an_argument_of_the_catalogues_may_name() -> None:
    paths = {"type": "object", "properties": {"path": {"type": "string", "enum": ["Home", "Orders"]}}}
    (opening,) = say(fresh(v1=True), {"type": "start", "mode": "local", "tools": [{"name": "navigate_page", "parameters": paths}]})
    assert isinstance(opening, Open)
    (declared,) = opening.event.functions
    assert is_names(declared)
    (opening,) = say(fresh(v1=True), {"type": "start", "mode": "local", "tools": [{"name": "navigate_page", "parameters": PLACE}]})
    assert isinstance(opening, Open)
    (declared,) = opening.event.functions
    assert not is_names(declared)


@pytest.mark.parametrize(
    ("names", "field"),
    [(["a-b"], "browserFunctions[0]"), (["a", ""], "browserFunctions[1]"), (["a"] * (FUNCTIONS_LIMIT + 1), "browserFunctions")],
)
def test_names_of_functions_that_a_page_answers_are_bounded(names: list[str], field: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        messages.read(json.dumps({"type": "start", "mode": "local", "browserFunctions": names}).encode())
    assert caught.value.field == field
    messages.read(json.dumps({"type": "start", "mode": "local", "browserFunctions": ["a"] * FUNCTIONS_LIMIT}).encode())
