"""A page's configuration: its limits and its digest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from voxbridge.shared.errors import Code
from voxbridge.shared.platform import handlers
from voxbridge.shared.platform.handlers import Configuration, GivenTool, changes, configuration_of, digest_of
from voxbridge.shared.platform.problems import Problem

SOURCE = "async (args, ctx) => 1"


def given(name: str = "get_weather", **more: Any) -> GivenTool:
    return msgspec.structs.replace(GivenTool(name=name, parameters={"city": "string"}, handler=SOURCE), **more)


def test_the_forms_and_the_order_of_tools_do_not_change_the_digest() -> None:
    one = configuration_of(instructions="Be brief.", tools=[given("a"), given("b")])
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    two = configuration_of(instructions="Be brief.", tools=[given("b", parameters=schema), given("a")])
    assert digest_of(one) == digest_of(two)
    assert len(digest_of(one)) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"instructions": "Be long."},
        {"greeting": "Hello."},
        {"tools": []},
        {"tools": [given(handler="async (args, ctx) => 2")]},
        {"tools": [given(description="Other.")]},
        {"tools": [given(parameters={"city": "string?"})]},
        {"tools": [given("other")]},
    ],
)
def test_every_part_that_an_owner_approves_changes_the_digest(other: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"instructions": "Be brief.", "greeting": "", "tools": [given()]}
    before, after = configuration_of(**usual), configuration_of(**{**usual, **other})
    assert digest_of(before) != digest_of(after)
    assert changes(before, after)


def test_the_digest_is_the_same_in_every_release() -> None:
    assert digest_of(Configuration()) == "2b4e8257b69838ec4d38672b668ad8fd6c4cb55b305d1fd6602c23abde7fab69"


def test_models_are_told_of_a_tool_as_a_function_of_the_kind_customer() -> None:
    (function,) = configuration_of(tools=[given()]).functions()
    assert (function.kind, function.timeout_s, function.description) == ("customer", 30.0, "Get weather.")


@pytest.mark.parametrize(
    ("wrong", "field", "code"),
    [
        ({"instructions": "x" * (handlers.INSTRUCTIONS_LIMIT + 1)}, "instructions", Code.TOO_LARGE),
        ({"greeting": "x" * (handlers.GREETING_LIMIT + 1)}, "greeting", Code.TOO_LARGE),
        ({"tools": [given(f"t{n}") for n in range(handlers.TOOLS_LIMIT + 1)]}, "tools", Code.TOO_LARGE),
        ({"tools": [given("a"), given("a")]}, "tools[1].name", Code.INVALID_ARGUMENT),
        ({"tools": [given("2a")]}, "tools[0].name", Code.INVALID_ARGUMENT),
        ({"tools": [given(handler=" ")]}, "tools.get_weather.handler", Code.INVALID_ARGUMENT),
        ({"tools": [given(handler="x" * (handlers.SOURCE_LIMIT + 1))]}, "tools.get_weather.handler", Code.TOO_LARGE),
        ({"tools": [given(description="x" * (handlers.DESCRIPTION_LIMIT + 1))]}, "tools.get_weather.description", Code.TOO_LARGE),
        ({"tools": [given(f"t{n}", handler="x" * handlers.SOURCE_LIMIT) for n in range(5)]}, "tools", Code.TOO_LARGE),
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_its_field(wrong: dict[str, Any], field: str, code: Code) -> None:
    with pytest.raises(Problem) as caught:
        configuration_of(**wrong)
    assert (caught.value.field, caught.value.code) == (field, code)


def test_what_is_at_the_limits_is_taken() -> None:
    full = [given(f"t{n}", handler="x" * handlers.SOURCE_LIMIT, description="x" * handlers.DESCRIPTION_LIMIT) for n in range(4)]
    made = configuration_of(instructions="x" * handlers.INSTRUCTIONS_LIMIT, greeting="x" * handlers.GREETING_LIMIT, tools=full)
    assert len(made.tools) == 4
