"""Fixtures of the commands that take a call as a file: the file of one call, and a data folder without a running product."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.recorded_calls import a_call, file_of
from voxbridge.cli import cli

SID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "call.jsonl"
    path.write_bytes(file_of(a_call(1)))
    return path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder without a running product."""
    folder = tmp_path / "data"
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(folder))
    for name in ("VOXBRIDGE_NATS_URL", "VOXBRIDGE_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])
