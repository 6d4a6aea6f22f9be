"""A gateway and a terminals service for Studio, as processes that a test kills, over servers of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.eventually import BOUND_S
from tests.ports import free_port
from tests.terminals.serving import Process, process
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer


class Terminals:
    """Address of the gateway, and its service."""

    def __init__(self, port: int, environment: dict[str, str], output: Path, service: Process) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.service = service
        self._environment, self._output = environment, output
        self._gateway: subprocess.Popen[bytes] | None = None

    def start_gateway(self) -> None:
        """Start the gateway; return once it answers."""
        with self._output.open("ab") as output:
            command = [sys.executable, "-m", "voxbridge.services.gateway"]
            # Like the product's own children, it must end with the tests.
            self._gateway = subprocess.Popen(command, env=self._environment, stdout=output, stderr=output, preexec_fn=die_with_parent())  # noqa: PLW1509
        self.answers("/healthz")

    def kill_gateway(self) -> None:
        """End the gateway as a crash does."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.kill()
            gateway.wait()

    def answers(self, path: str = "/api/terminals") -> Any:
        """Return what is answered once it is."""
        until = time.monotonic() + 6 * BOUND_S
        while True:
            try:
                with urllib.request.urlopen(self.url + path, timeout=BOUND_S) as answer:
                    return json.load(answer)
            except (OSError, urllib.error.HTTPError):
                assert time.monotonic() < until, self._output.read_text()
                assert self._gateway is not None
                assert self._gateway.poll() is None, self._output.read_text()
                time.sleep(0.05)

    def ask(self, method: str, path: str = "", **body: Any) -> Any:
        """Ask the gateway about terminals."""
        given = json.dumps(body).encode() if method != "GET" else None
        request = urllib.request.Request(f"{self.url}/api/terminals{path}", given, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=2 * BOUND_S) as answer:
            return json.load(answer)

    def text(self, terminal: str) -> str:
        """Return what a terminal shows."""
        return str(self.ask("GET", f"/{terminal}?lines=500")["text"])


@contextmanager
def terminals(folder: Path) -> Iterator[Terminals]:
    """Run them while the block runs. What ran in the terminals ends with it."""
    with (
        NatsServer(folder / "nats", sync_interval="1s") as bus,
        ValkeyServer(folder / "valkey") as store,
        process(bus.url, store.url) as service,
    ):
        port = free_port()
        given = {
            "VOXBRIDGE_NATS_URL": bus.url,
            "VOXBRIDGE_REDIS_URL": store.url,
            "VOXBRIDGE_DATA_DIR": str(folder / "data"),
            "VOXBRIDGE_PORT": str(port),
            "VOXBRIDGE_MODELS_PORT": str(free_port()),
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | given
        made = Terminals(port, environment, folder / "output", service)
        try:
            made.start_gateway()
            made.answers()
            yield made
        finally:
            made.kill_gateway()
