"""`kill -9` at each thing that an ingest and a rebuild do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(("what", "least"), [("ingest", 60), ("rebuild", 20)])
def test_killed_anywhere_it_leaves_a_whole_graph_that_catches_up(what: str, least: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.knowledge.killed_at", str(tmp_path), what]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=280, env=os.environ | {"TOKENIZERS_PARALLELISM": "false"}
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= least
