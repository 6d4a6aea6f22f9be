from __future__ import annotations

from typing import Any

import pytest

from voxbridge.services.tools.runs.conditions import TERMS_LIMIT, holds, read
from voxbridge.services.tools.runs.pipes import PIPES_LIMIT, RESOLVED_BYTES, Missing, Outcome, Pipe, Resolver, Scope, pipes_in, split
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

RESULT = {"count": 3, "price": 1.5, "ok": True, "none": None, "name": "api", "items": [{"id": "a"}, {"id": "b"}], "tags": ["x", "y"]}
SCOPE = Scope(
    inputs={"service": "billing", "force": False, "evil": "${steps.find.result.name}"},
    steps={
        "find": Outcome(state="completed", result=RESULT),
        "broken": Outcome(state="failed", error=Failure(code="TIMED_OUT", message="too late")),
        "left": Outcome(state="skipped"),
    },
    last="find",
)


def resolved(value: Any) -> Any:
    return Resolver(SCOPE).value(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${steps.find.result}", RESULT),
        ("${prev}", RESULT),
        ("${prev.count}", 3),
        ("${ prev.price }", 1.5),
        ("${prev.ok}", True),
        ("${prev.none}", None),
        ("${prev.items.1.id}", "b"),
        ("${steps.find.result.tags}", ["x", "y"]),
        ("${input.service}", "billing"),
        ("${input.force}", False),
        ("${steps.broken.error.code}", "TIMED_OUT"),
        ("${steps.left.state}", "skipped"),
        ("${prev.absent default: 5}", 5),
        ('${prev.absent default: "no \\"one\\""}', 'no "one"'),
        ("${prev.absent default: null}", None),
        ("${steps.later.result.x default: []}", []),
        ("${steps.left.result.x default: false}", False),
        ("n=${prev.count}, ok=${prev.ok}, ${prev.none}|${prev.tags}", 'n=3, ok=true, |["x","y"]'),
        ("$${prev}", "${prev}"),
        ("costs $5 {now}", "costs $5 {now}"),
        ("", ""),
    ],
)
def test_a_pipe_takes_its_value_with_its_type_alone_and_as_text_among_others(text: str, value: Any) -> None:
    found = resolved(text)
    assert found == value
    assert type(found) is type(value)


def test_pipes_are_replaced_at_any_depth_of_the_arguments() -> None:
    assert resolved({"a": ["${prev.count}", {"b": "${input.service}!"}], "c": 7}) == {"a": [3, {"b": "billing!"}], "c": 7}


