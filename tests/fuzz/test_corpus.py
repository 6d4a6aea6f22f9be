"""The corpus of inputs that fuzzing has found; the long search is in `tests/long`."""

from __future__ import annotations

import pytest

from tests.fuzz.guided import checked
from tests.fuzz.targets import CORPUS, TARGETS


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_what_was_found_before_holds(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for one in inputs:
        checked(TARGETS[name].check, one.read_bytes())
