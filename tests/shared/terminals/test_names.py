"""Tokens of terminals."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.terminals.names import token_of

TOKEN = re.compile(r"[a-z0-9][a-z0-9-]{0,47}")


@given(st.text(min_size=1, max_size=64))
def test_every_name_has_a_token_that_a_subject_can_hold(name: str) -> None:
    assert TOKEN.fullmatch(token_of(name))
    assert token_of(name) == token_of(name)


def test_names_in_any_script_are_told_apart() -> None:
    names = ["Claude", "claude", "Кодекс", "コード", "a b", "a.b", "é", "e"]
    assert len({token_of(name) for name in names}) == len(names)


def test_a_taken_token_gets_a_number() -> None:
    first = token_of("x")
    second = token_of("x", {first})
    assert second == f"{first}-2"
    assert token_of("x", {first, second}) == f"{first}-3"
