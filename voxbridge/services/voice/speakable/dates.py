"""Dates, times of day, spans of time and years in words, language by language. Pure.

Owns how they are found and said; the names of months are in `units`. What is not a date of the calendar stays as it is. A crash here loses
nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import Final

from voxbridge.services.voice.speakable import words
from voxbridge.services.voice.speakable.found import END, START, Rule
from voxbridge.services.voice.speakable.locales import Locale

_GERMAN_OBLIQUE: Final = re.compile(
    r"\b(?:am|dem|den|vom|zum|im|beim|ab|bis|seit|diesem|jedem)\s+(?:\w+,\s+(?:dem|den)\s+)?$", re.IGNORECASE
)
_GERMAN_ARTICLE: Final = re.compile(r"\b(?:der|die|das)\s+$", re.IGNORECASE)
YEAR_AFTER: Final = {
    "en": r"(?:\b(?:[Ii]n|[Ss]ince|[Uu]ntil|[Bb]y|[Dd]uring|[Yy]ear|early|late|mid)",
    "de": r"(?:\b(?:[Jj]ahre?|[Jj]ahres|[Ss]eit|[Bb]is|[Aa]b|[Aa]nno|[Uu]m|[Vv]or|[Nn]ach)",
}
_HOUR: Final = re.compile(rf"{START}([01]?[0-9]|2[0-4])\s?h\s?([0-5][0-9])?(?!\w|/)")
_CLOCK: Final = re.compile(rf"{START}([01]?[0-9]|2[0-3]):([0-5][0-9])(\s?(?:Uhr|h)\b)?(?!\s?[AaPp]\.?\s?[Mm]\b){END}")
_GERMAN_CLOCK: Final = re.compile(rf"{START}([01]?[0-9]|2[0-3])[.:]([0-5][0-9])\s?(Uhr)\b")
_DOTTED: Final = r"([01]?[0-9]|2[0-3])\.([0-5][0-9])"
_ITALIAN_CLOCK: Final = re.compile(rf"(?<=(?:ore|lle) ){_DOTTED}(?:\s?[–-]\s?{_DOTTED})?{END}")
_CLOCK_RANGE: Final = re.compile(rf"{START}((?:[01]?[0-9]|2[0-3]):[0-5][0-9])\s?[–-]\s?(?=(?:[01]?[0-9]|2[0-4]):[0-5][0-9]{END})")
_HALF_DAY: Final = re.compile(rf"{START}(1[0-2]|0?[1-9])(:[0-5][0-9])?([ap])\.?m\b(?!\.)", re.IGNORECASE)
_ISO: Final = re.compile(
    rf"{START}([12][0-9]{{3}})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    rf"(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?{END}"
)
_ISO_BEGUN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOURS: Final = re.compile(r"(?<![\w.,])([0-9]{1,3})\s?h\s?([0-9]{1,2})\s?m(?:in)?\b")
_SPAN: Final = re.compile(
    r"(?<![\w.,])(?P<minutes>[0-9]{1,3})\s?m(?:in)? (?P<seconds>[0-9]{1,2})\s?s\b"
    r"|(?<![\w.,])(?P<left>[0-9]{1,3})\s?m(?= (?:remaining|left|ago|later|to go|restantes?|rimanenti|übrig)\b)"
)
_DECADE: Final = re.compile(r"(?<![\w.,-])(1[1-9][0-9]|20[0-9])0s\b")


def moments(locale: Locale, text: str) -> str:
    """Return the text with its ISO dates and times in words: before signs are, since an offset has one."""
    return _ISO.sub(partial(_iso, locale), text) if _ISO_BEGUN.search(text) else text


def minutes(locale: Locale, text: str) -> str:
    """Write the minutes of a span of time as `min`: `m` alone is metres. French and Portuguese say them behind the hours alone."""
    text = _HOURS.sub(r"\1h \2" if locale.code in ("fr", "pt") else r"\1h \2 min", text)
    return _SPAN.sub(lambda found: f"{found['left']} min" if found["left"] else f"{found['minutes']} min {found['seconds']} sec", text)


def dates(locale: Locale, *, month_first: bool) -> tuple[Rule, ...]:
    """Return the rules for dates; `month_first` tells how an all-figure date with slashes is read."""
    figures = re.compile(rf"{START}([0-9]{{1,2}})([./-])([0-9]{{1,2}})\2([12][0-9]{{3}}){END}")
    return ((figures, partial(_figures, locale, month_first)), *_named_dates(locale))


def times(locale: Locale) -> tuple[Rule, ...]:
    """Return the rules for times of day."""
    clock = partial(_clock, locale)
    to_range: Rule = (_CLOCK_RANGE, lambda found: f"{found[1]} {locale.to} ")
    own: dict[str, tuple[Rule, ...]] = {
        "de": ((_GERMAN_CLOCK, clock),),
        "fr": ((_HOUR, clock),),
        "it": ((_ITALIAN_CLOCK, partial(_italian_clock, locale)),),
        "pt": ((_HOUR, partial(_portuguese_hours, locale)),),
    }
    half: Rule = (_HALF_DAY, lambda found: f"{found[1]}{found[2] or ''} {found[3].upper()}M")
    return (to_range, *own.get(locale.code, ()), (_CLOCK, clock), *((half,) if locale.code == "en" else ()))


def _iso(locale: Locale, found: re.Match[str]) -> str:
    day = _date(locale, found, int(found[3]), int(found[2]), int(found[1]))
    return f"{day}, {_time(locale, int(found[4]), int(found[5]))}{_offset(locale, found[6] or '')}" if found[4] else day


def _offset(locale: Locale, zone: str) -> str:
    if zone in ("", "Z"):
        return " U T C" if zone else ""
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    sign = locale.signs["+"] if zone[0] == "+" else locale.minus
    past = f" {words.cardinal(locale.code, minutes)}" if minutes else ""
    return f" U T C {sign} {words.cardinal(locale.code, hours)}{past}" if hours or minutes else " U T C"


def _figures(locale: Locale, month_first: bool, found: re.Match[str]) -> str:
    day, month = int(found[1]), int(found[3])
    if month > 12 or (month_first and found[2] != "." and day <= 12):
        day, month = month, day
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return found[0]
    return _date(locale, found, day, month, int(found[4]))


def _date(locale: Locale, found: re.Match[str], day: int, month: int, year: int | None) -> str:
    name = words.month(locale.code, month)
    if locale.code == "en":
        return f"{name} {words.ordinal('en', day)}" + (f", {words.year('en', year)}" if year else "")
    if locale.code == "de":
        before = found.string[: found.start()]
        ending = "n" if _GERMAN_OBLIQUE.search(before) else "" if _GERMAN_ARTICLE.search(before) else "r"
        return f"{words.ordinal('de', day)}{ending} {name}" + (f" {words.year('de', year)}" if year else "")
    if locale.code == "fr":
        return f"{'premier' if day == 1 else words.cardinal('fr', day)} {name}" + (f" {words.cardinal('fr', year)}" if year else "")
    if locale.code == "it":
        return f"{'primo' if day == 1 else words.cardinal('it', day)} {name}" + (f" {words.cardinal('it', year)}" if year else "")
    said = "primeiro" if locale.code == "pt" and day == 1 else words.cardinal(locale.code, day)
    return f"{said} de {name}" + (f" de {words.cardinal(locale.code, year)}" if year else "")


def _named_dates(locale: Locale) -> tuple[Rule, ...]:
    """Return the rules for dates with the name of a month."""
    numbers = words.months(locale.code)
    names = "|".join(map(re.escape, sorted(numbers, key=len, reverse=True)))
    day, year = "(0?[1-9]|[12][0-9]|3[01])", "([12][0-9]{3})"
    dot = r"(?:\.(?=\s[12][0-9]{3}))?"  # a dot without a year behind it may end the sentence
    end = r"(?![\w%°$€£]|[.,:/-][0-9]|\s?[%°€])"

    def one(found: re.Match[str]) -> str:
        return _date(locale, found, int(found[1]), numbers[found[2]], int(found[3]) if found[3] else None)

    def english(found: re.Match[str]) -> str:
        last = f" to {words.ordinal('en', int(found[3]))}" if found[3] else ""
        return f"{_date(locale, found, int(found[2]), numbers[found[1]], None)}{last}" + (
            f", {words.year('en', int(found[4]))}" if found[4] else ""
        )

    def english_day_first(found: re.Match[str]) -> str:
        named = f"the {words.ordinal('en', int(found[1]))} of {words.month('en', numbers[found[2]])}"
        return named + (f", {words.year('en', int(found[3]))}" if found[3] else "")

    if locale.code == "en":
        return (
            (re.compile(rf"\b({names})\.?\s{day}(?:st|nd|rd|th)?(?:\s?[–-]\s?{day}(?:st|nd|rd|th)?)?(?:,?\s{year})?{end}"), english),
            (
                re.compile(rf"(?<![\w.,:/$€£-])(?:the\s)?{day}(?:st|nd|rd|th)?\s(?:of\s)?({names})\b{dot}(?:,?\s{year})?{end}"),
                english_day_first,
            ),
        )
    if locale.code == "de":
        return (
            (re.compile(rf"(?<![\w.,:/-]){day}\.\s?({names})(?!\w){dot}(?:\s{year})?{end}"), one),
            (re.compile(rf"(?<![\w.,:/-])(?<=m ){day}\.(0?[1-9]|1[0-2])\.()(?![\w]|\s?[0-9])"), partial(_german_day, locale)),
        )
    if locale.code == "fr":
        return ((re.compile(rf"(?<![\w.,:/-]){day}(?:er)?\s({names})(?!\w){dot}(?:\s{year})?{end}"), one),)
    if locale.code == "it":
        return ((re.compile(rf"(?<![\w.,:/-]){day}[°º]?\s({names})(?!\w){dot}(?:\s(?:del\s)?{year})?{end}"), one),)
    return ((re.compile(rf"(?<![\w.,:/-]){day}\.?º?\sde\s({names})(?!\w){dot}(?:\sdel?\s{year})?{end}"), one),)


def _german_day(locale: Locale, found: re.Match[str]) -> str:
    return _date(locale, found, int(found[1]), int(found[2]), None)


def _clock(locale: Locale, found: re.Match[str]) -> str:
    return _time(locale, int(found[1]), int(found[2] or 0))


def _time(locale: Locale, hour: int, minute: int) -> str:
    said, past = words.cardinal(locale.code, hour), words.cardinal(locale.code, minute)
    if locale.code == "en":
        if minute:
            return f"{said} {'oh ' if minute < 10 else ''}{past}"
        return "midnight" if hour == 0 else f"{said} o'clock" if hour <= 12 else f"{said} hundred"
    if locale.code == "de":
        return f"{'ein' if hour == 1 else said} Uhr{f' {past}' if minute else ''}"
    if locale.code == "fr":
        hours = "une heure" if hour == 1 else f"{said} heure{'s' if hour else ''}"
        return f"{hours} {re.sub('un$', 'une', past)}" if minute else hours
    if locale.code == "it":
        return f"{'una' if hour == 1 else said}{f' e {past}' if minute else ''}"
    if locale.code == "pt":
        return f"{words.amount(locale, Decimal(hour), 'horas')} e {past}" if minute else _hours(locale, hour)
    return f"{'una' if hour == 1 else said.replace('veintiuno', 'veintiuna')} {f'y {past}' if minute else 'en punto'}"


def _italian_clock(locale: Locale, found: re.Match[str]) -> str:
    last = f" {locale.to} {_time(locale, int(found[3]), int(found[4]))}" if found[3] else ""
    return _time(locale, int(found[1]), int(found[2])) + last


def _portuguese_hours(locale: Locale, found: re.Match[str]) -> str:
    minute = int(found[2] or 0)
    return _hours(locale, int(found[1])) + (f" e {words.cardinal(locale.code, minute)}" if minute else "")


def _hours(locale: Locale, hour: int) -> str:
    return f"{words.amount(locale, Decimal(hour), 'horas')} hora{'' if hour == 1 else 's'}"


def years(locale: Locale) -> tuple[Rule, ...]:
    """Return the rules for years and decades, where they are not said like other numbers."""
    if locale.code not in YEAR_AFTER:
        return ()
    names = "|".join(name for name in words.months(locale.code) if not name.endswith("."))
    years = r"1[1-9][0-9]{2}|20[0-9]{2}" if locale.code == "en" else r"1[1-9][0-9]{2}"
    rule: Rule = (
        re.compile(rf"{YEAR_AFTER[locale.code]}|\b(?:{names}),?)\s({years}){END}(?!\s?[%€$°])"),
        lambda found: found[0][: found.start(1) - found.start()] + words.year(locale.code, int(found[1])),
    )
    return (rule, (_DECADE, _decade)) if locale.code == "en" else (rule,)


def _decade(found: re.Match[str]) -> str:
    said = words.year("en", int(found[1]) * 10)
    return f"{said[:-1]}ies" if said.endswith("y") else f"{said}s"
