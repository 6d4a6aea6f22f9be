"""Numbers in words by num2words, and the names of months, units and currencies that agree with them. Pure.

num2words gets the language with each call and reads no setting of the machine.

Owns agreement in gender, but not how amounts are found in a text (`rules`). A crash here loses nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from num2words import num2words

from voxbridge.services.voice.speakable import units as tables
from voxbridge.services.voice.speakable.locales import Locale

_FEMININE: Final = {
    "de": re.compile(r"^\w*(?:[Mm]eile|[Ss]tunde|[Mm]inute|[Ss]ekunde|[Uu]nze|kalorie|Rupie)n?\b"),
    "fr": re.compile(r"^\w*(?:livre|heure|minute|seconde|once|calorie|roupie|couronne)s?\b"),
    "es": re.compile(r"^\w+as?\b"),
    "it": re.compile(r"^(?:\w*caloria|sterlina|rupia|corona|lira|libbra|iarda|oncia|ora)\b"),
    "pt": re.compile(r"^(?:\w*caloria|libra|rupia|coroa|lira|jarda|onça|milha|hora)s?\b"),
}
_PORTUGUESE_MILLIONS: Final = re.compile(r"^(.*\b(?:[mb]ilhão|[mb]ilhões)\b)?(.*)$", re.DOTALL)


_NAMES: Final = {"pt": "pt_BR"}
"""Languages by the name that num2words has for them: Portuguese is Brazil's, as in the CLDR."""


@lru_cache(maxsize=2_048)
def cardinal(code: str, number: int) -> str:
    """Return a whole number in words."""
    return str(num2words(number, lang=_NAMES.get(code, code))).replace(",", "")


@lru_cache(maxsize=512)
def ordinal(code: str, number: int) -> str:
    """Return an ordinal in words: masculine, German in the form after "der"."""
    return str(num2words(number, lang=code, to="ordinal")).replace(",", "")


@lru_cache(maxsize=512)
def year(code: str, number: int) -> str:
    """Return a year in words, as English and German say it."""
    return str(num2words(number, lang=code, to="year")).replace(",", "")


def amount(locale: Locale, value: Decimal, named: str = "") -> str:
    """Return a number in words that agrees in gender with what it counts; a fraction is read digit by digit."""
    sign = f"{locale.minus} " if value.is_signed() else ""
    whole, _, fraction = format(abs(value), "f").partition(".")
    words = cardinal(locale.code, int(whole))
    if fraction:
        return f"{sign}{words} {locale.point} {digits(locale, fraction)}"
    feminine = locale.code in _FEMININE and _FEMININE[locale.code].search(named) is not None
    return sign + (_agreeing(locale.code, words, feminine=feminine) if named else words)


def _agreeing(code: str, words: str, *, feminine: bool) -> str:
    if code == "de":
        return ("eine" if feminine else "ein") if words == "eins" else words
    if code == "fr":
        return re.sub(r"\bun$", "une", words) if feminine else words
    if code == "es":
        if feminine:
            return re.sub(r"uno$", "una", re.sub(r"cientos\b", "cientas", words)).replace("quinientos", "quinientas")
        return re.sub(r"\buno$", "un", re.sub(r"veintiuno$", "veintiún", words))
    if code == "it":
        return ("una" if feminine else "un") if words == "uno" else words
    if code == "pt" and feminine:
        millions, rest = _PORTUGUESE_MILLIONS.sub(r"\1|\2", words).split("|")
        return millions + re.sub(r"\bum$", "uma", re.sub(r"\bdois\b", "duas", re.sub(r"entos\b", "entas", rest)))
    return words


def elided(locale: Locale, said: str) -> str:
    """Return an amount and its name as they are said together: "un'ora" in Italian."""
    return re.sub(r"^una (?=[aeiou])", "un'", said) if locale.code == "it" else said


def digits(locale: Locale, figures: str) -> str:
    """Return each digit in words."""
    return " ".join(cardinal(locale.code, int(figure)) for figure in figures)


def months(code: str) -> dict[str, int]:
    """Return every name of a month in a language with its number; short names are without their dot."""
    short = (pair.split("=") for pair in tables.SHORT_MONTHS[code].split())
    return {name: number for number, name in enumerate(tables.MONTHS[code].split(), 1)} | {name: int(number) for name, number in short}


def month(code: str, number: int) -> str:
    """Return the name of a month, 1 to 12."""
    return tables.MONTHS[code].split()[number - 1]


def unit(code: str, sign: str, *, one: bool) -> str:
    """Return the long name of a unit, for one or for many."""
    return _UNITS[code, sign][0 if one else -1]


def currency(code: str, iso: str, *, one: bool) -> str:
    """Return the name of a currency of `units`, for one or for many."""
    return _CURRENCIES[code, iso][0 if one else -1]


def _columns(table: dict[str, str]) -> dict[tuple[str, str], list[str]]:
    """Return names by language and sign: the singular and, where it differs, the plural."""
    return {
        (code, sign): names.split("|")
        for signs, row in table.items()
        for code, names in zip(tables.LANGUAGES, row.split("; "), strict=True)
        for sign in signs.split()
    }


_UNITS: Final = _columns(tables.UNITS)
_CURRENCIES: Final = _columns(tables.CURRENCIES)

UNIT_SIGNS: Final = tuple(sorted({sign for _, sign in _UNITS}, key=lambda sign: (-len(sign), sign)))
"""All signs of units, the longest first."""
