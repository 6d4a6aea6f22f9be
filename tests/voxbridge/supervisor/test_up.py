from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.ports import free_port
from voxbridge.supervisor.up import STANDING_BY

READY_S = 240.0
"""Generous limit in seconds: models are loaded while other tests may keep the machine busy."""

KILLED = (
    ("voxbridge.services.voice",),
    ("voxbridge.services.tools",),
    ("voxbridge.services.knowledge",),
    ("voxbridge.services.awareness",),
    ("voxbridge.services.terminals",),
    ("voxbridge.services.gateway",),
    ("voxbridge.services.models",),
    ("nats-server",),
    ("valkey",),
)


class Up:
    """A real `voxbridge up` on its own folder and ports."""

    def __init__(self, folder: Path, **settings: str) -> None:
        port, models_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.output = folder / "output"
        kept = {name: value for name, value in os.environ.items() if name.startswith("VOXBRIDGE_MODELS_") or "VOXBRIDGE" not in name}
        self.env = kept | {
            "VOXBRIDGE_PORT": str(port),
            "VOXBRIDGE_MODELS_PORT": str(models_port),
            "VOXBRIDGE_DATA_DIR": str(folder / "data"),
            **settings,
        }
        with self.output.open("wb") as output:
            self.process = psutil.Popen([sys.executable, "-m", "voxbridge", "up"], env=self.env, stdout=output, stderr=output)

    def said(self) -> list[str]:
        return self.output.read_text().splitlines()

    def until(self, holds: Callable[[], bool], bound_s: float = READY_S) -> None:
        """Wait until the condition holds."""
        begun = time.monotonic()
        while not holds():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() - begun < bound_s, "\n".join(["it was said:", *self.said()[-12:]])
            time.sleep(0.02)

    def child(self, *words: str) -> psutil.Process:
        return next(child for child in self.process.children() if all(any(word in part for part in child.cmdline()) for word in words))

    def standing_by(self, service: str) -> list[int]:
        """Return the processes that stand by as the next one of a service."""
        return [child.pid for child in self.process.children() if f"the next {service} stands by" in " ".join(child.cmdline())]

    def family(self) -> list[psutil.Process]:
        return list(self.process.children(recursive=True))


@contextmanager
def _up(folder: Path, **settings: str) -> Iterator[Up]:
    running = Up(folder, **settings)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def _left(family: list[psutil.Process], bound_s: float) -> list[psutil.Process]:
    _, alive = psutil.wait_procs(family, timeout=bound_s)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.timeout(600)
def test_the_product_starts_heals_and_stops(tmp_path: Path) -> None:
    with _up(tmp_path) as up:
        ready, again = f"Voxbridge is ready at {up.url}", f"Voxbridge is ready again at {up.url}"
        up.until(lambda: ready in up.said())
        with urlopen(f"{up.url}/readyz", timeout=5) as answer:
            assert json.load(answer)["ready"] is True

        command = [sys.executable, "-m", "voxbridge", "up"]
        other = subprocess.run(command, env=up.env, capture_output=True, text=True, check=False, timeout=60)
        assert other.returncode == 1
        assert re.fullmatch(rf"Voxbridge is already running on \S+ \(process {up.process.pid}, {up.url}\)\. Stop it, .*\n", other.stderr)

        family = up.family()
        for words in KILLED:
            before = up.said().count(again)
            up.child(*words).kill()
            up.until(lambda before=before: up.said().count(again) > before)  # type: ignore[misc]
        assert up.said().count(ready) == 1

        for service in STANDING_BY:
            up.until(lambda service=service: bool(up.standing_by(service)))  # type: ignore[misc]
            (standing,) = up.standing_by(service)
            before = up.said().count(again)
            up.child(f"voxbridge.services.{service}").kill()
            up.until(lambda before=before: up.said().count(again) > before)  # type: ignore[misc]
            assert up.child(f"voxbridge.services.{service}").pid == standing

        family += up.family()
        assert len(up.family()) >= 7
        begun = time.monotonic()
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(10) == 0
        assert time.monotonic() - begun < 5
        assert _left(family, 0.5) == []
        assert all(
            (tmp_path / "data" / "logs" / f"{name}.log").stat().st_size for name in ("gateway", "voice", "voice-2", "tools", "models")
        )


@pytest.mark.timeout(600)
def test_nothing_survives_a_killed_supervisor(tmp_path: Path) -> None:
    with _up(tmp_path) as up:
        up.until(lambda: len(up.process.children()) >= 7 and bool(up.child("voxbridge.services.models").children()))
        family = up.family()
        up.process.kill()
        up.process.wait()
        assert _left(family, 10) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_starts_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with _up(tmp_path) as up:
        up.until(lambda: len(up.process.children()) >= 5)
        family = up.family()
        begun = time.monotonic()
        up.process.send_signal(number)
        assert up.process.wait(10) == 0
        assert time.monotonic() - begun < 5.5
        assert _left(family, 0.5) == []


@pytest.mark.parametrize("variable", ["VOXBRIDGE_PORT", "VOXBRIDGE_MODELS_PORT"])
def test_a_taken_port_ends_it_with_one_line(tmp_path: Path, variable: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with _up(tmp_path, **{variable: str(port)}) as up:
            assert up.process.wait(30) == 1
        (line,) = up.said()
        assert re.fullmatch(rf"Port {port} is taken by .* \(process {os.getpid()}\)\. .* another port: {variable}=\d+ make up\.", line)


def test_a_folder_that_cannot_be_written_ends_it_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with _up(tmp_path, VOXBRIDGE_DATA_DIR=str(tmp_path / "file" / "data")) as up:
        assert up.process.wait(30) == 1
    (line,) = up.said()
    assert line.startswith(f"The data folder {tmp_path}/file/data cannot be written: not a directory. ")


def test_a_wrong_setting_ends_it_with_one_line(tmp_path: Path) -> None:
    with _up(tmp_path, VOXBRIDGE_MAX_SESSIONS="lots") as up:
        assert up.process.wait(30) == 2
    assert up.said() == ["VOXBRIDGE_MAX_SESSIONS must be a whole number from 1 to 10000; it is 'lots'."]
