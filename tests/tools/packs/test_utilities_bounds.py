"""Bounds of the utilities that show only in what a library makes of a text."""

from __future__ import annotations

import pytest

from voxbridge.services.tools.packs.utilities import patterns, yaml_text
from voxbridge.services.tools.packs.utilities.bounds import NODE_LIMIT
from voxbridge.shared.errors import VoxbridgeError


def test_a_pattern_that_would_take_more_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(repeated: int) -> str:
        """Return why a pattern of so many thousand characters is refused; an empty text where it is not."""
        try:
            patterns.compile_pattern(".{1000}" * repeated)
        except VoxbridgeError as error:
            return error.message
        return ""

    def most() -> int:
        return next(repeated for repeated in range(200) if refusal(repeated + 1))

    whole = most()
    assert "too large" in refusal(whole + 1)
    monkeypatch.setattr(patterns, "MEMORY_LIMIT", patterns.MEMORY_LIMIT // 2)
    assert whole > 10
    assert abs(2 * most() - whole) <= 1


def test_merge_keys_make_so_many_entries() -> None:
    def merged(entries: int) -> object:
        keys = ", ".join(f"k{number}: 0" for number in range(1_000))
        own = "".join(f", o{number}: 0" for number in range(entries - 1_000 * (entries // 1_000)))
        return yaml_text.load(f"base: &a {{{keys}}}\nall: {{<<: [{', '.join(['*a'] * (entries // 1_000))}]{own}}}\n")[0]

    assert merged(NODE_LIMIT)
    with pytest.raises(VoxbridgeError, match="more than 100,000 entries"):
        merged(NODE_LIMIT + 1)
