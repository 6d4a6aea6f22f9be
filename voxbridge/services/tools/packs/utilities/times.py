"""Cron expressions, and times in time zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from datetime import date as date_type
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from voxbridge.services.tools.packs.everyday.places import places
from voxbridge.services.tools.packs.utilities.bounds import refused
from voxbridge.shared import spoken_dates
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.spoken_numbers import in_figures

RUNS_LIMIT: Final = 20
"""Next runs of a cron expression that are given."""
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIXED: Final = {
    name: hours
    for hours, names in (
        (-9, "akst"), (-8, "pst akdt"), (-7, "mst pdt"), (-6, "cst mdt"), (-5, "est cdt"), (-4, "edt"), (0, "wet"), (1, "cet bst west"),
        (2, "cest eet sast"), (3, "eest msk"), (5.5, "ist"), (8, "sgt hkt awst"), (9, "jst kst"), (9.5, "acst"), (10, "aest"), (11, "aedt"),
        (12, "nzst"), (13, "nzdt"),
    )
    for name in names.split()
}  # fmt: skip
"""Hours from UTC of abbreviations that stand for one offset, in summer and winter alike."""

_ABBREVIATIONS: Final = {
    **dict.fromkeys(("utc", "gmt", "z", "zulu"), "UTC"),
    **dict.fromkeys(("et", "eastern"), "America/New_York"),
    **dict.fromkeys(("ct", "central"), "America/Chicago"),
    **dict.fromkeys(("mt", "mountain"), "America/Denver"),
    **dict.fromkeys(("pt", "pacific"), "America/Los_Angeles"),
    "san francisco": "America/Los_Angeles",
    "washington": "America/New_York",
    "boston": "America/New_York",
    "beijing": "Asia/Shanghai",
    "delhi": "Asia/Kolkata",
    "mumbai": "Asia/Kolkata",
    "munich": "Europe/Berlin",
    "hamburg": "Europe/Berlin",
    "barcelona": "Europe/Madrid",
    "milan": "Europe/Rome",
    "geneva": "Europe/Zurich",
}
_OFFSET: Final = re.compile(r"(?:utc|gmt)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?")
_CLOCK: Final = re.compile(r"(\d{1,2})(?:[:.]?([0-5]\d))?(?::([0-5]\d))?\s*(?:(a|p)\.?m\.?)?")
_TEXT: Final = re.compile(
    r"(?:(?P<past>half|a quarter|quarter|\d{1,2}(?: minutes)?) (?P<side>past|after|to|before) )?(?P<clock>[\d:.h]+(?: \d{2})?)"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: o'clock)?"
    r"(?: in the (?P<part>morning|afternoon|evening)| at (?P<night>night))?(?: (?P<noon>noon|midnight))?"
)
_WORDS: Final = {"noon": (12, 0, 0), "midday": (12, 0, 0), "midnight": (0, 0, 0)}


def cron(expression: str, runs: int, zone: str, *, now: datetime) -> dict[str, Any]:
    """Return what a cron expression says, and when it runs next in a time zone."""
    from cronsim import CronSim, CronSimError

    fields = " ".join(expression.split())
    fields = _NICKNAMES.get(fields.lower(), fields)
    here = zone_of(zone, "time_zone")
    if len(fields.split()) != 5:
        message = f"A cron expression has five fields (minute, hour, day, month, weekday), and this has {len(fields.split())}."
        raise refused(message, "expression")
    try:
        coming = CronSim(fields, now.astimezone(here))
        said = coming.explain()
    except CronSimError as error:
        name = str(error).removeprefix("Bad ").replace("day-of-week", "weekday").replace("day-of-month", "day")
        raise refused(f"Its field for the {name} is not one that cron has.", "expression") from error
    times = [one.isoformat(timespec="minutes") for one, _ in zip(coming, range(runs), strict=False)]
    if not times:
        return {"explanation": said, "next_runs": [], "spoken": f"{said}. It never runs in the next 50 years."}
    first = datetime.fromisoformat(times[0])
    result = {"expression": fields, "explanation": said, "time_zone": zone_name(here), "next_runs": times}
    return result | {"spoken": f"{said}. Next on {first.strftime('%A')}, {first.strftime('%B')} {first.day} at {first.strftime('%H:%M')}."}


def converted(time: str, source: str, target: str, date: str, *, now: datetime) -> dict[str, Any]:
    """Return a time of day (or `now`) of one zone as it is in another, on a date of the first zone; today's by default."""
    there, here = zone_of(source, "from_zone"), zone_of(target, "to_zone")
    if time.strip().lower() in ("now", ""):
        local = now.astimezone(there)
        note = ""
    else:
        local, note = _local(time, date, there, now)
    moved = local.astimezone(here)
    days = (moved.date() - local.date()).days
    result: dict[str, Any] = {
        "from": {"zone": zone_name(there), "time": local.isoformat(timespec="minutes")},
        "to": {"zone": zone_name(here), "time": moved.isoformat(timespec="minutes"), "weekday": moved.strftime("%A")},
        "difference_hours": round(((moved.utcoffset() or timedelta()) - (local.utcoffset() or timedelta())).total_seconds() / 3_600, 2),
        "day_difference": days,
    }
    if note:
        result["note"] = note
    day = {0: "", 1: " the next day", -1: " the day before"}.get(days, f" on {moved.strftime('%A')}")
    says = f"{_clock(local)} in {_city(there)} is {_clock(moved)}{day} in {_city(here)}."
    return result | {"spoken": says}