@pytest.mark.parametrize(
    "text",
    [
        "${prev.absent}",
        "${prev.items.2}",
        "${prev.items.-1}",
        "${prev.items.first}",
        "${prev.name.0}",
        "${prev.name.upper}",
        "${prev.__class__}",
        "${prev.items.0.__class__.__mro__}",
        "${prev.items.99999999999999999999}",
        "${input.absent}",
        "${steps.later.result}",
        "${steps.broken.result}",
        "${steps.left.result}",
        "${steps.find.error.code}",
    ],
)
def test_a_pipe_without_a_value_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(Missing) as caught:
        resolved(text)
    assert text in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "${",
        "${}",
        "${prev",
        "${prev + 1}",
        "${prev[0]}",
        "${prev()}",
        "${__import__('os')}",
        "${input}",
        "${input.a.b}",
        "${steps}",
        "${steps.find}",
        "${steps.find.arguments}",
        "${env.HOME}",
        "${prev..a}",
        "${.prev}",
        "${" + "prev" + ".a" * 20 + "}",
        "${prev default: {" + "[" * 1_000 + "}",
        "${prev default: 1e999}",
        "${prev default: __import__}",
        "${${prev}}",
        "${prev\n}",
        "${" + "a" * 5_000 + "}",
        "${" * 5_000,
    ],
)
def test_what_is_no_pipe_is_refused(text: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        resolved(text)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_a_value_is_never_read_for_pipes_again() -> None:
    assert resolved("${input.evil}") == "${steps.find.result.name}"
    assert resolved("a ${input.evil}") == "a ${steps.find.result.name}"


def test_a_pipe_in_a_name_is_refused() -> None:
    with pytest.raises(VoxbridgeError, match="only values may"):
        list(pipes_in({"a": {"${prev}": 1}}))


def test_pipes_are_told_with_their_place() -> None:
    assert list(pipes_in({"a": ["x", "${prev}"]}, field="arguments")) == [("arguments.a[1]", Pipe(("prev",)))]


def test_a_step_takes_no_more_than_its_share_by_pipes() -> None:
    half = "x" * (RESOLVED_BYTES // 2)
    scope = Scope(inputs={"a": half, "b": [half]}, steps={})
    assert len(Resolver(scope).value(["${input.a}", "${input.a}"])) == 2
    for bomb in (["${input.a}"] * 3, "${input.a}" * 3, {"x": ["${input.b}", "${input.b}"]}):
        with pytest.raises(VoxbridgeError) as caught:
            Resolver(scope).value(bomb)
        assert caught.value.code == Code.TOO_LARGE
    tiny = Scope(inputs={"a": ""}, steps={})
    assert Resolver(tiny).value("${input.a}" * PIPES_LIMIT) == ""
    with pytest.raises(VoxbridgeError):
        Resolver(tiny).value("${input.a}" * (PIPES_LIMIT + 1))


def test_a_text_is_split_into_texts_and_pipes() -> None:
    assert split("a ${prev} $${b} c") == ["a ", Pipe(("prev",)), " ${b} c"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${prev.count} == 3", True),
        ("${prev.count}==3", True),
        ("${prev.count} != 3", False),
        ("${prev.count} < 3 or ${prev.price} >= 1.5", True),
        ("1 < ${prev.count} <= 3", True),
        ("${prev.count} > -1", True),
        ('"x" in ${prev.tags} and not "z" in ${prev.tags}', True),
        ('"z" not in ${prev.tags}', True),
        ("${prev.ok}", True),
        ("not ${input.force}", True),
        ("${prev.ok} == true and ${prev.none} == null", True),
        ("exists ${prev.name}", True),
        ("exists ${prev.none}", True),
        ("exists ${prev.absent}", False),
        ("not exists ${steps.later.result}", True),
        ("exists ${prev.absent} and ${prev.absent} > 3", False),
        ("(exists ${prev.absent} or exists ${prev.name}) and ${steps.broken.state} == 'failed'", True),
        ("${prev.absent default: 9} == 9", True),
        ("${input.service} == 'billing'", True),
        ("${prev.name} == 3", False),
    ],
)
def test_a_condition_compares_values(text: str, value: bool) -> None:
    assert holds(text, Resolver(SCOPE)) is value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "__import__('os').system('true')",
        "(1).__class__",
        "${prev}.count",
        "${prev}['count']",
        "${prev.tags}[0] == 'x'",
        "${prev.name}.upper() == 'API'",
        "len(${prev.tags}) > 1",
        "${prev.count} + 1 == 4",
        "9 ** 9 ** 9 ** 9 == 1",
        "'a' * 1000000000 == ''",
        "[x for x in ${prev.tags}]",
        "lambda: 1",
        "(yield)",
        "x := 1",
        "count == 3",
        "pipe_0 == 3",
        "pipe_0 ${prev}",
        "'${prev.name}' == 'api'",
        "f'{1}' == '1'",
        "b'a' == b'a'",
        "1j == 1",
        "... == 1",
        "${prev.name} is 'api'",
        "if ${prev.ok}",
        "${prev.ok}; import os",
        "(" * 300,
        "not " * 120,
        "-" * 400 + "1 == 1",
        "'\x00' == 1\x00",
        "exists 3",
        "exists",
        "${prev.ok} ${prev.ok}",
        "${prev.count} < 'a'",
        "3 in ${prev.count}",
        "${prev.absent} == 1",
        "${input.evil} > 1",
        "${prev.items} < ${prev.count}",
    ],
)
def test_a_condition_that_is_none_or_compares_what_has_no_order_is_refused(text: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        holds(text, Resolver(SCOPE))
    assert caught.value.code in (Code.INVALID_ARGUMENT, Code.TOO_LARGE)


def test_a_value_is_compared_and_never_becomes_part_of_the_condition() -> None:
    scope = Scope(inputs={"a": "1 == 1 or true", "b": "' or '' == '"}, steps={})
    assert holds("${input.a} == 'x'", Resolver(scope)) is False
    assert holds("${input.b} == ''", Resolver(scope)) is False


def test_a_condition_has_a_bound_of_terms() -> None:
    read(" and ".join(["1 == 1"] * (TERMS_LIMIT // 2)))
    with pytest.raises(VoxbridgeError) as caught:
        read(" and ".join(["1 == 1"] * (TERMS_LIMIT // 2 + 1)))
    assert caught.value.limit == TERMS_LIMIT
