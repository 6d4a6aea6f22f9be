"""Values from outside that the log's encoding cannot hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from voxbridge.shared.log.storable import storable


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, "-9223372036854775809"),
        (
            {"a": [1, {"b": 2**70}], "c": None, "d": True, "e": 0.5, "f": "x"},
            {"a": [1, {"b": str(2**70)}], "c": None, "d": True, "e": 0.5, "f": "x"},
        ),
    ],
)
def test_whole_numbers_beyond_64_bits_become_text(given: Any, kept: Any) -> None:
    assert storable(given) == kept
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(storable(given))) == kept
