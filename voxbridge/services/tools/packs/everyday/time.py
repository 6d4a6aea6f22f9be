"""The time where the caller is, and in other places."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta

from voxbridge.services.tools import zones
from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.everyday.places import Place, places
from voxbridge.services.tools.registry import function


@function(
    timeout_s=10,
    effect="read",
)
def current_time(ctx: Context, place: Annotated[str, Meta(max_length=100, examples=["Lisbon"])] = "") -> dict[str, Any]:
    """The time and date now, where the user is or in a city or country.

    Args:
        place: City or country; leave it out for the user's own time.

    Examples:
        what time is it
        what time is it in Madrid
        tell me the time in Sydney
        is it already morning in New York
        how late is it over in Seoul
        what day is it in Auckland right now
        what's the local time for Toronto
        what's today's date in London
        and in Skopje
        has it got dark in Cairo by now
        I want to ring my aunt in Denver what hour is it there
        would I wake somebody in Melbourne now
        which day do they have in Samoa
        can you check the clock for Nairobi
        Brussels time please
        are the shops still open in Warsaw at this hour
        what's the hour over in Buenos Aires
        give me the current date in Manila
        is it evening yet in Vancouver
        do they still sleep in Honolulu
        is it Sunday yet in Tokyo
        what's the date today
        what day is it
        how late is it
    """
    if not place.strip() or zones.is_here(place):
        return here(ctx.time_zone, ctx.now)
    found, others = places().find(place)
    return told(found, others, ctx.now)


def here(time_zone: str, now_us: int) -> dict[str, Any]:
    """Return the result for the time of somebody in this zone."""
    there = datetime.fromtimestamp(now_us / 1_000_000, ZoneInfo(time_zone))
    day = f"{there.strftime('%A, %B')} {there.day}"
    return {"place": "here", **_moment(there, time_zone), "spoken": f"It's {_hour(there)} on {day}."}


def _moment(there: datetime, time_zone: str) -> dict[str, Any]:
    offset = there.strftime("%z")
    return {
        "time_zone": time_zone,
        "local_time": there.strftime("%Y-%m-%d %H:%M"),
        "weekday": there.strftime("%A"),
        "utc_offset": f"{offset[:3]}:{offset[3:5]}",
    }


def _hour(there: datetime) -> str:
    return there.strftime("%I:%M %p").lstrip("0")


def told(place: Place, others: list[Place], now_us: int) -> dict[str, Any]:
    """Return the result for the time in a place; `others` are places of the same name."""
    there = datetime.fromtimestamp(now_us / 1_000_000, ZoneInfo(place.time_zone))
    name = place.name if not others else f"{place.name}, {place.region or place.country}"
    hour = _hour(there)
    result = {
        "place": ", ".join(part for part in (place.name, place.region, place.country) if part),
        **_moment(there, place.time_zone),
        "spoken": f"It's {hour} on {there.strftime('%A')} in {name}." if name != "UTC" else f"It's {hour} UTC on {there.strftime('%A')}.",
    }
    if others:
        result["note"] = f"There are {len(others)} other places of this name; this is the largest."
    return result


def prepare() -> None:
    """Load the places before the first call."""
    places()
