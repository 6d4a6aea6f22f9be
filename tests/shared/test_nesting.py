"""Limit on the nesting depth of outside data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep, is_deep_json

KEYS = st.text(max_size=2)
DATA = st.recursive(st.none() | st.text(max_size=3), lambda parts: st.lists(parts, max_size=3) | st.dictionaries(KEYS, parts))


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max((depth(part) for part in (value.values() if isinstance(value, dict) else value)), default=0)


@given(DATA, st.integers(1, 8))
def test_depth_is_that_of_the_deepest_part(value: Any, limit: int) -> None:
    assert is_deep(value, limit) is (depth(value) > limit)


@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_json_is_nested_to_the_limit_and_no_deeper_however_deep_it_is(opens: bytes, closes: bytes) -> None:
    for levels, deep in ((DEPTH_LIMIT, False), (DEPTH_LIMIT + 1, True), (100_000, True)):
        assert is_deep_json(opens * levels + b"1" + closes * levels) is deep


def test_brackets_in_text_are_no_depth_and_neither_are_many_beside_one_another() -> None:
    assert not is_deep_json(b'["' + b"[" * 200 + b'"]')
    assert not is_deep_json(b"[" + b"[]," * 500 + b"1]")
    assert not is_deep_json(b"[" * 100)
