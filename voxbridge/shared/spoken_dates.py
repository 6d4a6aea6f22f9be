"""Dates as people say them: "tomorrow", "in thirty days", "next Friday", "the fourth of July", Christmas. English. Pure.

A date without a year is the next one, today included; so is a day of the week. Behind "last" it is the latest one before today. A date in
figures alone ("3/4") is not read, since it is another day in another country. dateparser was tried: to it "the 15th" is past and "may" a
day, and it reads neither "the fourth of July" nor Easter.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from voxbridge.shared.spoken_numbers import in_figures

SAID_LIMIT: Final = 60
"""Characters of a date."""

DAYS_LIMIT: Final = 200 * 366
"""Days from today that are understood."""

_WEEK: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SHORT: Final = {name[:3]: number for number, name in enumerate(_MONTHS, start=1)} | {"sept": 9}
_MONTH: Final = {name: number for number, name in enumerate(_MONTHS, start=1)} | _SHORT
_LAST: Final = "last "
_NEAR: Final = {
    "today": 0, "now": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2, "day after tomorrow": 2,
    "the day before yesterday": -2, "day before yesterday": -2,
}  # fmt: skip
_ORDINALS: Final = {
    word: number
    for number, word in enumerate(
        re.findall(
            r"\w+",
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
            "seventeenth eighteenth nineteenth twentieth",
        ),
        start=1,
    )
} | {"thirtieth": 30}
_TWENTIES: Final = re.compile(rf"\b(twenty|thirty)[ -]({'|'.join(list(_ORDINALS)[:9])})\b")
_ORDINAL: Final = re.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b")


def _on(month: int, day: int) -> Callable[[int], date]:
    return lambda year: date(year, month, day)


def _easter(year: int, days: int = 0) -> date:
    """Return Easter Sunday, or a day so many days after it, by the rule of Meeus, Jones and Butcher for the Gregorian calendar."""
    century, of_century = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (of_century // 4) - moon - of_century % 4) % 7
    later = (year % 19 + 11 * moon + 22 * week) // 451
    month, day = divmod(moon + week - 7 * later + 114, 31)
    return date(year, month, day + 1) + timedelta(days=days)


def _thanksgiving(year: int) -> date:
    first = date(year, 11, 1)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


_FEASTS: Final[dict[str, Callable[[int], date]]] = {
    **dict.fromkeys(("christmas", "christmas day", "xmas"), _on(12, 25)),
    "christmas eve": _on(12, 24),
    "boxing day": _on(12, 26),
    **dict.fromkeys(("new year's eve", "new years eve"), _on(12, 31)),
    **dict.fromkeys(("new year", "new year's", "new years", "new year's day", "new years day", "the new year"), _on(1, 1)),
    "halloween": _on(10, 31),
    **dict.fromkeys(("valentine's day", "valentines day", "saint valentine's day"), _on(2, 14)),
    **dict.fromkeys(("saint patrick's day", "st patrick's day", "st patricks day"), _on(3, 17)),
    "independence day": _on(7, 4),
    **dict.fromkeys(("april fools' day", "april fools day", "april fool's day"), _on(4, 1)),
    **dict.fromkeys(("easter", "easter sunday"), _easter),
    "good friday": lambda year: _easter(year, -2),
    "easter monday": lambda year: _easter(year, 1),
    **dict.fromkeys(("thanksgiving", "thanksgiving day"), _thanksgiving),
}

_UNIT: Final = r"(?P<unit>day|week|fortnight|month|year)s?"
_DISTANCE: Final = re.compile(
    rf"in (?P<ahead>\d+|an?) {_UNIT}"
    rf"|(?P<amount>\d+|an?) {_UNIT.replace('unit', 'kind')} (?P<side>ago|from (?:now|today)|later|before today)"
)
_WEEKDAY: Final = re.compile(rf"(?:(?P<which>next|this|last|coming|this coming) |on )?(?P<day>{'|'.join(_WEEK)})")
_DAY: Final = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_NAMED: Final = re.compile(
    rf"(?:on )?(?:(?P<month>{'|'.join(_MONTH)})\.? {_DAY}|{_DAY.replace('day', 'date')}(?: of)? (?P<name>{'|'.join(_MONTH)})\.?)"
    r"(?: (?P<year>\d{4}))?"
)
_OF_MONTH: Final = re.compile(r"(?:on )?(?:the (?P<day>\d{1,2})|(?P<nth>\d{1,2})(?=st|nd|rd|th))(?:st|nd|rd|th)?")
_FEAST: Final = re.compile(rf"(?P<feast>{'|'.join(sorted(map(re.escape, _FEASTS), key=len, reverse=True))})(?: (?P<year>\d{{4}}))?")


def found(said: str, today: date) -> date | None:
    """Return the date that a text names, and nothing besides; None for any other text."""
    if len(said) > SAID_LIMIT:
        return None
    plain = " ".join(said.casefold().replace("\u2019", "'").replace(",", "").rstrip(" .?!").split())
    plain = _TWENTIES.sub(lambda tens: str({"twenty": 20, "thirty": 30}[tens[1]] + _ORDINALS[tens[2]]), plain)
    plain = " ".join(in_figures(_ORDINAL.sub(lambda word: f"{_ORDINALS[word[0]]}th", plain)).split())
    if plain in _NEAR:
        return today + timedelta(days=_NEAR[plain])
    with suppress(ValueError, OverflowError):
        if plain.startswith(_LAST) and not _WEEKDAY.fullmatch(plain):
            return _latest(plain.removeprefix(_LAST), today)
        read = next((day for reader in (_exact, _far, _weekday, _dated, _feast) if (day := reader(plain, today)) is not None), None)
        return read if read is not None and abs((read - today).days) <= DAYS_LIMIT else None
    return None


def _latest(plain: str, today: date) -> date | None:
    """Return the latest such day before today, for a day that comes every year."""
    if _NAMED.fullmatch(plain) is None and _FEAST.fullmatch(plain) is None:
        return None
    days = [found(f"{plain} {year}", today) for year in range(today.year, today.year - 9, -1)]
    return next((day for day in days if day is not None and day < today), None)


def _exact(plain: str, _: date) -> date | None:
    return date.fromisoformat(plain) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", plain) else None


def _far(plain: str, today: date) -> date | None:
    """Read how far away a day is: "in 30 days", "a week ago"."""
    read = _DISTANCE.fullmatch(plain)
    if read is None:
        return None
    number = read["ahead"] or read["amount"]
    amount = (1 if number in ("a", "an") else int(number)) * (-1 if read["side"] in ("ago", "before today") else 1)
    unit = read["unit"] or read["kind"]
    lengths = {"day": timedelta(days=1), "week": timedelta(weeks=1), "fortnight": timedelta(weeks=2)}
    if unit in lengths:
        return today + amount * lengths[unit]
    return _months_away(today, amount if unit == "month" else 12 * amount)


def _months_away(today: date, months: int) -> date:
    """Return the day so many months away: the last one of a shorter month."""
    years, month = divmod(today.month - 1 + months, 12)
    year = today.year + years
    return date(year, month + 1, min(today.day, calendar.monthrange(year, month + 1)[1]))


def _weekday(plain: str, today: date) -> date | None:
    read = _WEEKDAY.fullmatch(plain)
    if read is None:
        return None
    ahead = (_WEEK.index(read["day"]) - today.weekday()) % 7
    if read["which"] == "last":
        return today + timedelta(days=ahead - 7)
    return today + timedelta(days=ahead or 7 if read["which"] == "next" else ahead)


def _dated(plain: str, today: date) -> date | None:
    """Read a day of a month, with its year or the next one; the 29th of February is that of the next leap year."""
    if of_month := _OF_MONTH.fullmatch(plain):
        months = [_months_away(today.replace(day=1), ahead) for ahead in range(3)]
        days = [_day(month.year, month.month, int(of_month["day"] or of_month["nth"])) for month in months]
        return next((one for one in days if one is not None and one >= today), None)
    read = _NAMED.fullmatch(plain)
    if read is None:
        return None
    month, number = _MONTH[read["month"] or read["name"]], int(read["day"] or read["date"])
    years = [int(read["year"])] if read["year"] else range(today.year, today.year + 9)
    found_days = (one for year in years if (one := _day(year, month, number)) is not None and (read["year"] or one >= today))
    return next(found_days, None)


def _day(year: int, month: int, day: int) -> date | None:
    with suppress(ValueError):
        return date(year, month, day)
    return None


def _feast(plain: str, today: date) -> date | None:
    read = _FEAST.fullmatch(plain)
    if read is None:
        return None
    of_year = _FEASTS[read["feast"]]
    if read["year"]:
        return of_year(int(read["year"]))
    return next(day for year in (today.year, today.year + 1) if (day := of_year(year)) >= today)
