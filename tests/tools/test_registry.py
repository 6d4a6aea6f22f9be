"""Name, description and schema of a typed callable, and refusals."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Alarm
from voxbridge.services.tools.core.results import RESULT_LIMIT, as_result
from voxbridge.services.tools.registry import BUILT_IN, MEMORY_MB, Isolation, Local, Tool, describe, function, load
from voxbridge.shared.agents.functions import BROWSER_FUNCTIONS
from voxbridge.shared.errors import Code, VoxbridgeError


class Size(msgspec.Struct):
    width: int
    height: int = 1


@function(timeout_s=2.5)
async def paint(
    colour: Literal["red", "blue"],
    size: Size,
    ctx: Context,
    times: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1,
    words: list[str] | None = None,
) -> dict[str, Any]:
    """Paint something.

    It stays painted.

    Args:
        colour: Which
            colour.
        times: How often.
    """
    return {}


@function(kind="async")
async def later() -> dict[str, Any]:
    """Do it later."""
    return {}


@function(kind="async")
async def ring() -> Alarm:
    """Ring."""
    return Alarm(after_ms=1, announce="", spoken="")


def tool(callable: Any = paint) -> Tool:
    return describe(callable, timeout_s=30)


def test_a_schema_is_derived_from_the_signature_and_the_docstring() -> None:
    described = tool()
    assert (described.name, described.description, described.timeout_s) == ("paint", "Paint something. It stays painted.", 2.5)
    assert described.parameters == {
        "type": "object",
        "properties": {
            "colour": {"description": "Which colour.", "enum": ["blue", "red"]},
            "size": {"$ref": "#/$defs/Size"},
            "times": {"description": "How often.", "type": "integer", "minimum": 1, "maximum": 3, "default": 1},
            "words": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["colour", "size"],
        "additionalProperties": False,
        "$defs": {
            "Size": {
                "title": "Size",
                "type": "object",
                "properties": {"width": {"type": "integer"}, "height": {"type": "integer", "default": 1}},
                "required": ["width"],
            }
        },
    }


def test_the_local_model_is_told_only_what_it_may_write() -> None:
    @function()
    async def plan(
        name: str,
        steps: Annotated[list[Any], Local(None)] = [],  # noqa: B006 - never changed
        on: Annotated[Literal["a"] | dict[str, Any], Local(Literal["a"])] = "a",
    ) -> dict[str, Any]:
        """Plan it.

        Args:
            on: Where.
        """
        return {}

    described = tool(plan)
    assert described.local == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "on": {"description": "Where.", "enum": ["a"], "default": "a"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    assert set(described.parameters["properties"]) == {"name", "steps", "on"}
    assert described.check({"name": "x", "steps": [1], "on": {}}), "who writes it all the same is understood"
    assert described.card().local == described.local
    assert tool().local is None


def test_the_context_is_passed_and_not_shown() -> None:
    assert tool().context_parameter == "ctx"
    assert "ctx" not in tool().parameters["properties"]


@pytest.mark.parametrize(("callable", "mode", "kind"), [(paint, "call", "server"), (later, "task", "async"), (ring, "alarm", "async")])
def test_the_kind_and_the_returned_type_say_how_a_call_is_answered(callable: Any, mode: str, kind: str) -> None:
    assert (tool(callable).mode, tool(callable).card().kind) == (mode, kind)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"size": {"width": 1}}, "colour"),
        ({"colour": "green", "size": {"width": 1}}, "colour"),
        ({"colour": "red", "size": {"width": "wide"}}, "size.width"),
        ({"colour": "red", "size": {"width": 1}, "times": 0}, "times"),
        ({"colour": "red", "size": {"width": 1}, "times": 4}, "times"),
        ({"colour": "red", "size": {"width": 1}, "ctx": {}}, "ctx"),
        ({"colour": "red", "size": {"width": 1}, "words": [1]}, "words[0]"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(VoxbridgeError, match="paint: ") as caught:
        tool().check(arguments)
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, field)
    assert f"`{field}`" in caught.value.message


def test_numbers_in_strings_are_taken_as_numbers() -> None:
    checked = tool().check({"colour": "red", "size": {"width": "7"}, "times": "2"})
    assert msgspec.to_builtins(checked) == {"colour": "red", "size": {"width": 7, "height": 1}, "times": 2, "words": None}


def pack(name: str, **members: Any) -> str:
    module = types.ModuleType(name)
    for key, value in members.items():
        if callable(value):
            value.__module__ = name
        setattr(module, key, value)
    sys.modules[name] = module
    return name


def undescribed() -> Any:
    async def silent(text: str) -> dict[str, Any]:
        return {}

    return function()(silent)


def needed() -> Any:
    @function()
    async def greedy(steps: Annotated[list[Any], Local(None)]) -> dict[str, Any]:
        """Greedy."""
        return {}

    return greedy


def untyped() -> Any:
    async def loose(text) -> dict[str, Any]:  # type: ignore[no-untyped-def]  # the error under test
        """Loose."""
        return {}

    return function()(loose)


def fine() -> Any:
    async def fine(text: str) -> dict[str, Any]:
        """Fine."""
        return {}

    return function()(fine)


def test_packs_that_cannot_be_used_are_named_with_the_reason() -> None:
    for packs, says in (
        (["there.is.none"], "cannot be imported"),
        ([pack("empty_pack", x=1)], "no function"),
        ([pack("silent_pack", silent=undescribed())], "docstring"),
        ([pack("loose_pack", loose=untyped())], "no type"),
        ([pack("greedy_pack", greedy=needed())], "cannot be left out"),
        ([pack("fine_pack", fine=fine()), pack("other_pack", fine=fine())], "another pack"),
    ):
        with pytest.raises(VoxbridgeError, match=says) as caught:
            load(packs, timeout_s=30)
        assert caught.value.field == "VOXBRIDGE_TOOL_PACKS"
    for name in ("empty_pack", "silent_pack", "loose_pack", "fine_pack", "other_pack"):
        del sys.modules[name]


@function(kind="browser", effect="read", timeout_s=5)
def look() -> None:
    """Look at the page."""


@function(kind="browser")
def look_with(ctx: Context) -> None:
    """Look at the page with a context."""


@function(kind="browser", isolated=True)
def look_apart() -> None:
    """Look at the page in a child."""


async def test_a_function_of_the_page_has_a_schema_and_no_code() -> None:
    card = tool(look).card()
    assert (card.kind, card.timeout_s, card.effect, card.parameters["properties"]) == ("browser", 5, "read", {})
    with pytest.raises(VoxbridgeError) as caught:
        await tool(look).run()
    assert (caught.value.code, "page" in caught.value.message) == (Code.UNAVAILABLE, True)


@pytest.mark.parametrize("wrong", [look_with, look_apart])
def test_a_function_of_the_page_does_not_run_here(wrong: Any) -> None:
    with pytest.raises(VoxbridgeError, match="function of the page"):
        tool(wrong)


def test_the_catalogue_has_the_functions_of_a_page() -> None:
    tools = load(BUILT_IN, timeout_s=30)
    found = [name for name, one in tools.items() if one.card().kind == "browser"]
    assert [name for name in found if name != "steer_tour"] == list(BROWSER_FUNCTIONS), "a plain client has no tours to steer"
    assert {tools[name].timeout_s for name in BROWSER_FUNCTIONS} == {5}


def test_an_unknown_kind_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="kind"):
        function(kind="later")


def endless() -> list[Any]:
    """Return a list that is in itself."""
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"a": 1}, {"a": 1}),
        (Size(2), {"width": 2, "height": 1}),
        ("hello", {"result": "hello"}),
        (None, {"result": None}),
        ([1], {"result": [1]}),
        ({"path": Path("a/b")}, {"path": "a/b"}),
    ],
)
def test_a_result_is_an_object(value: Any, result: dict[str, Any]) -> None:
    assert as_result("fn", value) == result


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"a": "x" * RESULT_LIMIT}, Code.TOO_LARGE),
        ({"a": 2**70}, Code.INTERNAL),
        ({"a": object()}, Code.INTERNAL),
        ({"a": {1: 2j}}, Code.INTERNAL),
        (endless(), Code.INTERNAL),
    ],
)
def test_a_result_that_cannot_be_kept_is_refused(value: Any, code: Code) -> None:
    with pytest.raises(VoxbridgeError, match="fn returned") as caught:
        as_result("fn", value)
    assert caught.value.code == code


@function(isolated=True, timeout_s=2.5)
def bounded(number: int) -> dict[str, Any]:
    """Run alone."""
    return {}


@function(isolated=Isolation(memory_mb=7, cpu_s=3))
def tight() -> dict[str, Any]:
    """Run alone."""
    return {}


@function(isolated=True)
async def awaits() -> dict[str, Any]:
    """Run alone."""
    return {}


@function(isolated=True)
def asks(ctx: Context) -> dict[str, Any]:
    """Run alone."""
    return {}


def test_an_isolated_function_has_limits_of_memory_and_of_processor_time() -> None:
    assert tool(bounded).isolation == Isolation(memory_mb=MEMORY_MB, cpu_s=3)
    assert tool(tight).isolation == Isolation(memory_mb=7, cpu_s=3)
    assert tool().isolation is None


@pytest.mark.parametrize("callable", [awaits, asks])
def test_what_cannot_run_in_a_process_of_its_own_is_refused_when_the_pack_is_loaded(callable: Any) -> None:
    with pytest.raises(VoxbridgeError, match="plain `def`"):
        tool(callable)


@pytest.mark.parametrize("limits", [Isolation(memory_mb=0), Isolation(cpu_s=-1)])
def test_limits_that_nothing_can_keep_are_refused(limits: Isolation) -> None:
    with pytest.raises(ValueError, match="1 MiB"):
        function(isolated=limits)
