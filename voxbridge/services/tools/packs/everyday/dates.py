"""Dates: the day of the week that they are, and how far away."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import function
from voxbridge.shared import spoken_dates
from voxbridge.shared.errors import Code, VoxbridgeError


@function(timeout_s=5, effect="read")
def find_date(ctx: Context, day: Annotated[str, Meta(min_length=1, max_length=spoken_dates.SAID_LIMIT)]) -> dict[str, Any]:
    """Find a date: its day of the week, and how many days away it is.

    Args:
        day: The day as it was said, such as tomorrow, in 30 days, July 4 or Christmas.

    Examples:
        what's the date tomorrow
        how many days until Easter
        how long until New Year
        what day of the week is the third of May
        what date is in three weeks
        when is Thanksgiving
        which day was it ten days ago
        what was yesterday's date
        how many weeks till the first of September
        what day is Halloween this year
        how far away is my birthday on March 12
        on which day does the ninth of June fall
        what date is next Friday
        is it long till Valentine's Day
    """
    today = datetime.fromtimestamp(ctx.now / 1_000_000, ZoneInfo(ctx.time_zone)).date()
    found = spoken_dates.found(day, today)
    if found is None:
        message = f"{day[:40]!r} is not a date that I know. Say it as in tomorrow, in 30 days, next Friday, July 4 or 2026-11-30."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="day")
    return told(found, today)


def told(day: date, today: date) -> dict[str, Any]:
    """Return the result for a day, seen from today."""
    days = (day - today).days
    year = "" if day.year == today.year or 0 <= days <= 300 else f", {day.year}"
    said = f"{day.strftime('%A, %B')} {day.day}{year}"
    far = {0: "Today is", 1: "Tomorrow is", -1: "Yesterday was"}.get(days, "")
    distance = f"That is {said}, in {days} days." if days > 0 else f"That was {said}, {-days} days ago."
    return {"date": day.isoformat(), "weekday": day.strftime("%A"), "days_away": days, "spoken": f"{far} {said}." if far else distance}
