from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.tools.runs.world import document
from voxbridge.services.tools.runs.document import Document
from voxbridge.services.tools.runs.triggers import RESERVED, check
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.macros import triggers
from voxbridge.shared.macros.triggers import SLOT_WORDS, UTTERANCE_CHARACTERS, Match, Spoken


def macro(name: str, *triggers: str, **inputs: Any) -> Any:
    return document("a", name=name, triggers=list(triggers), inputs={one: given or {} for one, given in inputs.items()})


def match(utterance: str, documents: Iterable[Document]) -> Match | None:
    return triggers.match(utterance, [Spoken(one.name, one.triggers) for one in documents])


KNOWN = [
    macro("night", "good night", "i'm going to bed"),
    macro("deploy", "deploy {service}", "put {service} on {place} please", service=None, place={"default": "staging"}),
    macro("lights", "turn on the lights"),
    macro("over", "übergabe an das team"),
]


@pytest.mark.parametrize(
    ("utterance", "name", "mode", "inputs"),
    [
        ("Dry run: good night.", "night", "dry_run", {}),
        ("do a dry run of the night macro", "night", "dry_run", {}),
        ("What would lights do?", "lights", "dry_run", {}),
        ("dry-run deploy the billing API", "deploy", "dry_run", {"service": "the billing API"}),
        ("Run night step by step!", "night", "step_by_step", {}),
        ("run my lights macro step-by-step", "lights", "step_by_step", {}),
        ("deploy api one step at a time", "deploy", "step_by_step", {"service": "api"}),
        ("deploy api step by step", "deploy", "step_by_step", {"service": "api"}),
        ("step through lights", "lights", "step_by_step", {}),
        ("turn on the light step by step", "lights", "step_by_step", {}),
        ("deploy a dry run", "deploy", "", {"service": "a dry run"}),
    ],
)
def test_words_around_a_trigger_or_a_name_say_how_it_is_run(utterance: str, name: str, mode: str, inputs: dict[str, str]) -> None:
    found = match(utterance, KNOWN)
    assert found is not None
    assert (found.name, found.mode, found.inputs, found.sure) == (name, mode, inputs, "the light step" not in utterance)


@pytest.mark.parametrize(
    "utterance", ["dry run", "step by step", "step through", "what would you do", "what would do", "run the macro step by step"]
)
def test_words_of_a_mode_alone_start_nothing(utterance: str) -> None:
    assert match(utterance, KNOWN) is None


def test_a_trigger_that_has_the_words_of_a_mode_goes_before_it() -> None:
    known = [*KNOWN, macro("drill", "dry run good night", "run {what} step by step", what=None)]
    for utterance, inputs in (("dry run good night", {}), ("run night step by step", {"what": "night"})):
        found = match(utterance, known)
        assert found is not None
        assert (found.name, found.mode, found.inputs) == ("drill", "", inputs)


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
