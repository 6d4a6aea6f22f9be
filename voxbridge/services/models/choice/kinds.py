"""Kinds of words: the numbers, units of measure, lengths of time, times of day, money, operators and places of a text.

A unit or a place that nobody wrote into an utterance is of the same kind as one that somebody did, so "1 MB in Mb" is like "five miles in
kilometres", and "time in Lima" is like "time in Ottawa". The units are those of everyday talk in English and the symbols of the metric
system; the places are those that time zones are named after. A word that is none of them is only itself.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple
from zoneinfo import available_timezones

from voxbridge.shared.spoken_numbers import in_figures

NUMBER: Final = "#number"
UNIT: Final = "#unit"
TIME: Final = "#time"
OPERATOR: Final = "#operator"
PLACE: Final = "#place"
CLOCK: Final = "#clock"
MONEY: Final = "#money"

_words = re.compile(r"\S+").findall

_REGIONS: Final = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
_NO_PLACES: Final = frozenset(
    _words("act center currie easter knox lhi marengo midway north nsw reunion resolute south troll wake west yap")
)
"""Names of time zones that are other words more often."""

_TOKEN: Final = re.compile(r"\d{1,2}:\d{2}|\d+(?:[.,]\d+)*|\b[ap]\.m\b|[^\W\d_]+(?:/[^\W\d_]+)?|(?<=[\d)])\s*[-+*/^×÷−%]|°\s?[cfk]?")
_SIGN: Final = re.compile(r"[^\s.,?!'’]")
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_HOURS: Final = frozenset(_words("noon midday midnight"))
_HALVES: Final = frozenset(_words("am pm a.m p.m"))
"""Words that make a number before them a time of day."""

_OPERATIONS: Final = frozenset(_words("plus minus times over squared cubed divided multiplied mod modulo"))
"""Words that are an operator behind a number."""

ONE: Final = frozenset(("a", "an", "one"))
"""Words before a unit that are a number there."""

TEXT_LIMIT: Final = 1_000
"""Characters of a text that are read: the last ones, since people come to the point at the end."""

SYMBOL_LIMIT: Final = 5
"""Characters of a symbol of a unit; a longer one is a word, whose letters mean the same in any case."""

_BEFORE_TARGET: Final = frozenset(_words("to in into as"))

_TIMES: Final = frozenset(
    _words("""
second seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks fortnight fortnights month months year years
millisecond milliseconds ms microsecond microseconds nanosecond nanoseconds decade decades century centuries
""")
)

_MONEY: Final = frozenset(_words("euro euros dollar dollars cent cents buck bucks pence quid yen franc francs rupee rupees crowns"))

_PREFIXES: Final = _words("nano micro milli centi deci kilo mega giga tera peta kibi mebi gibi tebi")
_PREFIXED: Final = _words(
    "metre meter metres meters gram grams litre liter litres liters byte bytes bit bits watt watts joule joules hertz "
    "volt volts amp amps ampere amperes pascal pascals calorie calories newton newtons ohm ohms"
)
_UNITS: Final = frozenset(
    _words("""
