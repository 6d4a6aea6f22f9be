"""The whole product for browser tests: `voxbridge up`, as users start it, with data and ports of its own.

It uses the models of the test session. Answers of the HTTP API are read here, so that a test can compare a page with the log.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import httpx
import nats
import psutil

from tests.ports import free_port
from tests.running_models import RunningModels
from voxbridge.installation import runtime
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.service.process import STAND_BY, health_subject

READY_S: Final = 120.0
LOG_S: Final = 20.0
"""Seconds until a fact must be in the log; on a quiet machine it takes milliseconds."""

WEIGHTS: Final = ("VOXBRIDGE_MODELS_DIR", "VOXBRIDGE_MODELS_SET", "VOXBRIDGE_MODELS_SOURCE")
Event = dict[str, Any]


def _stands_by(process: psutil.Process) -> bool:
    """Return whether a process is a standby gateway, or about to become one."""
    return any(part == STAND_BY or part.endswith("stands by") for part in process.cmdline())


class Product:
    """A running Voxbridge."""

    def __init__(self, url: str, models: RunningModels, supervisor: psutil.Process, environment: dict[str, str]) -> None:
        self.url = url
        self.models = models
        self.environment = environment
        self._supervisor = supervisor
        self._http = httpx.Client(base_url=url, timeout=20)

    def close(self) -> None:
        """Close the HTTP client; the processes belong to whoever started them."""
        self._http.close()

    def kill(self, name: str, sid: str = "") -> None:
        """Send SIGKILL to a service or server: `voice`, `nats-server`, `valkey`; with `sid`, to the voice worker that owns this session."""
        module = f"voxbridge.services.{name}"
        running = [each for each in self._supervisor.children() if not _stands_by(each)]
        found = [each for each in running if any(module == part or name in Path(part).name for part in each.cmdline()[:3])]
        if sid:
            owner = self.logged(sid, "session.owned")[-1]["data"]["worker"]
            with ThreadPoolExecutor(1) as beside:  # in a thread, because the page's event loop runs in this one
                named = beside.submit(asyncio.run, self._names(name, [each.pid for each in found])).result()
            found = [each for each in found if named[each.pid] == owner]
        assert len(found) == 1, f"{len(found)} processes of {name} run"
        found[0].kill()

    async def _names(self, service: str, pids: Sequence[int]) -> dict[int, str]:
        told = runtime.told(Path(self.environment["VOXBRIDGE_DATA_DIR"]))
        assert told is not None
        client = await nats.connect(told.nats_url)
        try:
            answers = {pid: await client.request(health_subject(service, socket.gethostname(), pid), b"", timeout=LOG_S) for pid in pids}
        finally:
            await client.close()
        return {pid: str(json.loads(answer.data)["process"]) for pid, answer in answers.items()}

    def outside(self) -> list[str]:
        """Return the connections of its processes that lead off this machine: there is none, since no test needs a network."""
        found: list[str] = []
        for process in (self._supervisor, *self._supervisor.children(recursive=True)):
            with suppress(psutil.Error):
                open_ones = [one.raddr for one in process.net_connections("inet") if one.raddr]
                found += [f"{process.name()} {one}" for one in open_ones if not ip_address(one.ip).is_loopback]
        return found

    def ready(self) -> bool:
        """Return whether `GET /readyz` succeeds."""
        try:
            return self._http.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def until_ready(self) -> None:
        """Wait until every part is ready."""
        deadline = time.monotonic() + READY_S
        while not self.ready():
            assert time.monotonic() < deadline, "the product did not become ready again"
            time.sleep(0.05)

    def session(self, sid: str) -> dict[str, Any]:
        """Return `GET /api/sessions/{id}`."""
        answer = self._http.get(f"/api/sessions/{sid}").raise_for_status().json()
        assert isinstance(answer, dict)
        return answer

    def state(self, sid: str, at: int) -> dict[str, Any]:
        """Return `GET /api/sessions/{id}/state` at a time in µs."""
        answer = self._http.get(f"/api/sessions/{sid}/state", params={"at": at}).raise_for_status().json()
        assert isinstance(answer, dict)
        return answer

    def log(self, sid: str) -> list[Event]:
        """Return every visible event of a session, in order."""
        found: list[Event] = []
        more = True
        while more:
            after = found[-1]["seq"] if found else 0
            page = self._http.get(f"/api/sessions/{sid}/events", params={"after": after, "limit": 256}).raise_for_status().json()
            found += page["events"]
            more = page["more"]
        return found

    def logged(self, sid: str, kind: str, **data: object) -> list[Event]:
        """Return the events of a type with this data, as soon as there is one. A killed gateway may be away meanwhile."""
        deadline, found = time.monotonic() + LOG_S, list[Event]()
        while True:
            with suppress(httpx.HTTPError):
                found = [event for event in self.log(sid) if event["type"] == kind and data.items() <= event["data"].items()]
            if found or time.monotonic() > deadline:
                assert found, f"no {kind} with {data} in the log of {sid}"
                return found
            time.sleep(0.05)


@contextmanager
def running(
    folder: Path, models: RunningModels, *, own_models: bool = False, environment: Mapping[str, str] | None = None
) -> Iterator[Product]:
    """Start everything and stop it at the end. A start that is not ready in time fails with the output.

    With `own_models` the product runs its own models service; `models` then only serve the test. `environment` is added to the environment.
    """
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_") or name in WEIGHTS}
    home = folder / "home"  # what a developer's own shell does as it starts has no part in a test
    home.mkdir()
    env = kept | {
        "HOME": str(home),
        "VOXBRIDGE_MODELS_DIR": str(Config.from_env().models_dir),
        "VOXBRIDGE_PORT": str(port),
        "VOXBRIDGE_DATA_DIR": str(folder / "data"),
        **({"VOXBRIDGE_MODELS_PORT": str(free_port())} if own_models else {"VOXBRIDGE_MODELS_URL": models.base_url}),
        # `always` would count the waits of a busy disk as the product's.
        "VOXBRIDGE_SYNC_INTERVAL": "1s",
        **(environment or {}),
    }
    output = folder / "output"
    with output.open("wb") as said:
        command = [sys.executable, "-m", "voxbridge", "up"]
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children
    product = Product(f"http://127.0.0.1:{port}", models, psutil.Process(process.pid), env)
    try:
        deadline = time.monotonic() + READY_S
        while f"Voxbridge is ready at {product.url}" not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.05)
        yield product
        assert product.outside() == []
    finally:
        product.close()
        process.terminate()
        assert process.wait(15) == 0, output.read_text()
        # Despite all faults, the services' outputs must follow from their recorded inputs.
        command = [sys.executable, "-m", "tests.replayed", env["VOXBRIDGE_DATA_DIR"]]
        replayed = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
