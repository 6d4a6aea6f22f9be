from __future__ import annotations

from typing import Any

import pytest

from voxbridge.services.tools.runs.document import (
    DOCUMENT_BYTES,
    NESTING_LIMIT,
    QUEUED_LIMIT,
    STEPS_LIMIT,
    Ask,
    Call,
    Fallback,
    Retry,
    RunMacro,
    Say,
    Stop,
    Wait,
    as_data,
    macro_id,
    parse,
)
from voxbridge.shared.errors import Code, VoxbridgeError


def macro(**fields: Any) -> dict[str, Any]:
    return {"name": "deploy", "steps": ["check_thermal"], **fields}


def refused(data: Any) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as caught:
        parse(data)
    return caught.value


def test_a_name_that_cannot_be_shown_is_refused() -> None:
    for name in ("night\u200b", "\u202enight", "ni\x00ght"):
        error = refused(macro(name=name))
        assert (error.code, error.field) == (Code.INVALID_ARGUMENT, "name")


def test_a_step_by_its_action_is_shorthand_for_the_full_one() -> None:
    short = parse(
        macro(
            steps=[
                "check_thermal",
                {"call": "create_note", "args": {"text": "x"}, "timeout_s": 5},
                {"say": "done", "when": "${prev.ok} == true", "id": "told"},
                {"ask": "which one", "timeout_s": 30},
                {"wait": 5},
                {"run": "other", "inputs": {"a": 1}},
                {"stop": {"reason": "enough", "error": True}},
            ]
        )
    )
    assert [step.action for step in short.steps] == [
        Call(function="check_thermal"),
        Call(function="create_note", arguments={"text": "x"}),
        Say(text="done"),
        Ask(question="which one", timeout_s=30),
        Wait(seconds=5),
        RunMacro(name="other", inputs={"a": 1}),
        Stop(reason="enough", error=True),
    ]
    assert [step.id for step in short.steps] == ["step1", "step2", "told", "step4", "step5", "step6", "step7"]
    assert short.steps[1].timeout_s == 5


def test_a_document_is_read_again_from_its_own_data() -> None:
    first = parse(macro(trigger="deploy {service}", policy={"mode": "queued", "limit": 2, "on_error": {"retry": {"n": 3, "backoff_s": 2}}}))
    assert first.triggers == ("deploy {service}",)
    assert (first.mode, first.limit, first.on_error) == ("queued", 2, Retry(n=3, backoff_s=2))
    assert parse(as_data(first)) == first


@pytest.mark.parametrize(
    ("policy", "meaning"),
    [
        ("stop", "stop"),
        ("continue", "continue"),
        ("ask", "ask"),
        ("retry", Retry()),
        ("retry 3", Retry(n=3)),
        ({"retry": 4}, Retry(n=4)),
        ({"retry": {"n": 1, "then": "ask"}}, Retry(n=1, then="ask")),
        ({"fallback": {"say": "it failed"}}, Fallback(step=Say(text="it failed"))),
        ({"fallback": "check_thermal"}, Fallback(step=Call(function="check_thermal"))),
    ],
)
def test_an_error_policy_has_a_short_form_for_the_macro_and_for_a_step(policy: Any, meaning: Any) -> None:
    assert parse(macro(policy=policy)).on_error == meaning
    assert parse(macro(on_error=policy)).on_error == meaning
    assert parse(macro(steps=[{"call": "a", "on_error": policy}])).steps[0].on_error == meaning


def test_a_policy_that_names_a_mode_sets_the_mode() -> None:
    assert parse(macro(policy="restart")).mode == "restart"


