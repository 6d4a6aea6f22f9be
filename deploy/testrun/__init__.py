"""The runs of tests behind `make test-quick`, `make test` and `make test-all`: what each runs, and what decides whether it is green.

`tiers` says which tests are in which run, `quarantine` which of them do not decide, `leftovers` what a run may not leave behind,
`recorder` notes every result as pytest tells it, and `ending` words the end of a run. `python -m deploy.testrun` puts them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

SEED: Final = "VOXBRIDGE_TEST_SEED"
"""Variable with the seed of what tests draw at random: a whole number."""
