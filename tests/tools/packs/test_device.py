"""Sensors of a false phone, a false kernel and of none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.processes import gone
from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import asking
from voxbridge.services.tools.packs.device import functions, sensors
from voxbridge.services.tools.packs.device.sensors import Battery, Reading, Zone
from voxbridge.shared.errors import Code, VoxbridgeError

pytestmark = pytest.mark.timeout(60)
PHONE = '{"health": "GOOD", "percentage": 57, "plugged": "UNPLUGGED", "status": "DISCHARGING", "temperature": 31.46}'


def files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A kernel with two zones that work, four that do not, a disk, a battery and a mouse."""
    root = tmp_path / "sys"
    files(root / "thermal/thermal_zone0", type="x86_pkg_temp\n", temp="48500\n")
    files(root / "thermal/thermal_zone1", type="acpitz\n", temp="27800\n")
    files(root / "thermal/thermal_zone2", type="off\n", temp="-274000\n")
    files(root / "thermal/thermal_zone3", type="odd\n", temp="nan\n")
    files(root / "thermal/thermal_zone4", type="empty\n", temp="")
    files(root / "thermal/thermal_zone5", type="none\n")
    (root / "thermal/thermal_zone6").mkdir()
    os.mkfifo(root / "thermal/thermal_zone6/temp")
    files(root / "thermal/cooling_device0", type="Fan\n")
    files(root / "hwmon/hwmon0", name="nvme\n", temp1_input="39850\n", temp1_label="Composite\n", temp1_max="90000\n")
    files(root / "power_supply/AC", type="Mains\n", online="1\n")
    files(root / "power_supply/hidpp", type="Battery\n", scope="Device\n", capacity="5\n")
    files(root / "power_supply/BAT0", type="Battery\n", capacity="83\n", status="Charging\n")
    return root


def program(folder: Path, text: str) -> str:
    path = folder / "termux-battery-status"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_kernels_zones_and_battery_are_read_the_hottest_first(sysfs: Path) -> None:
    zones = (Zone(name="x86_pkg_temp", celsius=48.5), Zone(name="nvme Composite", celsius=39.9), Zone(name="acpitz", celsius=27.8))
    reading = sensors.of_kernel(sysfs)
    assert reading == Reading(source="kernel", zones=zones, battery=Battery(percent=83, state="charging"))
    told = functions.told(reading)
    assert told["spoken"] == "The device is at 48 degrees Celsius. The battery is at 83 percent and charging."
    assert told["temperature_c"] == 48.5


async def test_termux_is_asked_where_it_is(sysfs: Path, tmp_path: Path) -> None:
    reading = await sensors.read(program=program(tmp_path, f"echo '{PHONE}'"), sysfs=sysfs)
    assert reading == Reading(
        source="termux", zones=(Zone(name="battery", celsius=31.5),), battery=Battery(percent=57, state="discharging")
    )


@pytest.mark.parametrize(
    "text",
    [
        "exit 1", "echo", "echo '{'", "echo '[]'", "echo '{\"percentage\": \"57\"}'", "echo '{\"percentage\": 101}'", "yes", "kill -9 $$",
        "printf '\\377'", "echo null", "head -c 20000 /dev/zero",
    ],
)  # fmt: skip
async def test_a_program_that_says_nothing_of_use_leaves_it_to_the_kernel(sysfs: Path, tmp_path: Path, text: str) -> None:
    assert (await sensors.read(program=program(tmp_path, text), sysfs=sysfs)).source == "kernel"


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_program_that_hangs_is_killed_with_what_it_started(sysfs: Path, tmp_path: Path) -> None:
    handles, began = open_handles(), time.monotonic()
    hangs = program(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/pid; sleep 1000")
    assert (await sensors.read(program=hangs, sysfs=sysfs, timeout_s=0.5)).source == "kernel"
    assert time.monotonic() - began < 5
    pid = int((tmp_path / "pid").read_text())
    await eventually(lambda: gone(pid))
    assert open_handles() == handles


async def test_without_sensors_one_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        await sensors.read(program="no-such-program", sysfs=tmp_path)
    assert (caught.value.code, caught.value.message) == (Code.NOT_FOUND, sensors.NO_SENSORS)


async def test_the_program_is_given_no_setting_of_ours(sysfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_LLM_KEY", "secret")
    await sensors.read(program=program(tmp_path, f"env > {tmp_path}/env; echo '{PHONE}'"), sysfs=sysfs)
    assert "secret" not in (tmp_path / "env").read_text()


def test_a_hot_device_and_many_zones_are_told() -> None:
    zones = tuple(Zone(name=f"z{number}", celsius=90.0) for number in range(functions.SHOWN + 2))
    told = functions.told(Reading(source="kernel", zones=zones))
    assert (len(told["zones"]), told["zones_not_shown"]) == (functions.SHOWN, 2)
    assert told["spoken"] == "The device is at 90 degrees Celsius, which is hot."


async def test_the_function_tells_the_values_or_that_there_are_none(
    executors: Executors, caller: Caller, tmp_path: Path, sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(executors, caller, tmp_path / "work", "device") as ask:
        monkeypatch.setattr(sensors, "SYSFS", sysfs)
        found = await ask.answer("check_thermal")
        assert (found["source"], found["temperature_c"], found["battery"]["percent"]) == ("kernel", 48.5, 83)
        monkeypatch.setattr(sensors, "SYSFS", tmp_path / "none")
        refused = await ask.refusal("check_thermal")
        assert (refused.code, refused.message) == (Code.NOT_FOUND, sensors.NO_SENSORS)
