"""Failed starts of the service."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest


def _start(**settings: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **settings}
    return subprocess.run(
        [sys.executable, "-m", "voxbridge.services.models"], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_taken_port_is_one_line_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = _start(VOXBRIDGE_MODELS_PORT=str(port))
    assert ended.returncode == 1
    assert ended.stderr.strip().startswith(f"Cannot listen on port {port} (Address already in use).")
    assert "VOXBRIDGE_MODELS_PORT" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "value"), [("VOXBRIDGE_MODELS_SET", "huge"), ("VOXBRIDGE_MODELS_PORT", "none")])
def test_a_wrong_setting_is_one_line_that_names_it(name: str, value: str) -> None:
    ended = _start(**{name: value})
    assert ended.returncode == 1
    assert name in ended.stderr
    assert value in ended.stderr
    assert ended.stderr.count("\n") == 1