def zone_of(name: str, field: str) -> tzinfo:
    """Return a time zone by its IANA name, its city, a usual abbreviation or an offset. Raises `INVALID_ARGUMENT`."""
    wanted = " ".join(name.replace("_", " ").split()).lower()
    if found := _OFFSET.fullmatch(wanted):
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        if minutes <= 14 * 60:
            return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes))
    wanted = re.sub(r"^the | (?:standard |daylight )?time(?: zone)?$", "", wanted)
    if wanted in _FIXED:
        return timezone(timedelta(hours=_FIXED[wanted]), wanted.upper())
    known = _ABBREVIATIONS.get(wanted) or zones().get(wanted) or _of_place(wanted)
    if known is None:
        message = f"There is no time zone {name[:60]!r}. Give one such as Europe/Lisbon, its largest city, or an offset such as +02:00."
        raise refused(message, field)
    return ZoneInfo(known)


def _of_place(name: str) -> str | None:
    """Return the time zone of the largest place of this name."""
    try:
        return places().find(name)[0].time_zone
    except VoxbridgeError:
        return None


def zone_name(zone: tzinfo) -> str:
    """Return the IANA name of a zone, or its offset."""
    return zone.key if isinstance(zone, ZoneInfo) else str(zone)


@cache
def zones() -> dict[str, str]:
    """Return the IANA names of all time zones by their names and their cities, in lower case."""
    found: dict[str, str] = {}
    for zone in sorted(available_timezones(), key=lambda one: (one.startswith(("Etc/", "SystemV/", "US/")), one)):
        found[zone.replace("_", " ").lower()] = zone
        found.setdefault(zone.rpartition("/")[2].replace("_", " ").lower(), zone)
    return found


def _day_of(text: str, today: date_type) -> date_type:
    day = spoken_dates.found(text, today) if text.strip() else today
    if day is None:
        raise refused(f"{text[:20]!r} is not a date that I know. Say it as in tomorrow, next Friday, July 4 or 2026-11-30.", "date")
    return day


def _local(time: str, date: str, zone: tzinfo, now: datetime) -> tuple[datetime, str]:
    """Return a time on a date in a zone, and a remark where clocks change at that time."""
    clock = _time_of(time)
    day = _day_of(date, now.astimezone(zone).date())
    local = datetime(day.year, day.month, day.day, *clock, tzinfo=zone)
    try:
        real = local.astimezone(UTC).astimezone(zone)
    except OverflowError as error:
        raise refused("Dates are from the year 2 to 9998.", "date") from error
    if real.replace(tzinfo=None) != local.replace(tzinfo=None):
        return real, "Clocks go forward then, and skip this time; the one that follows is meant."
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return local, "Clocks go back then, and this time comes twice; the first is meant."
    return local, ""


def _time_of(text: str) -> tuple[int, int, int]:
    wanted = " ".join(in_figures(text.replace("\u2019", "'")).strip().removeprefix("at ").split())
    if wanted in _WORDS:
        return _WORDS[wanted]
    spoken = _TEXT.fullmatch(wanted)
    found = _CLOCK.fullmatch(spoken["clock"].replace("h", ":").replace(" ", ":").rstrip(":")) if spoken else _CLOCK.fullmatch(wanted)
    if found is None:
        raise _no_time(text)
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    half = found[4] or (_half_of_day(spoken, hour) if spoken else "")
    if half:
        if not 1 <= hour <= 12 and not (spoken and (spoken["part"] or spoken["night"])):
            raise _no_time(text)
        hour = hour if hour > 12 else hour % 12 + (12 if half == "p" else 0)
    if hour > 23:
        raise _no_time(text)
    if spoken and spoken["past"]:
        minutes = {"half": 30, "quarter": 15, "a quarter": 15}.get(spoken["past"]) or int(spoken["past"].split()[0])
        if minute or minutes > 59 or (spoken["past"] == "half" and spoken["side"] in ("to", "before")):
            raise _no_time(text)
        moved = hour * 60 + (minutes if spoken["side"] in ("past", "after") else -minutes)
        hour, minute = moved // 60 % 24, moved % 60
    return hour, minute, second


def _half_of_day(spoken: re.Match[str], hour: int) -> str:
    if spoken["half"]:
        return spoken["half"]
    if spoken["noon"]:
        return "p" if spoken["noon"] == "noon" else "a"
    if spoken["part"]:
        return "a" if spoken["part"] == "morning" else "p"
    if spoken["night"]:
        return "p" if 6 <= hour <= 11 else "a"
    return ""


def _no_time(text: str) -> Exception:
    return refused(f"{text[:40]!r} is not a time of day; write it as 15:30 or 3:30 pm.", "time")


def _clock(when: datetime) -> str:
    return when.strftime("%I:%M %p").lstrip("0")


def _city(zone: tzinfo) -> str:
    return zone_name(zone).rpartition("/")[2].replace("_", " ")
