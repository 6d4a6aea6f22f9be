"""Rules that turn dates, times, money, units, ranges, fractions, ordinals and numbers into words, language by language. Pure.

Text that no rule understands stays as it is. So do plain whole numbers, and English clock times with AM or PM: every voice reads those
right, and a transcript is easier to read with them. Rules run in a fixed order, from the most to the least specific.

Owns how amounts are found and said; words and separators are in `locales`. A crash here loses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Final

from voxbridge.services.voice.speakable import dates, words
from voxbridge.services.voice.speakable.found import END, START, Rule
from voxbridge.services.voice.speakable.locales import CODES, DOLLARS, LOCALES, Currency, Locale
from voxbridge.services.voice.speakable.regions import REGIONS
from voxbridge.services.voice.speakable.units import CURRENCIES

MOST_FIGURES: Final = 15
"""Largest number of digits of a whole number that is spelled; a longer number stays as it is."""

MOST_DECIMALS: Final = 10
"""Largest number of digits after the decimal sign of a number that is spelled as it is; a longer one is rounded as people do."""

ROUNDED_DECIMALS: Final = 4
"""Digits after the decimal sign that are left by rounding."""

_VULGAR: Final = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_SCALES: Final = {
    "en": {"k": "thousand", "K": "thousand", "thousand": "thousand", "m": "million", "M": "million", "million": "million", "bn": "billion",
           "B": "billion", "billion": "billion", "trillion": "trillion", "T": "trillion", "lakh": "lakh", "crore": "crore"},
    "de": {"Tsd.": "tausend", "Tausend": "tausend", "Mio.": "Millionen", "Mio": "Millionen", "Millionen": "Millionen",
           "Million": "Millionen", "Mrd.": "Milliarden", "Mrd": "Milliarden", "Milliarden": "Milliarden", "Milliarde": "Milliarden"},
    "fr": {"k": "mille", "M": "millions", "million": "millions", "millions": "millions", "Md": "milliards", "Mds": "milliards",
           "milliard": "milliards", "milliards": "milliards"},
    "es": {"mil": "mil", "k": "mil", "M": "millones", "millón": "millones", "millones": "millones"},
    "it": {"mila": "mila", "k": "mila", "mln": "milioni", "M": "milioni", "milione": "milioni", "milioni": "milioni", "mld": "miliardi",
           "miliardo": "miliardi", "miliardi": "miliardi"},
    "pt": {"mil": "mil", "k": "mil", "mi": "milhões", "M": "milhões", "milhão": "milhões", "milhões": "milhões", "bi": "bilhões",
           "bilhão": "bilhões", "bilhões": "bilhões"},
}  # fmt: skip
_ONE_OF: Final = {
    "Millionen": "Million", "Milliarden": "Milliarde", "millions": "million", "milliards": "milliard", "millones": "millón",
    "milioni": "milione", "miliardi": "miliardo", "milhões": "milhão", "bilhões": "bilhão",
}  # fmt: skip
_THOUSANDS: Final = frozenset({"mille", "mil", "mila", "tausend"})
"""Words that are part of a number, whose currency follows without a word between, and agrees with it."""

_MONEY_SIGN: Final = "|".join([*map(re.escape, DOLLARS), r"[$€£¥₹]", *CODES, *CURRENCIES])
_DOLLAR_CODES: Final = "|".join(sorted({*DOLLARS.values(), "ARS", "CLP", "COP"} & {*CODES, *CURRENCIES}))
_UNIT_SIGN: Final = "|".join(map(re.escape, words.UNIT_SIGNS))
_FOLLOWS: Final = re.compile(rf"\s?(?:%|(?:{_UNIT_SIGN}|{_MONEY_SIGN})(?![\w/]))")
_SPANISH_NOUN: Final = re.compile(r"\s(?!(?:y|e|o|u|de|del|en|a|al|por|que|con|para)\b)[a-zñáéíóú]")
"""The beginning of a noun behind its ordinal: "tercer piso"."""

_ITALIAN_PLACE: Final = re.compile(r"(\b(?:il|al|del|nel|dal|sul)\s)([1-9][0-9]?)°(?=\s[a-zà-ù]{2})")
"""A place in an order with the sign of degrees, as most keyboards write it: "il 2° piano"."""

_FRACTION: Final = re.compile(
    rf"(?<![\w./:,+–-])(?:([0-9]{{1,3}}) )?([1-9][0-9]?)/([1-9][0-9]?)(?![\w/]|[.,:/-][0-9])"
    rf"|([0-9]{{0,3}}) ?([{''.join(_VULGAR)}])"
)


def spelled(locale: Locale, text: str, *, month_first: bool) -> str:
    """Return the text with its amounts in words; `month_first` tells how an all-figure date with slashes is read."""
    for pattern, said in _compiled(locale.tag or locale.code, month_first=month_first):
        text = pattern.sub(said, text)
    return text


def _rules(locale: Locale, *, month_first: bool) -> tuple[Rule, ...]:
    code = locale.code
    number = _number(locale)
    scale = "|".join(map(re.escape, sorted(_SCALES[code], key=len, reverse=True)))
    between = r"\s?[–-]\s?"
    of = rf"(?:\s{locale.of_money}(?=\s))?" if locale.of_money else ""
    sign = r"((?<![^\s(])[-−])?"
    return (
        *dates.dates(locale, month_first=month_first),
        (
            re.compile(
                rf"(?<![\w.,])([-−]\s?)?\$\s?({number})(?:{between}\$?({number}))?(?:\s?({scale})(?!\w))?\s?({_DOLLAR_CODES})(?!\w)"
            ),
            partial(_money, locale, "minus one two scale sign"),
        ),
        (
            re.compile(rf"(?<![\w.,])([-−]\s?)?({_MONEY_SIGN})\s?({number})(?:{between}(?:\2)?({number}))?(?:\s?({scale})(?!\w))?{END}"),
            partial(_money, locale, "minus sign one two scale"),
        ),
        (
            re.compile(rf"(?<![\w.,:/+–-]){sign}({number})(?:{between}({number}))?(?:\s?({scale})(?!\w){of})?\s?({_MONEY_SIGN})(?![\w/])"),
            partial(_money, locale, "minus one two scale sign"),
        ),
        *dates.times(locale),
        *(((_ITALIAN_PLACE, lambda found: f"{found[1]}{words.ordinal('it', int(found[2]))}"),) if code == "it" else ()),
        (re.compile(rf"{START}{sign}({number})(?:(?:\s?%)?{between}({number}))?\s?%(?!\w)"), partial(_percent, locale)),
        (re.compile(rf"{START}{sign}({number})(?:{between}({number}))?(\s?)({_UNIT_SIGN})(?![\w²³/°])"), partial(_unit, locale)),
        (re.compile(rf"{START}({number})(\s?–\s?|-)({number}){END}"), partial(_range, locale)),
        (_FRACTION, partial(_fraction, locale)),
        *_ordinals(locale),
        (re.compile(rf"(?<![\w])(?:{locale.number_signs})\s?(?=[0-9])"), partial(_number_sign, locale)),
        *dates.years(locale),
        (re.compile(rf"{START}{sign}({number}){END}"), partial(_plain, locale)),
    )


def _number(locale: Locale) -> str:
    """Return the pattern of a number: thousands separated by one and the same sign, or not separated, then an optional fraction."""
    groups = "|".join(rf"[0-9]{{1,3}}(?:{re.escape(sign)}[0-9]{{3}})+(?![0-9])" for sign in locale.groups)
    return rf"(?:(?:{groups}|[0-9]+)(?:{re.escape(locale.decimal)}[0-9]+)?)"


def _value(locale: Locale, figures: str) -> Decimal | None:
    """Return the number; None if it is too long to be spelled, or is a row of digits such as 007 and not a number."""
    whole, _, fraction = figures.partition(locale.decimal)
    for sign in locale.groups:
        whole = whole.replace(sign, "")
    if len(whole) > MOST_FIGURES or (len(whole) > 1 and whole.startswith("0")):
        return None
    if len(fraction) > MOST_DECIMALS:
        exact = Decimal(f"{whole}.{fraction[:MOST_FIGURES]}")
        near = round(exact, ROUNDED_DECIMALS)
        return Decimal(f"{near.normalize():f}") if near or not exact else Decimal(f"{Decimal(f'{exact:.2g}'):f}")
    return Decimal(f"{whole}.{fraction}" if fraction else whole)


def _is_one(locale: Locale, value: Decimal) -> bool:
    if locale.code == "pt":
        return 0 < abs(value) < 2
    return abs(value) < 2 if locale.code == "fr" else abs(value) == 1 and value == value.to_integral_value()


def _negative(value: Decimal, sign: str | None) -> Decimal:
    return value.copy_negate() if sign else value


def _money(locale: Locale, order: str, found: re.Match[str]) -> str:
    part = dict(zip(order.split(), found.groups(), strict=True))
    one = _value(locale, part["one"] or "")
    two = _value(locale, part["two"]) if part["two"] else None
    if one is None or (part["two"] and two is None):
        return found[0]
    value = _negative(one, part["minus"])
    last = value if two is None else two
    money = _currency(locale, part["sign"] or "")
    first = f"{words.amount(locale, value, money.many)} {locale.to} " if two is not None else ""
    if part["scale"]:
        scale = _SCALES[locale.code][part["scale"]]
        scale = _ONE_OF.get(scale, scale) if _is_one(locale, last) else scale
        of = "" if scale in _THOUSANDS else locale.of_money
        counted = money.many if scale in _THOUSANDS else scale
        said = words.amount(locale, last, counted) if scale not in ("Million", "Milliarde") else "eine"
        return f"{first}{said} {scale}{_of(locale, of, money.many)}"
    return first + _priced(locale, last, money)


def _currency(locale: Locale, sign: str) -> Currency:
    iso = DOLLARS.get(sign, sign)
    if iso == "USD":  # a bare sign may be a region's own
        return LOCALES[locale.code].currencies["$"]
    sign = CODES.get(iso, iso)
    if sign in locale.currencies:
        return locale.currencies[sign]
    return Currency(words.currency(locale.code, sign, one=True), words.currency(locale.code, sign, one=False))


def _priced(locale: Locale, value: Decimal, money: Currency) -> str:
    """Return a price as units and hundredths where two decimals were written, and with the plain number otherwise."""
    name = money.one if _is_one(locale, value) else money.many
    if value.as_tuple().exponent != -2 or not money.cent:
        millions = locale.of_money if value >= 1_000_000 and value % 1_000_000 == 0 else ""
        return words.amount(locale, value, name) + _of(locale, millions, name)
    whole, cents = abs(value) // 1, int(abs(value) % 1 * 100)
    small = f"{words.amount(locale, Decimal(cents), money.cents)} {money.cent if cents == 1 else money.cents}"
    sign = f"{locale.minus} " if value.is_signed() else ""
    if whole == 0 and cents:
        return sign + small
    name = money.one if _is_one(locale, whole) else money.many
    large = f"{sign}{words.amount(locale, whole, name)} {name}"
    return f"{large} {locale.cents_joint} {small}" if cents else large


def _of(locale: Locale, word: str, name: str) -> str:
    if word and locale.code == "fr" and name[0] in "aeiou":
        return f" d'{name}"
    return f" {word} {name}" if word else f" {name}"


def _percent(locale: Locale, found: re.Match[str]) -> str:
    return _counted(locale, found, lambda _: locale.percent, locale.percent)


def _unit(locale: Locale, found: re.Match[str]) -> str:
    sign = found[5]
    if sign == "s" and not found[4] and re.search(r"[0-9]0$", found[2]):
        return found[0]  # the 80s
    many = words.unit(locale.code, sign, one=False)
    return _counted(locale, found, lambda value: words.unit(locale.code, sign, one=True) if _is_one(locale, value) else many, many)


def _counted(locale: Locale, found: re.Match[str], name: Callable[[Decimal], str], many: str) -> str:
    one = _value(locale, found[2])
    two = _value(locale, found[3]) if found[3] else None
    if one is None or (found[3] and two is None):
        return found[0]
    named = "" if many == locale.percent else many
    value = _negative(one, found[1])
    if two is None:
        return words.elided(locale, f"{words.amount(locale, value, name(value) if named else '')} {name(value)}")
    return f"{words.amount(locale, value, named)} {locale.to} {words.amount(locale, two, named)} {many}"


def _range(locale: Locale, found: re.Match[str]) -> str:
    """Spell a range. Two numbers that do not rise stay as they are if a hyphen joins them: they may be a score or a sum."""
    one, two = _value(locale, found[1]), _value(locale, found[3])
    if one is not None and two is not None and found.string[found.end() :].lstrip().startswith(("=", locale.signs["="])):
        return f"{words.amount(locale, one)} {locale.minus} {words.amount(locale, two)}"  # a sum
    if one is None or two is None or (one >= two and found[2] == "-"):
        return found[0]
    years = re.fullmatch(r"(?:1[1-9]|20)[0-9]{2}", found[1]) and re.fullmatch(r"(?:1[1-9]|20)[0-9]{2}", found[3])
    if years and locale.code in dates.YEAR_AFTER:
        return f"{words.year(locale.code, int(one))} {locale.to} {words.year(locale.code, int(two))}"
    return f"{words.amount(locale, one)} {locale.to} {words.amount(locale, two)}"


def _fraction(locale: Locale, found: re.Match[str]) -> str:
    above, below = _VULGAR[found[5]] if found[5] else (int(found[2]), int(found[3]))
    whole = found[4] or found[1]
    if not (0 < above < below <= 10):
        return found[0]
    one, many = locale.denominators[below - 2]
    number = words.cardinal(locale.code, int(whole)) if whole else ""
    if whole and below == 2:
        return ("ein" if number == "eins" else number) + locale.and_half
    part = f"{words.amount(locale, Decimal(above), one)} {one if above == 1 else many}"
    return f"{number} {locale.mixed} {part}" if whole else part


def _ordinals(locale: Locale) -> tuple[Rule, ...]:
    def english(found: re.Match[str]) -> str:
        return words.ordinal("en", int(found[1]))

    def german(found: re.Match[str]) -> str:
        return f"{found[1]}{words.ordinal('de', int(found[3]))}{'' if found[2].lower() in ('der', 'die', 'das') else 'n'}"

    def french(found: re.Match[str]) -> str:
        if found[1] == "1":
            return "première" if found[2] in ("re", "ère") else "premier"
        return ("second" + found[2][2:]) if found[2] in ("nd", "nde") else words.ordinal("fr", int(found[1]))

    def with_gender(found: re.Match[str]) -> str:
        word = words.ordinal(locale.code, int(found[1]))
        if found[2] == "ª":
            return re.sub(r"o\b", "a", word)
        short = found[2] == "er" or (locale.code == "es" and _SPANISH_NOUN.match(found.string, found.end()))
        return word.removesuffix("o") if short and word.endswith(("primero", "tercero")) else word

    signed = re.compile(r"(?<![\w.,-])([1-9][0-9]?)\.?(º|ª)(?!\w)")
    return {
        "en": ((re.compile(r"(?<![\w.,-])([1-9][0-9]{0,3})(?:st|nd|rd|th)\b"), english),),
        "de": (
            (re.compile(r"(\b(der|die|das|dem|den|am|im|zum|zur|vom|beim)\s)([1-9][0-9]{0,2})\.(?=\s[A-ZÄÖÜ])", re.IGNORECASE), german),
        ),
        "fr": ((re.compile(r"(?<![\w.,-])([1-9][0-9]{0,2})(ers?|re|ère|e|es|ème|èmes|nde?)\b"), french),),
        "es": ((re.compile(r"(?<![\w.,-])([1-9][0-9]?)\.?(º|ª|er)(?!\w)"), with_gender),),
        "it": ((signed, with_gender),),
        "pt": ((signed, with_gender),),
    }[locale.code]


def _number_sign(locale: Locale, found: re.Match[str]) -> str:
    """Spell the sign of a number, except for a "No." that starts a text: that is an answer, not an abbreviation."""
    return found[0] if found[0].startswith("No.") and found.start() == 0 else f"{locale.number} "


def _plain(locale: Locale, found: re.Match[str]) -> str:
    """Spell a number with a sign, separated thousands or decimals; a plain whole number is read right as it is."""
    value = _value(locale, found[2])
    if value is None or (found[2].isdigit() and not found[1]):
        return found[0]
    return words.amount(locale, _negative(value, found[1]))


@cache
def _compiled(tag: str, *, month_first: bool) -> tuple[Rule, ...]:
    return _rules(REGIONS.get(tag) or LOCALES[tag], month_first=month_first)


for _code in LOCALES:  # compiled on import: the first reply of a call does not wait for it
    for _first in (True, False):
        _compiled(_code, month_first=_first)
