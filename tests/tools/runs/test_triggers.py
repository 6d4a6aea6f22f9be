from __future__ import annotations

from typing import Any

import pytest

from tests.tools.runs.world import document
from voxbridge.services.tools.runs.triggers import RESERVED, SLOT_WORDS, UTTERANCE_CHARACTERS, check, match
from voxbridge.shared.errors import Code, VoxbridgeError


def macro(name: str, *triggers: str, **inputs: Any) -> Any:
    return document("a", name=name, triggers=list(triggers), inputs={one: given or {} for one, given in inputs.items()})


KNOWN = [
    macro("night", "good night", "i'm going to bed"),
    macro("deploy", "deploy {service}", "put {service} on {place} please", service=None, place={"default": "staging"}),
    macro("lights", "turn on the lights"),
    macro("over", "übergabe an das team"),
]


@pytest.mark.parametrize(
    ("utterance", "name", "how", "inputs"),
    [
        ("good night", "night", "exact", {}),
        ("  Good   NIGHT!", "night", "exact", {}),
        ("I’m going to bed.", "night", "exact", {}),
        ("Übergabe an das Team", "over", "exact", {}),
        ("Deploy the Billing API.", "deploy", "slots", {"service": "the Billing API"}),
        ("Put api on prod, please!", "deploy", "slots", {"service": "api", "place": "prod"}),
        ("put on on on please", "deploy", "slots", {"service": "on", "place": "on"}),
        ("turn on the light", "lights", "fuzzy", {}),
        ("turn off the lights", "lights", "fuzzy", {}),
        ("goodnight", "night", "fuzzy", {}),
    ],
)
def test_an_utterance_starts_the_macro_that_it_means(utterance: str, name: str, how: str, inputs: dict[str, str]) -> None:
    found = match(utterance, KNOWN)
    assert found is not None
    assert (found.name, found.how, found.inputs) == (name, how, inputs)
    assert found.sure is (how != "fuzzy")


@pytest.mark.parametrize(
    "utterance",
    [
        "",
        "...",
        "good",
        "good night everybody in the house",
        "say good night",
        "deploy",
        "put api on please",
        "put on prod please",
        "turn the heating on",
        "deploy " + "x " * (SLOT_WORDS + 1),
        "deploy " + "x" * UTTERANCE_CHARACTERS,
        "{service}",
        "deploy" + "\u0000" * 300,
    ],
)
def test_any_other_utterance_starts_nothing(utterance: str) -> None:
    assert match(utterance, KNOWN) is None


def test_a_slot_takes_what_was_said_up_to_its_bound() -> None:
    found = match("deploy " + "x " * SLOT_WORDS, KNOWN)
    assert found is not None
    assert found.inputs["service"].count("x") == SLOT_WORDS


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (macro("a", "good night"), macro("b", "Good night!")),
        (macro("a", "deploy {x}", x=None), macro("b", "deploy {y}", y=None)),
        (macro("a", "deploy {x}", x=None), macro("b", "deploy the api")),
        (macro("a", "deploy the api"), macro("b", "{what} the {thing}", what=None, thing=None)),
        (macro("a", "put {x} on prod", x=None), macro("b", "put api on {y}", y=None)),
        (macro("a", "{x} now", x=None), macro("b", "run {y}", y=None)),
    ],
)
def test_triggers_that_could_mean_two_macros_are_refused(one: Any, two: Any) -> None:
    for first, second in ((one, two), (two, one)):
        check(first, [])
        with pytest.raises(VoxbridgeError) as caught:
            check(first, [second])
        assert caught.value.code == Code.CONFLICT


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (macro("a", "good night"), macro("b", "good nights")),
        (macro("a", "deploy {x}", x=None), macro("b", "deploy")),
        (macro("a", "turn on the lights"), macro("b", "turn off the lights")),
        (macro("a", "{x} now", x=None), macro("b", "{y} later", y=None)),
        (macro("a", "good night"), macro("A", "good night")),
    ],
)
def test_triggers_that_differ_and_those_of_the_same_macro_stand_beside_each_other(one: Any, two: Any) -> None:
    check(one, [two])
    check(two, [one])


@pytest.mark.parametrize(
    "bad",
    [
        macro("a", "{x}", x=None),
        macro("a", "!!!"),
        macro("a", "deploy {x}"),
        macro("a", "deploy {x} {y}", x=None, y=None),
        macro("a", "deploy {x} to {x}", x=None),
        macro("a", "deploy {X}"),
        macro("a", "deploy {x", x=None),
        macro("a", "deploy", x=None),
        macro("a", "a {b} c {d} e {f} g {h} i {j} k", b=None, d=None, f=None, h=None, j=None),
        *[macro("a", word) for word in sorted(RESERVED)],
    ],
    ids=lambda one: one.triggers[0],
)
def test_a_trigger_that_cannot_start_a_macro_is_refused(bad: Any) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        check(bad, [])
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_two_triggers_of_one_macro_do_not_mean_the_same() -> None:
    with pytest.raises(VoxbridgeError):
        check(macro("a", "good night", "Good Night."), [])


def test_hostile_triggers_take_no_time() -> None:
    wide = [macro(f"m{n}", f"a {{x}} a a {{y}} a a {n}", x=None, y=None) for n in range(200)]
    assert match("a " * 190 + "b", wide) is None
    check(wide[0], wide[1:])
