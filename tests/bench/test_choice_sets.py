"""The sets by which choosing is measured: nothing of the held-out set may be learned from what functions say of themselves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import get_args

import pytest

from bench.choice import sets
from voxbridge.services.models.choice import follow_ups, small_talk, wishes

FUNCTIONS = sets.functions()
NAMES = {function.name for function in FUNCTIONS}
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
APART = 4
APART_SETS = pytest.mark.parametrize("name", ["held_out", "unseen", "validation"])


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _runs(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {words[start : start + APART] for start in range(len(words) - APART + 1)}


def _alike(lines: Iterable[str], known: Iterable[str]) -> list[str]:
    whole, runs = set(), set()
    for text in known:
        whole.add(_words(text))
        runs |= _runs(_words(text))
    return [line for line in lines if _words(line) in whole or _runs(_words(line)) & runs]


def _taught() -> list[str]:
    return [text for function in FUNCTIONS for text in (function.description, *function.utterances)]


def test_a_line_that_shares_four_words_is_found() -> None:
    known = ["what is the time in Rome"]
    assert _alike(["tell me what is the time"], known)
    assert _alike(["What is the time in Rome?"], known)
    assert not _alike(["what is the date in Rome"], known)


@APART_SETS
def test_no_request_that_is_kept_apart_is_taught(name: sets.Name) -> None:
    lines = [request.say for _, request in sets.requests(name)]
    lines += [one.say for one in sets.follow_ups(name)]
    lines += [said for one in sets.follow_ups(name) for said, *_ in one.before]
    assert _alike(lines, _taught()) == []


@APART_SETS
def test_no_small_talk_or_follow_up_that_is_kept_apart_is_taught(name: sets.Name) -> None:
    assert _alike(sets.talk(name), [*_taught(), *small_talk.LINES]) == []
    assert _alike([one.say for one in sets.follow_ups(name)], follow_ups.LINES) == []


@pytest.mark.parametrize("pair", list(itertools.combinations(get_args(sets.Name), 2)))
def test_no_line_is_in_two_sets(pair: tuple[sets.Name, sets.Name]) -> None:
    for lines in (lambda name: [request.say for _, request in sets.requests(name)], sets.talk):
        assert not {_words(line) for line in lines(pair[0])} & {_words(line) for line in lines(pair[1])}


def test_the_held_out_set_is_as_large_as_it_has_to_be() -> None:
    asked = sets.requests("held_out")
    assert len(asked) >= 200
    assert len({name for name, _ in asked}) >= 40
    assert sum(request.slip for _, request in asked) >= 40
    assert len(sets.talk("held_out")) >= 60
    assert len(sets.follow_ups("held_out")) >= 30
    assert len(FUNCTIONS) >= 77


@pytest.mark.parametrize("name", get_args(sets.Name))
def test_every_function_and_argument_that_is_asked_for_is_known(name: sets.Name) -> None:
    known = {function.name: set(function.parameters.get("properties", {})) | {"result"} for function in FUNCTIONS}
    for function, request in sets.requests(name):
        assert set(request.args) <= known[function], request.say
    for one in sets.follow_ups(name):
        assert not one.tool or set(one.args) <= known[one.tool], one.say


@pytest.mark.parametrize(
    ("wanted", "given", "fit"),
    [
        ({"place": "nairobi"}, {"place": "Nairobi, Kenya"}, True),
        ({"place": "nairobi"}, {}, False),
        ({"seconds": 900}, {"seconds": 900}, True),
        ({"seconds": 900}, {"seconds": 90}, False),
        ({"name": "moonbase|moon base"}, {"name": "Moon Base"}, True),
        ({"category": ""}, {"category": ""}, True),
        ({"category": ""}, {"category": "text"}, False),
        ({"result": 45}, {"expression": "64 - 19"}, True),
        ({"result": 45}, {"expression": "64 - "}, False),
    ],
)
def test_arguments_are_judged_by_what_they_must_hold(wanted: dict[str, str | int | float], given: dict[str, object], fit: bool) -> None:
    assert sets.fits(wanted, given) is fit


@APART_SETS
def test_no_wish_that_is_kept_apart_is_taught(name: sets.Name) -> None:
    taught = [line for subject in wishes.SUBJECTS for line in subject]
    assert _alike(sets.wishes(name), taught) == []
    assert _alike([request.say for _, request in sets.requests(name)], taught) == []
    assert _alike(sets.talk(name), taught) == []
    assert len(sets.wishes(name)) >= 30
