"""Errors of functions in the form that the log keeps."""

from __future__ import annotations

import pytest

from voxbridge.services.tools.core.results import MESSAGE_LIMIT, as_failure
from voxbridge.shared.errors import Code, VoxbridgeError


@pytest.mark.parametrize("hostile", ["a\x00b", "a\x1b[2Jb", "a\u202eb", "a\u200bb", "a\r\nb", "a\U000e0041b"])
def test_a_message_holds_nothing_that_cannot_be_shown(hostile: str) -> None:
    failure = as_failure(VoxbridgeError(Code.NOT_FOUND, f"There is no {hostile}.", field="name"))
    assert failure.message.isprintable()
    assert (failure.code, failure.field, failure.message[:14]) == ("NOT_FOUND", "name", "There is no a ")


def test_a_message_has_a_bound() -> None:
    assert as_failure(VoxbridgeError(Code.INTERNAL, "x" * MESSAGE_LIMIT)).message == "x" * MESSAGE_LIMIT
    cut = as_failure(VoxbridgeError(Code.INTERNAL, "x" * (MESSAGE_LIMIT + 1))).message
    assert (len(cut), cut[-2:]) == (MESSAGE_LIMIT, "….")
