from __future__ import annotations

from typing import Any

import pytest

from tests.tools.runs.world import document
from voxbridge.services.tools.runs.checks import HIDDEN, check
from voxbridge.services.tools.runs.document import BUNDLE_BYTES
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code, VoxbridgeError


def function(name: str, required: tuple[str, ...] = (), kind: Any = "server", **properties: Any) -> Function:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Function(name=name, description=name, parameters=schema, kind=kind)


FUNCTIONS = {
    one.name: one
    for one in (
        function("find"),
        function(
            "note",
            ("text",),
            text={"type": "string", "minLength": 1, "maxLength": 20},
            count={"type": "integer", "minimum": 1, "maximum": 9},
            ratio={"type": "number"},
            loud={"type": "boolean"},
            sort={"enum": ["a", "b"]},
            tags={"type": "array", "items": {"type": "string"}},
            place={"$ref": "#/$defs/Place"},
            any={},
            maybe={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
        function("page", kind="browser"),
    )
}
INPUTS = {"n": {"type": "integer"}, "s": {}, "b": {"type": "boolean", "default": True}}


def checked(*steps: Any, others: dict[str, Any] | None = None, allowed: Any = None, **fields: Any) -> dict[str, Any]:
    return check(document(*steps, **{"inputs": INPUTS, **fields}), FUNCTIONS, others or {}, allowed=allowed)


def note(**arguments: Any) -> dict[str, Any]:
    return {"call": "note", "arguments": {"text": "x", **arguments}}


GOOD: list[Any] = [
    note(count=3),
    note(count="3"),
    note(count="${input.n}"),
    note(count="${input.s}"),
    note(count="${prev.n}"),
    note(count="${prev.n default: 5}"),
    note(ratio="${input.n}"),
    note(ratio=2),
    note(loud="${input.b}"),
    note(loud="true"),
    note(text="n is ${input.n}"),
    note(sort="b"),
    note(tags=["a", "${prev.x}"]),
    note(any="${prev}"),
    note(maybe=None),
    note(maybe="${input.n}"),
    note(text="${steps.step1.error.message}"),
]


@pytest.mark.parametrize("step", GOOD, ids=str)
def test_what_fits_as_far_as_it_is_known_is_taken(step: Any) -> None:
    checked("find", step)


BAD: list[tuple[Any, str]] = [
    ({"call": "fnd"}, "Did you mean find"),
    ({"call": "note"}, "text is missing"),
    (note(extra=1), "extra is no argument"),
    (note(count="many"), "count must be an integer, not a string"),
    (note(count="${input.b}"), "count must be an integer, not a boolean"),
    (note(count=10), "count must be 1 to 9"),
    (note(count=1.5), "count must be an integer"),
    (note(text=""), "text must have 1 to 20 characters"),
    (note(text="x" * 21), "characters"),
    (note(text="${prev}"), "text must be a string, not an object"),
    (note(text="${input.n}"), "text must be a string, not an integer"),
    (note(text=["x"]), "text must be a string, not an array"),
    (note(sort="c"), "sort must be one of a, b"),
    (note(tags=["a", 1]), r"tags\[1\] must be a string"),
    (note(tags="a"), "tags must be an array"),
    (note(maybe="x"), "fits none"),
    (note(loud="maybe"), "loud must be a boolean"),
    (note(text="${input.absent}"), "no such input"),
    (note(text="${steps.step2.result.x}"), "runs later"),
    (note(text="${steps.nowhere.result.x}"), "does not exist"),
    (note(text="${env.HOME}"), "refers to nothing"),
    (note(text="${prev"), "not a pipe"),
    ({"call": "find", "when": "${steps.step2.result.x} == 1"}, "runs later"),
    ({"call": "find", "when": "open('/etc/passwd')"}, "cannot be used"),
    ({"call": "find", "on_error": {"fallback": {"call": "nothing"}}}, "no function 'nothing'"),
    ({"call": "page"}, "needs a page"),
    ({"say": "${input.absent}"}, "no such input"),
    ({"ask": "${steps.x.result}"}, "does not exist"),
    ({"stop": {"result": "${input.absent}"}}, "no such input"),
    ({"run": "nowhere"}, "not there"),
    ({"run": "deploy"}, "never end"),
    ({"run": "inner", "inputs": {}}, "n is missing"),
    ({"run": "inner", "inputs": {"n": "x"}}, "n must be an integer"),
    ({"run": "inner", "inputs": {"n": 1, "m": 1}}, "m is no argument"),
    ({"run": "round"}, "never end"),
    *[({"call": name}, "A step cannot call") for name in sorted(HIDDEN)],
]


@pytest.mark.parametrize(("step", "why"), BAD, ids=lambda one: str(one)[:50])
def test_what_cannot_work_is_refused_before_it_is_saved(step: Any, why: str) -> None:
    others = {
        "inner": document({"say": "x"}, name="inner", inputs={"n": {"type": "integer"}}),
        "round": document({"run": "back"}, name="round"),
        "back": document({"run": "round"}, name="back"),
    }
    with pytest.raises(VoxbridgeError, match=why) as caught:
        checked("find", step, others=others)
    assert caught.value.field


def test_no_step_comes_before_the_first() -> None:
    with pytest.raises(VoxbridgeError, match="no step before the first"):
        checked(note(text="${prev.x}"))
    checked(note(text='${prev.x default: "none"}'))


def test_a_macro_may_not_do_what_its_author_may_not_even_through_another() -> None:
    checked("find", allowed={"find"})
    for steps, others in ((["find", note()], {}), ([{"run": "inner"}], {"inner": document(note(), name="inner")})):
        with pytest.raises(VoxbridgeError) as caught:
            checked(*steps, others=others, allowed={"find"})
        assert caught.value.code == Code.PERMISSION_DENIED


def test_documents_run_one_another_three_deep() -> None:
    chain = {f"m{n}": document({"run": f"m{n + 1}"}, name=f"m{n}") for n in range(3)} | {"m3": document("find", name="m3")}
    assert set(checked({"run": "m2"}, others=chain)) == {"m2", "m3"}
    with pytest.raises(VoxbridgeError) as caught:
        checked({"run": "m1"}, others=chain)
    assert caught.value.code == Code.TOO_LARGE


def test_a_document_and_what_it_runs_have_a_bound_in_bytes() -> None:
    big = {f"m{n}": document(*[{"say": "x" * 1_900}] * 16, name=f"m{n}") for n in range(5)}
    checked(*[{"run": f"m{n}"} for n in range(4)], others=big)
    with pytest.raises(VoxbridgeError) as caught:
        checked(*[{"run": f"m{n}"} for n in range(5)], others=big)
    assert caught.value.limit == BUNDLE_BYTES
