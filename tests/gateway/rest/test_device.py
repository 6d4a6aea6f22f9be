"""The machine's sensors over HTTP, read by a real executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.conftest import Running
from tests.gateway.rest.test_config import ask
from tests.tools.conftest import Executors
from voxbridge.services.tools.packs.device import sensors
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code

PATH = "/api/vox/thermal"


async def test_the_sensors_are_told_or_their_absence_or_that_nobody_reads_them(
    running: Running, nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = await ask(running, "GET", PATH)
    assert (away.status_code, away.json()["code"]) == (503, Code.UNAVAILABLE)
    phone = tmp_path / "bin" / sensors.PROGRAM
    phone.parent.mkdir()
    monkeypatch.setenv("PATH", str(phone.parent), prepend=":")
    monkeypatch.setattr(sensors, "SYSFS", tmp_path)
    async with Executors(Config(nats_url=nats_url, redis_url=redis_url, workspace_dirs=str(tmp_path))).running():
        without = await ask(running, "GET", PATH)
        assert (without.status_code, without.json()["code"]) == (404, Code.NOT_FOUND)
        assert without.json()["message"] == sensors.NO_SENSORS
        phone.write_text('#!/bin/sh\necho \'{"percentage": 57, "status": "CHARGING", "temperature": 31.46}\'\n')
        phone.chmod(0o755)
        there = await ask(running, "GET", PATH)
        assert (there.status_code, there.json()) == (
            200,
            {
                "source": "termux",
                "temperature_c": 31.5,
                "zones": [{"name": "battery", "celsius": 31.5}],
                "battery": {"percent": 57, "state": "charging"},
                "spoken": "The device is at 32 degrees Celsius. The battery is at 57 percent and charging.",
            },
        )
