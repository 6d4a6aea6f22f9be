"""Temperature and battery of the machine: from Termux on a phone, else from the kernel's files.

Owns where the values come from and their bounds. Does not own how they are told. A program that does not answer is killed, with all that
it started.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.shared.embedded.child import end_group
from voxbridge.shared.errors import Code, VoxbridgeError

PROGRAM: Final = "termux-battery-status"
SYSFS: Final = Path("/sys/class")
PROGRAM_S: Final = 4.0
"""Seconds that Termux may take."""

OUTPUT_LIMIT: Final = 16_384
"""Bytes that Termux may say."""

ENTRIES_LIMIT: Final = 64
"""Zones that are read."""

_FILE_LIMIT: Final = 256
_PLAUSIBLE: Final = (-60.0, 200.0)
"""Degrees Celsius that a sensor may show; others are those of one that is not connected."""

NO_SENSORS: Final = "This device has no temperature or battery sensors that can be read; on a phone, install Termux:API."


class Battery(msgspec.Struct, frozen=True, kw_only=True):
    """A battery: percent, and `charging`, `discharging`, `full` or another state in the system's words."""

    percent: int
    state: str = "unknown"


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a temperature is measured, in degrees Celsius."""

    name: str
    celsius: float


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Values of the sensors. `source` is `termux` or `kernel`; the hottest zone is the first."""

    source: str
    zones: tuple[Zone, ...]
    battery: Battery | None = None


async def read(*, program: str = PROGRAM, sysfs: Path | None = None, timeout_s: float = PROGRAM_S) -> Reading:
    """Read the sensors, those of the kernel below `SYSFS` unless told otherwise. Raises `NOT_FOUND` on a device without any."""
    path = shutil.which(program)
    if path is not None:
        with suppress(VoxbridgeError):  # the program is there without its service: the kernel may know
            return _of_termux(await asyncio.to_thread(_output, path, timeout_s))
    reading = await asyncio.to_thread(of_kernel, sysfs or SYSFS)
    if not reading.zones and reading.battery is None:
        raise VoxbridgeError(Code.NOT_FOUND, NO_SENSORS)
    return reading


def of_kernel(sysfs: Path) -> Reading:
    """Read the kernel's thermal zones and battery below a folder such as `/sys/class`."""
    zones = [
        Zone(name=_line(folder / "type") or folder.name, celsius=round(value / 1000, 1))
        for folder in _entries(sysfs / "thermal", "thermal_zone")
        if (value := _number(folder / "temp")) is not None
    ]
    for folder in _entries(sysfs / "hwmon", "hwmon"):
        for file in _entries(folder, "temp"):
            if file.name.endswith("_input") and (value := _number(file)) is not None:
                label = _line(folder / file.name.replace("_input", "_label"))
                name = " ".join(part for part in (_line(folder / "name"), label) if part) or file.name
                zones.append(Zone(name=name, celsius=round(value / 1000, 1)))
    battery = None
    for folder in _entries(sysfs / "power_supply", ""):
        percent = _number(folder / "capacity")
        own = _line(folder / "type") == "Battery" and _line(folder / "scope") != "Device"  # a mouse's battery is not the machine's
        if own and percent is not None and 0 <= percent <= 100:
            battery = Battery(percent=int(percent), state=_line(folder / "status").lower() or "unknown")
            break
    return Reading(source="kernel", zones=_sorted(zones), battery=battery)


def _of_termux(text: bytes) -> Reading:
    try:
        said: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = None
    percent = said.get("percentage") if isinstance(said, dict) else None
    if not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{PROGRAM} said nothing of use. Is Termux:API installed?")
    celsius = said.get("temperature")
    known = isinstance(celsius, int | float) and _PLAUSIBLE[0] < celsius < _PLAUSIBLE[1]
    zones = [Zone(name="battery", celsius=round(float(celsius), 1))] if known else []
    state = said.get("status")
    battery = Battery(percent=int(percent), state=state.lower()[:32] if isinstance(state, str) and state.isprintable() else "unknown")
    return Reading(source="termux", zones=_sorted(zones), battery=battery)


def _output(path: str, timeout_s: float) -> bytes:
    """Return what a program says, within its bounds. Blocks; the program and all that it started are over when this returns."""
    null = subprocess.DEVNULL
    try:
        process = subprocess.Popen([path], stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True, env=_environment())
    except OSError as error:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{PROGRAM} cannot be run: {error.strerror}.") from error
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    handle, until, text = process.stdout.fileno(), time.monotonic() + timeout_s, bytearray()
    try:
        while len(text) <= OUTPUT_LIMIT:
            ready, _, _ = select.select([handle], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise VoxbridgeError(Code.TIMED_OUT, f"{PROGRAM} did not answer. Is Termux:API installed?", limit=timeout_s)
            piece = os.read(handle, OUTPUT_LIMIT)
            if not piece:
                return bytes(text)
            text += piece
        raise VoxbridgeError(Code.TOO_LARGE, f"{PROGRAM} said more than {OUTPUT_LIMIT:,} bytes.", limit=OUTPUT_LIMIT)
    finally:
        end_group(process.pid, signal.SIGKILL)  # what it started may hold the pipe open
        process.stdout.close()
        process.wait()


def _environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name in ("PATH", "PREFIX", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD")
    }


def _entries(folder: Path, start: str) -> list[Path]:
    try:
        return sorted((one for one in folder.iterdir() if one.name.startswith(start)), key=lambda one: one.name)[:ENTRIES_LIMIT]
    except OSError:
        return []


def _line(file: Path) -> str:
    """Return the first line of a file of the kernel; empty if it cannot be read, as where a driver answers with an error."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(handle, _FILE_LIMIT).decode("ascii", "replace")
        finally:
            os.close(handle)
    except OSError:
        return ""
    line = text.partition("\n")[0].strip()
    return line if line.isprintable() else ""


def _number(file: Path) -> float | None:
    try:
        value = float(_line(file))
    except ValueError:
        return None
    low, high = _PLAUSIBLE
    return value if math.isfinite(value) and (file.name == "capacity" or low * 1000 < value < high * 1000) else None


def _sorted(zones: list[Zone]) -> tuple[Zone, ...]:
    return tuple(sorted(zones, key=lambda zone: (-zone.celsius, zone.name))[:ENTRIES_LIMIT])
