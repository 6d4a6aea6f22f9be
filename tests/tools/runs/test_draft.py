from __future__ import annotations

from typing import Any

import pytest

from tests.tools.runs.world import World, document
from voxbridge.services.tools.runs.document import STEPS_LIMIT, Call
from voxbridge.services.tools.runs.draft import NUMBER_FROM, VALUES_LIMIT, Past, draft
from voxbridge.services.tools.runs.dry_run import PLANNED_LIMIT, plan
from voxbridge.services.tools.runs.spoken import STEPS_SPOKEN, steps, trigger
from voxbridge.shared.errors import VoxbridgeError


def past(name: str, result: Any = None, effect: Any = "write", /, **arguments: Any) -> Past:
    return Past(name=name, arguments=arguments, result=result if result is not None else {"ok": True}, effect=effect)


def drafted(*calls: Past) -> list[tuple[str, dict[str, Any]]]:
    found = draft("again", calls)
    return [(step.action.function, step.action.arguments) for step in found.steps if isinstance(step.action, Call)]


def test_what_was_done_becomes_steps_with_pipes_between_them() -> None:
    found = drafted(
        past("find", {"orders": [{"id": "A-17", "total": 120}], "name": "Ada"}, "read", name="Ada"),
        past("time", {"now": "noon"}, "read"),
        past("refund", order="A-17", amount=120, note="for A-17", who={"name": "Ada"}),
    )
    assert found == [
        ("find", {"name": "Ada"}),
        (
            "refund",
            {
                "order": "${steps.step1.result.orders.0.id}",
                "amount": "${steps.step1.result.orders.0.total}",
                "note": "for A-17",
                "who": {"name": "${steps.step1.result.name}"},
            },
        ),
    ]


def test_a_read_that_another_needed_read_rests_on_stays() -> None:
    found = drafted(
        past("a", {"key": "key-1"}, "read"), past("b", {"value": "value-2"}, "read", key="key-1"), past("write", text="value-2")
    )  # fmt: skip
    assert [name for name, _ in found] == ["a", "b", "write"]


def test_reads_alone_are_kept() -> None:
    assert [name for name, _ in drafted(past("time", None, "read"), past("weather", None, "read"))] == ["time", "weather"]


def test_what_ended_badly_and_what_is_about_functions_is_left_out() -> None:
    failed = Past(name="broken", arguments={})
    assert [name for name, _ in drafted(past("note"), failed, past("list_tools", None, "read"), past("create_macro"))] == ["note"]
    for nothing in ([], [failed], [past("run_macro", name="x")]):
        with pytest.raises(VoxbridgeError):
            draft("again", nothing)


@pytest.mark.parametrize("value", [True, None, 0, 3, NUMBER_FROM - 1, "", "ab", [], {}])
def test_a_value_that_is_equal_by_accident_is_no_pipe(value: Any) -> None:
    assert drafted(past("a", {"x": value}), past("b", y=value))[1] == ("b", {"y": value})


def test_the_latest_result_and_the_shortest_path_are_taken() -> None:
    found = drafted(past("a", {"x": "same"}), past("b", {"deep": {"x": "same"}, "y": "same"}), past("c", z="same"))
    assert found[2] == ("c", {"z": "${steps.step2.result.y}"})


def test_a_number_is_no_pipe_to_a_text_of_it() -> None:
    assert drafted(past("a", {"x": "120", "y": 120.0}), past("b", z=120))[1] == ("b", {"z": 120})


def test_a_text_that_looks_like_a_pipe_stands_for_itself() -> None:
    found = draft("again", [past("note", text="${input.x} and ${prev}")])
    world = World()
    world.start(found)
    assert world.calls["r1.step1.1"].arguments == {"text": "${input.x} and ${prev}"}


def test_a_part_that_no_pipe_can_name_is_no_pipe() -> None:
    assert drafted(past("a", {"ä b": "value"}), past("b", y="value"))[1] == ("b", {"y": "value"})


def test_a_draft_does_again_what_was_done() -> None:
    found = draft("again", [past("find", {"id": "A-17"}, "read"), past("open", id="A-17")])
    world = World()
    world.start(found)
    world.returns("r1.step1.1", id="B-18")
    assert world.calls["r1.step2.1"].arguments == {"id": "B-18"}


def test_a_draft_has_bounds() -> None:
    assert len(drafted(*[past("a")] * (STEPS_LIMIT + 5))) == STEPS_LIMIT
    wide = {"items": [f"value {number}" for number in range(VALUES_LIMIT + 10)]}
    last = wide["items"][-1]
    assert drafted(past("a", wide), past("b", x=last))[1] == ("b", {"x": last})
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    assert drafted(past("a", {"x": deep}), past("b", x="bottom"))[1] == ("b", {"x": "bottom"})


def test_a_plan_shows_what_is_known_before_anything_runs() -> None:
    inner = document({"call": "b", "arguments": {"x": "${input.n}"}}, name="inner", inputs={"n": {"type": "integer", "default": 1}})
    found = plan(
        document(
            {"id": "a", "call": "a", "arguments": {"who": "${input.who}", "what": "for ${input.who}: ${prev.x}"}},
            {"say": "no", "when": "${input.who} == 'Bob'"},
            {"say": "maybe", "when": "${prev.n} > 3"},
            {"run": "inner", "inputs": {"n": 7}},
            {"wait": 3},
            {"ask": "sure?"},
            {"stop": "enough"},
            "never",
            inputs={"who": {}},
        ),
        {"inner": inner},
        {"who": "Ada"},
    )
    assert [(one.step, one.action, one.target, one.arguments, one.when) for one in found] == [
        ("a", "call", "a", {"who": "Ada", "what": "for ${input.who}: ${prev.x}"}, ""),
        ("step3", "say", "", "maybe", "${prev.n} > 3"),
        ("step4", "run", "inner", {"n": 7}, ""),
        ("step4.step1", "call", "b", {"x": 7}, ""),
        ("step5", "wait", "", 3, ""),
        ("step6", "ask", "", "sure?", ""),
        ("step7", "stop", "", "enough", ""),
    ]


def test_a_plan_has_a_bound_and_ends_where_documents_run_in_a_circle() -> None:
    inner = document(*[{"say": "x"}] * 50, name="inner")
    assert len(plan(document(*[{"run": "inner"}] * 50), {"inner": inner}, {})) <= PLANNED_LIMIT + 50
    circle = document({"run": "deploy"})
    assert len(plan(circle, {"deploy": circle}, {})) == 3


def test_a_macro_is_read_back_in_words() -> None:
    macro = document(
        {"call": "set_timer", "arguments": {"seconds": 60, "label": "${prev.x}"}},
        {"run": "other"},
        {"say": "x" * 100},
        {"ask": "which?"},
        {"wait": 2},
        {"stop": "now"},
        "more",
        trigger="tea please",
    )
    text = steps(macro)
    assert text.startswith("first set timer with 60, then run other, then say")
    assert text.endswith(f"{len(macro.steps) - STEPS_SPOKEN} more steps")
    assert trigger(macro) == 'Say "tea please" to run it.'
    assert steps(document({"stop": "now"})) == "stop"
    assert trigger(document("a")) == "Say run deploy to run it."