def test_a_document_at_its_limits_is_taken_and_one_beyond_is_refused() -> None:
    assert len(parse(macro(steps=["a"] * STEPS_LIMIT)).steps) == STEPS_LIMIT
    assert refused(macro(steps=["a"] * (STEPS_LIMIT + 1))).limit == STEPS_LIMIT
    parse(macro(mode="queued", limit=QUEUED_LIMIT))
    assert refused(macro(mode="queued", limit=QUEUED_LIMIT + 1)).limit == QUEUED_LIMIT
    huge = refused(macro(steps=[{"call": "a", "arguments": {"text": "x" * DOCUMENT_BYTES}}]))
    assert (huge.code, huge.limit) == (Code.TOO_LARGE, DOCUMENT_BYTES)
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert refused(macro(steps=[{"call": "a", "arguments": {"text": deep}}])).limit == NESTING_LIMIT


HOSTILE: list[Any] = [
    None,
    [],
    "steps",
    {},
    {"name": "x"},
    {"name": "x", "steps": []},
    {"name": "", "steps": ["a"]},
    {"name": "  ", "steps": ["a"]},
    {"name": "x" * 65, "steps": ["a"]},
    macro(steps=[{}]),
    macro(steps=[None]),
    macro(steps=[7]),
    macro(steps=[""]),
    macro(steps=[["a"]]),
    macro(steps=[{"call": "a", "say": "b"}]),
    macro(steps=[{"call": "a", "shell": "rm -rf /"}]),
    macro(steps=[{"do": "exec", "code": "1"}]),
    macro(steps=[{"id": "__class__", "call": "a"}]),
    macro(steps=[{"id": "A b", "call": "a"}]),
    macro(steps=[{"id": "a", "call": "a"}, {"id": "a", "call": "b"}]),
    macro(steps=[{"call": "a", "arguments": "x"}]),
    macro(steps=[{"call": "a", "arguments": {"x": object()}}]),
    macro(steps=[{"wait": 0}]),
    macro(steps=[{"wait": float("nan")}]),
    macro(steps=[{"wait": -1}]),
    macro(steps=[{"wait": 1e9}]),
    macro(steps=[{"call": "a", "on_error": "explode"}]),
    macro(steps=[{"call": "a", "on_error": {"retry": {"n": 6}}}]),
    macro(steps=[{"call": "a", "on_error": {"retry": {"n": 1, "backoff_s": 61}}}]),
    macro(steps=[{"call": "a", "on_error": {"fallback": {"run": "other"}}}]),
    macro(steps=[{"call": "a", "when": "1 == 1 " * 100}]),
    macro(steps={"a": 1}),
    macro(mode="forever"),
    macro(limit=0),
    macro(limit=9),
    macro(timeout_s=86_401),
    macro(confirm="maybe"),
    macro(inputs={"a": {"type": "object"}}),
    macro(inputs={"a b": {}}),
    macro(inputs={"a": {"type": "integer", "default": "x"}}),
    macro(inputs={f"a{number}": {} for number in range(17)}),
    macro(trigger=["a"] * 9),
    macro(trigger=7),
    macro(trigger="x" * 121),
    macro(unknown=True),
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data)[:40])
def test_a_document_that_is_none_is_refused_with_a_sentence(data: Any) -> None:
    error = refused(data)
    assert error.code in (Code.INVALID_ARGUMENT, Code.TOO_LARGE)
    assert error.message.endswith(".")


@pytest.mark.parametrize(
    ("one", "other"),
    [("दिन", "दान"), ("शाम", "शोम"), ("C++", "C#"), ("école", "ecole"), ("🎉", "🚀"), ("50%", "50"), ("ครู", "คร")],
)
def test_two_different_names_are_two_macros(one: str, other: str) -> None:
    assert macro_id(one) != macro_id(other)
    assert macro_id(one)
    assert macro_id(other)


@pytest.mark.parametrize("name", ["Good night", "good-night", " GOOD   NIGHT! ", "good_night"])
def test_case_spaces_and_punctuation_make_no_other_macro(name: str) -> None:
    assert macro_id(name) == "good_night"
    assert macro_id(macro_id(name)) == macro_id(name)