metre meter metres meters litre liter litres liters gram grams kilo kilos kilogramme kilogrammes tonne tonnes micron microns
inch inches feet mile miles yards furlong furlongs nautical fathom fathoms lightyear lightyears parsec parsecs
acre acres hectare hectares sqm sqft pounds lbs lb ounce ounces oz grains carat carats
gallon gallons gal pint pints quart quarts cups tablespoon tablespoons tbsp teaspoon teaspoons tsp barrels bushel bushels
celsius fahrenheit kelvin centigrade degrees degree radian radians
mph kph kmh km/h m/s knots mach joule joules watt watts calorie calories kcal kwh btu horsepower hp
byte bytes bit bits kb mb gb tb pb kib mib gib tib kbps mbps gbps kb/s mb/s gb/s
mm cm dm km nm ft yd mi ml cl dl kg mg mw kw gw kj mj hz khz mhz ghz psi pascal pascals hpa kpa mbar millibar atm torr
newton newtons volt volts amp amps ampere amperes ohm ohms dpi lumen lumens lux
""")
) | {prefix + unit for prefix in _PREFIXES for unit in _PREFIXED}

_AFTER_NUMBER: Final = frozenset(
    _words("b c f g j k l m n s t v w h in foot yard pound stone stones ton tons bar bars cup knot barrel grain")
)
"""Words that are a unit behind a number, or behind "to" or "in" where another unit was named before; elsewhere they are other words."""


@cache
def places() -> frozenset[str]:
    """Return the towns that time zones are named after, in lower case."""
    zones = (name.split("/") for name in available_timezones())
    return frozenset(parts[-1].replace("_", " ").lower() for parts in zones if parts[0] in _REGIONS and len(parts) > 1) - _NO_PLACES


def marked(text: str) -> list[str]:
    """Return the words of a text in lower case with each number, unit, length of time, time of day, sum of money, operator and place as the
    name of its kind."""
    return [kind for _, kind in _marked(text)]


def read(text: str) -> list[tuple[str, str]]:
    """Return the words of a text, each with its kind; a word of no kind is its own. Numbers are figures, units have the letters of the
    text."""
    spelled = iter(_TOKEN.findall(text[-TEXT_LIMIT:]))
    return [
        (next((one.strip() for one in spelled if one.strip().casefold() == token), token) if kind == UNIT else token, kind)
        for token, kind in _marked(text)
    ]


def is_plain(text: str) -> bool:
    """Tell whether a text is words and figures alone, without signs that `read` passes over."""
    return not _SIGN.search(_TOKEN.sub("", _HYPHEN.sub(" ", text)))


def _marked(text: str) -> list[tuple[str, str]]:
    """Return the words of a text in lower case, each with its kind."""
    found: list[tuple[str, str]] = []
    named = False
    for token in (one.strip() for one in _TOKEN.findall(in_figures(text[-TEXT_LIMIT:]))):
        before, before_kind = found[-1] if found else ("", "")
        kind = _kind(token, before_kind, named=named)
        if before in ONE and (kind == UNIT or (kind == TIME and named)):
            found[-1] = (before, NUMBER)
        if f"{before} {token}" in places():
            found.pop()
            kind = PLACE
        elif token in _HALVES and before_kind in (NUMBER, CLOCK):
            found.pop()
            kind = CLOCK
        named = named or kind in (UNIT, TIME)
        found.append((token, kind))
    return found


def _kind(token: str, before: str, *, named: bool) -> str:
    """Return the kind of a word, or the word; `named` says that a unit stands before it."""
    if token[0].isdigit():
        return CLOCK if ":" in token else NUMBER
    if token in _HOURS:
        return CLOCK
    if token in _TIMES:
        return TIME
    if token in _MONEY:
        return MONEY
    if token in _UNITS or token.startswith("°"):
        return UNIT
    if token in _AFTER_NUMBER and (before == NUMBER or (named and (before in _BEFORE_TARGET or before in ONE))):
        return UNIT
    if not token[0].isalpha() or (before == NUMBER and token in _OPERATIONS):
        return OPERATOR
    return PLACE if token in places() else token


class Conversion(NamedTuple):
    """The units of a request to convert an amount, as they were written."""

    source: str
    target: str


def conversion(text: str) -> Conversion | None:
    """Return the two units of a request such as "8 Mb in MB" or "how many MB are 8 Mb" if both are symbols; `None` for any other text. The
    letters of a symbol are kept as they were written: a `Mb` is an eighth of a `MB`."""
    marks = read(text)
    units = [(word, before) for (_, before), (word, kind) in pairwise([("", ""), *marks]) if kind == UNIT]
    counted = [before == NUMBER for _, before in units]
    if len(units) != 2 or sum(counted) != 1 or any(len(word) > SYMBOL_LIMIT for word, _ in units) or any(kind == TIME for _, kind in marks):
        return None  # "how many MB are three GB per second" is for the model to read
    (first, _), (second, _) = units
    return Conversion(first, second) if counted[0] else Conversion(second, first)
