"""Declaration of the function that reads the machine's sensors."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voxbridge.services.tools.packs.device import sensors
from voxbridge.services.tools.registry import function

SHOWN: Final = 8
"""Zones in a result; the others are counted."""

HOT_C: Final = 80.0
"""Degrees Celsius from which the answer says that the device is hot; a battery's is `HOT_BATTERY_C`."""

HOT_BATTERY_C: Final = 45.0


@function(effect="read", timeout_s=10)
async def check_thermal() -> dict[str, Any]:
    """Tell the temperature of this device and the charge of its battery.

    Examples:
        how hot is the phone
        what is the temperature of this device
        is the computer overheating
        how many percent does the battery have
        check the battery
        is it charging
        how warm is the processor right now
        are we running hot
        is my machine getting too warm
        what's the battery level
        does the fan run because it's hot
        how much charge is left
        how long does the battery last
        is the laptop hot
        how warm has this machine become
        tell me the temperature of the processor
        do I have to plug it in soon
        is the battery full
        give me the charge in percent
        does the device get hot
        will the battery make it through the day
        any overheating going on
    """
    reading = await sensors.read()
    return told(reading)


def told(reading: sensors.Reading) -> dict[str, Any]:
    """Return the values of the sensors, and the sentence that is said."""
    parts = []
    if reading.zones:
        hottest = reading.zones[0]
        limit = HOT_BATTERY_C if hottest.name == "battery" else HOT_C
        parts.append(f"The device is at {hottest.celsius:.0f} degrees Celsius" + (", which is hot." if hottest.celsius >= limit else "."))
    if reading.battery is not None:
        state = f" and {reading.battery.state}" if reading.battery.state in ("charging", "discharging", "full") else ""
        parts.append(f"The battery is at {reading.battery.percent} percent{state}.")
    hidden = len(reading.zones) - SHOWN
    return {
        "source": reading.source,
        "temperature_c": reading.zones[0].celsius if reading.zones else None,
        "zones": msgspec.to_builtins(reading.zones[:SHOWN]),
        **({"zones_not_shown": hidden} if hidden > 0 else {}),
        "battery": msgspec.to_builtins(reading.battery),
        "spoken": " ".join(parts),
    }
