"""Random draws of the tests, all from one seed: the same in each `make test`, a new one in each `make test-all`.

`VOXBRIDGE_TEST_SEED` repeats a run; the end of a red run names it.
"""

from __future__ import annotations

import os
import random
import secrets
from typing import Final

from deploy.testrun import SEED

_OWN: Final = secrets.randbelow(2**31)


def seed() -> int:
    """Return the seed of this run; one of its own for a pytest that nobody gave one."""
    return int(os.environ.get(SEED) or _OWN)


def dice(name: str) -> random.Random:
    """Return a generator for the draws of one test."""
    return random.Random(f"{name} {seed()}")
