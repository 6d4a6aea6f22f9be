"""Coverage-guided fuzzing of the parsers of outside input, for ten minutes in all and with a fresh seed each time.

An input that breaks a parser is written to `tests/out/fuzz/`; add it to `tests/fuzz/corpus/` with the fix.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz import guided
from tests.fuzz.targets import CORPUS, TARGETS

SECONDS: Final = 600
OUT: Final = Path(__file__).parents[1] / "out" / "fuzz"


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_parser_holds_whatever_comes(name: str) -> None:
    target, seed = TARGETS[name], secrets.randbits(64)
    corpus = [one.read_bytes() for one in sorted((CORPUS / name).iterdir())]
    try:
        tried, new = guided.run(target.check, corpus, target.words, target.files, seconds=SECONDS / len(TARGETS), seed=seed)
    except guided.Found as found:
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{name}-{sha256(found.data).hexdigest()[:12]}").write_bytes(found.data)
        raise
    assert tried > 1_000, f"{len(new)} new ways, seed {seed}"
