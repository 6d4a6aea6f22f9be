"""Units of measure: converting an amount from one to another."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from functools import cache
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import refused
from voxbridge.shared.errors import VoxbridgeError

UNIT_LIMIT: Final = 60
"""Characters of a unit."""
_UNIT: Final = re.compile(r"[^\W\d_](?:[^\W\d]|[ _°²³µ/*^().-]|(?<=\^)\d|(?<=\^-)\d|(?<=\*\*)\d)*|°[CFK]")
"""A unit has digits only as exponents, of one digit each: an expression of numbers could take for ever to work out."""
_WORDS: Final = re.compile(r"[a-zA-Z]{4,}(?: [a-zA-Z]{3,})+")
"""A unit of several words, such as `nautical mile`; symbols beside each other are a product."""

_TOWER: Final = re.compile(r"(?:\^|\*\*)-?\d\s*(?:\^|\*\*)|[)]\s*(?:\^|\*\*)")
_CASED: Final = {
    "Kb": "kilobit",
    "Mb": "megabit",
    "Gb": "gigabit",
    "Tb": "terabit",
    "Kbps": "kilobit/second",
    "Mbps": "megabit/second",
    "Gbps": "gigabit/second",
}
"""Symbols that mean another unit in other letters: a `Mb` is an eighth of a `MB`."""

_NAMES: Final = {
    "kilo": "kilogram",
    "kilos": "kilogram",
    "°c": "degC",
    "°f": "degF",
    "°k": "kelvin",
    "c": "degC",
    "f": "degF",
    "degrees": "degC",
    "centigrade": "degC",
    "kb": "kB",
    "mb": "MB",
    "gb": "GB",
    "tb": "TB",
    "kmh": "kilometer/hour",
    "kph": "kilometer/hour",
    "km/h": "kilometer/hour",
    "lbs": "pound",
    "sqm": "meter**2",
    "sqft": "foot**2",
    "l": "liter",
    "feet per second": "foot/second",
    "au": "astronomical_unit",
}
_DEGREES: Final = re.compile(r"deg(?:ree)?s?|°", re.IGNORECASE)
_POWERS: Final = {"2": "square ", "3": "cubic "}
_SPOKEN: Final = {"degree_Celsius": "degrees Celsius", "degree_Fahrenheit": "degrees Fahrenheit"}


def converted(amount: float, source: str, target: str) -> dict[str, Any]:
    """Return an amount of one unit in another. Raises `INVALID_ARGUMENT` for unknown units and those of other things."""
    from pint.errors import PintError

    if not math.isfinite(amount):
        raise refused("The amount is not a number that can be converted.", "amount")
    before, after = _unit(source, "from_unit"), _unit(target, "to_unit")
    if before == after and source.strip() != target.strip() and source.strip().lower() == target.strip().lower() and _is_cased(source):
        message = f"{source[:UNIT_LIMIT]} and {target[:UNIT_LIMIT]} are both {_said(before, 2)} here. Write out the one that is meant."
        raise refused(message, "to_unit")  # whoever writes KB and kb in one request means two units
    if before.is_compatible_with("radian") or after.is_compatible_with("radian"):  # degrees are of an angle then, and not of a temperature
        before, after = (
            _registry().degree if _DEGREES.fullmatch(name.strip()) else unit for name, unit in ((source, before), (target, after))
        )
    try:
        value = float(_registry().Quantity(amount, before).to(after).magnitude)
    except (PintError, ValueError, TypeError, ArithmeticError) as error:
        message = f"{source[:UNIT_LIMIT]} cannot be converted to {target[:UNIT_LIMIT]}: they measure different things."
        raise refused(message, "to_unit") from error
    if not math.isfinite(value):
        raise refused("The result is too large.", "amount")
    value = float(f"{value:.10g}")
    said = f"{_number(amount)} {_said(before, amount)} is {_number(value)} {_said(after, value)}."
    return {"amount": amount, "from": str(before), "value": value, "to": str(after), "spoken": said}


def _unit(text: str, field: str) -> Any:
    """Return a unit by its name, symbol or plural, in any case where none has just this one."""
    from pint.errors import PintError

    name = " ".join(text.split())
    bare = re.sub(r"^degrees? (?=\w)", "", name, flags=re.IGNORECASE)
    if not _UNIT.fullmatch(name) or _TOWER.search(name):
        raise _unknown(text, field)
    bare = re.sub(r" an? (hour|minute|second|day|litre|liter)$", r" per \1", bare, flags=re.IGNORECASE)
    named = _CASED.get(bare) or _NAMES.get(bare.lower(), "")
    joined = bare.lower().replace(" ", "_") if _WORDS.fullmatch(bare) else ""
    for spelling in dict.fromkeys(one for one in (named, joined, bare, bare.lower(), _symbols(bare)) if one):
        try:
            return _registry().parse_units(spelling)
        except (PintError, ValueError, TypeError, AttributeError, AssertionError, SyntaxError, ArithmeticError, RecursionError):
            continue
    raise _unknown(text, field)


def _is_cased(text: str) -> bool:
    """Return whether a unit is another one in other letters, as a `Kb` is an eighth of a `KB`. A mile is one in any."""
    name = text.strip()
    found = set()
    for spelling in (name, name.lower(), name.upper(), name.capitalize()):
        with suppress(VoxbridgeError):
            found.add(_unit(spelling, ""))
    return len(found) > 1


def _symbols(name: str) -> str:
    return name.replace("²", "**2").replace("³", "**3")


def _unknown(text: str, field: str) -> Exception:
    return refused(f"There is no unit {text[:UNIT_LIMIT]!r}. Name it as in miles, square metres, km/h or degC.", field)


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(cache_folder=None)


def _said(unit: Any, amount: float) -> str:
    """Return a unit as it is said: `square meters`, `miles per hour`."""
    name = str(unit)
    if name in _SPOKEN:
        return _SPOKEN[name]
    first, *others = name.replace("_per_", " / ").replace("_", " ").split(" / ")
    words = []
    for part in first.split(" * "):
        one, _, power = part.partition(" ** ")
        words.append(_POWERS.get(power, "") + one)
    last = words[-1]
    if amount != 1 and not last.endswith(("s", "z", "hertz")):
        stem, _, irregular = last.rpartition(" ")
        plural = {"foot": "feet", "inch": "inches"}.get(irregular, f"{irregular}s")
        words[-1] = f"{stem} {plural}".strip()
    return " per ".join([" ".join(words), *(other.replace(" ** 2", " squared").replace(" ** 3", " cubed") for other in others)])


def _number(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e15:
        digits, exponent = f"{value:.3e}".split("e")
        return f"about {float(digits):g} times 10 to the power of {int(exponent)}".replace("of -", "of minus ")
    for size, name in ((1e12, "trillion"), (1e9, "billion")):
        if abs(value) >= size:
            short = float(f"{value / size:.4g}")
            return f"{'' if math.isclose(short * size, value, rel_tol=1e-12) else 'about '}{short:,.10g} {name}"
    short = round(value, 2 if abs(value) >= 1 else 4)
    return f"{short:,.10g}" if math.isclose(short, value, rel_tol=1e-12) else f"about {short:,.10g}"
