"""Requests that are a sum, a conversion of units or a date and nothing besides, read whole: no model writes their arguments. Pure.

A small model makes `20 * 45` of twenty percent of 45. What can be read in several ways ("one two three plus four") is passed on in the
user's words, for the function to ask about; what is not read whole is left to the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from voxbridge.services.models.choice import kinds
from voxbridge.services.models.choice.moods import mood
from voxbridge.services.models.choice.orders import Able, Order
from voxbridge.shared import spoken_dates
from voxbridge.shared.spoken_arithmetic import as_expression

CALCULATE: Final = "calculate"
CONVERT: Final = "convert_units"
DATE: Final = "find_date"

SAID_LIMIT: Final = 200
"""Characters of a request that is read whole."""

_SUM: Final = re.compile(r"[\d\s.()!%*/+-]|\b(?:sqrt|cbrt|factorial)\b")
_OPERATION: Final = re.compile(r"[\d)]\s*[-+*/%]+\s*[\da-z(.]|[a-z]\(")
_BARE: Final = re.compile(r"[\d\s./()+-]*\d[-/]\d[\d\s./()+-]*")
"""A telephone number, a date, a fraction, "24/7": figures alone that are joined without a space are not read as a sum."""

_SEVERAL: Final = re.compile(r"[\d.]\s+[\d.]")

_ANY: Final = f"(?:{kinds.UNIT}|{kinds.TIME})"
_ASKED: Final = "(?:(?:hey|ok|okay|so|and|please|convert|change|turn|express|what is|what s|what are|how much is|how much are) )*"
_CONVERSION: Final = re.compile(
    rf"{_ASKED}{kinds.NUMBER} {_ANY} (?:to|in|into|as|(?:is|are|equals?|makes?) how many) {_ANY}(?: please)?"
    rf"|(?P<backwards>(?:and )?how (?:many|much) {_ANY} (?:are|is|in|are in|is in|are there in|makes?|equals?) {kinds.NUMBER} {_ANY}"
    r"(?: please)?)"
)
_FIGURES: Final = re.compile(r"\d+(?:\.\d+)?")

_DATED: Final = re.compile(
    r"(?:(?:hey|ok|okay|so|and|please|tell me|do you know) )*"
    r"(?:(?:what|which)(?:'s| is| was) (?P<whose>yesterday|today|tomorrow)'?s date"
    r"|(?:(?:how (?:many (?:days|weeks|months)|long|far|much time)|is it long)(?: (?:is it|are there|is there|do we have|left|away))*"
    r" (?:until|till|til|to|before|is|away is)"
    r"|(?=.*\b(?:date|day)\b)(?:what|which)(?:'s)?(?: (?:the|date|day(?: of the week)?|is|was|will|it|be|on|for|do|we|have))+"
    r"|when(?:'s| is| was)|on (?:what|which) day (?:is|was|does))"
    r" (?P<day>.+?)(?: (?:this year|fall|falls|be|on|away))*)",
    re.IGNORECASE,
)
_ANY_DAY: Final = date(2026, 1, 1)
"""Day from which it is tried whether a text names a date; the function reads it from the caller's today."""

_WAS: Final = re.compile(r"\bwas\b", re.IGNORECASE)


def read(said: str, tools: Sequence[Able]) -> list[Order]:
    """Return the call of `calculate`, `convert_units` or `find_date` that a request is; empty for any other request, and for one without
    that function."""
    if len(said) > SAID_LIMIT or mood(said) != "wish":
        return []
    names = {tool.name for tool in tools}
    if CONVERT in names and (conversion := _conversion(said)):
        return [Order(CONVERT, conversion, said)]
    if DATE in names and (day := _date(said)):
        return [Order(DATE, {"day": day}, said)]
    if CALCULATE in names and (expression := _expression(said)):
        return [Order(CALCULATE, {"expression": expression}, said)]
    return []


def _expression(said: str) -> str:
    found = as_expression(said.rstrip(" .?!"))
    if not _OPERATION.search(found) or _SUM.sub("", found) or _BARE.fullmatch(said):
        return ""
    return said if _SEVERAL.search(found) else found


def _date(said: str) -> str:
    asked = _DATED.fullmatch(" ".join(said.replace("\u2019", "'").rstrip(" .?!").split()))
    day = (asked["day"] or asked["whose"]) if asked else ""
    if not day or spoken_dates.found(day, _ANY_DAY) is None:
        return ""
    past = f"last {day}"  # "when was Easter" does not mean the next one
    return past if _WAS.search(said) and spoken_dates.found(past, _ANY_DAY) else day


def _conversion(said: str) -> dict[str, Any] | None:
    words = kinds.read(said.rstrip(" .?!"))
    found = _CONVERSION.fullmatch(" ".join(kind for _, kind in words))
    if found is None or not kinds.is_plain(said):
        return None
    amount = next(word for word, kind in words if kind == kinds.NUMBER)
    units = [word for word, kind in words if kind in (kinds.UNIT, kinds.TIME)]
    if not _FIGURES.fullmatch(amount) and amount not in kinds.ONE:
        return None
    source, target = reversed(units) if found["backwards"] else units
    value = float(amount) if amount not in kinds.ONE else 1.0
    return {"amount": int(value) if value.is_integer() else value, "from_unit": source, "to_unit": target}
