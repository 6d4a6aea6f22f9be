"""A running voxbridge/services/models for a whole test session, started when the first test asks for it.

Any test folder may use it: `models = running_models()` gives the shared instance, `start_models(...)` a separate one.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache

import httpx

from tests.ports import free_port
from voxbridge.shared.embedded.child import die_with_parent

READY_TIMEOUT_S = 600.0
"""Seconds until the models are ready; a machine without the weights downloads them first."""


@dataclass(frozen=True)
class RunningModels:
    """A running service: `base_url` ends with `/v1`."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def root(self) -> str:
        """URL without `/v1`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """URL in the form that OpenAI's clients take."""
        return f"{self.root}/v1"

    def stop(self) -> int:
        """End it as the supervisor does. Return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


def start_models(**settings: str) -> RunningModels:
    """Start a service with settings such as `VOXBRIDGE_MODELS_SET` and wait until every model is ready."""
    port = free_port()
    env = {**os.environ, **settings, "VOXBRIDGE_MODELS_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "voxbridge.services.models"], env=env, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children
    running = RunningModels(process, port)
    try:
        wait_ready(running)
    except BaseException:
        running.stop()
        raise
    return running


def wait_ready(running: RunningModels) -> None:
    """Poll `/readyz` until it answers 200. Raises `RuntimeError` when the process ends, `TimeoutError` after the time limit."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    last = "no answer"
    while time.monotonic() < deadline:
        if running.process.poll() is not None:
            raise RuntimeError(f"voxbridge/services/models ended with status {running.process.returncode}")
        try:
            answer = httpx.get(f"{running.root}/readyz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if answer.status_code == httpx.codes.OK:
            return
        last = answer.text
        time.sleep(0.1)
    raise TimeoutError(f"voxbridge/services/models is not ready: {last}")


@cache
def running_models() -> RunningModels:
    """Return the instance that a test session shares: the default set, real weights, through the loader."""
    running = start_models()
    atexit.register(running.stop)
    return running
