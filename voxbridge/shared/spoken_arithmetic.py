"""Conversion of spoken arithmetic to an expression: operator words, verbs, percent.

Owns the wording only: numbers are read by `voxbridge.shared.spoken_numbers`, and `calculator` evaluates the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from voxbridge.shared.spoken_numbers import in_figures

_NUMBER: Final = r"(?:\d+(?:\.\d+)?|\.\d+|(?:[a-z]+)?\([^()]*\))"
_PLAIN: Final = r"-?\d+(?:\.\d+)?"
_PARTS: Final = {
    "half": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
}

_SIGNS: Final = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "\u2191", "√": " sqrt ", "²": " squared ", "³": " cubed "}
)
_ASKED: Final = r"\b(?:what is|what's|whats|what does|how much is|how much|calculate|compute|work out|equals?|is equal to|the result of)\b"
_POLITE: Final = (
    r"\b(?:please|(?:can|could|would|will) you|(?:tell|give) me)\b|\b(?:makes?|comes? to|what)$|^(?:hey|ok|okay|so|and|now|then)\b"
)
_PHRASES: Final[list[tuple[str, str | Callable[[re.Match[str]], str]]]] = [
    (rf"{_ASKED}|{_POLITE}", " "),
    (r"[=?]", " "),
    (r"\bhalf a dozen\b", " 6 "),
    (r"\b(?:(\d+(?:\.\d+)?) |an? )dozen\b", lambda found: f"({found[1] or 1} * 12)"),
    (r"\bto the power of\b|\braised to(?: the power of)?\b|\bto the (?=minus\b|negative\b)|↑", " ** "),
    (r"\bnegative (?=\d)", " -"),
    (rf"\b(?:the )?factorial of ({_PLAIN})|({_PLAIN}) factorial\b", lambda found: f" {found[1] or found[2]}! "),
    (r"\bmultiplied by\b|\btimes\b|(?<=\d)\s*x\s*(?=\d)", " * "),
    (r"\bdivided by\b|(?<=\d)\s+over\s+(?=\d)", " / "),
    (r"\bplus\b|\badded to\b", " + "),
    (r"\bminus\b|\bless\b", " - "),
    (r"\bmodulo\b|\bmod\b", " MOD "),
    (r"\b(?:the )?(?:square root|sqrt)(?: of)?\b", " sqrt "),
    (r"\b(?:the )?(?:cube root|cbrt)(?: of)?\b", " cbrt "),
    *((rf"\b(\d+) {part}s? of\b", rf"(\1/{number}) * ") for part, number in _PARTS.items()),
    *((rf"\b(?:a )?{part} of\b", f"(1/{number}) * ") for part, number in _PARTS.items()),
    (r"\bpercent\b|\bper cent\b", "%"),
    (r"\bsquared\b", " ** 2 "),
    (r"\bcubed\b", " ** 3 "),
]
_VERBS: Final = [
    (re.compile(rf"{verb} ({_PLAIN}) {joint} ({_PLAIN})(?: people)?"), instead)
    for verb, joint, instead in (
        ("(?:divide|split|share)", "(?:by|among|between|into)", r"\1 / \2"),
        ("multiply", "(?:by|with|and)", r"\1 * \2"),
        ("(?:subtract|take(?: away)?)", "(?:away )?from", r"\2 - \1"),
        ("add", "(?:to|and)", r"\1 + \2"),
        ("(?:take|start with)", "(?:and )?(?:add|\\+)", r"\1 + \2"),
        ("(?:take|start with)", "(?:and )?(?:subtract|take away|-)", r"\1 - \2"),
        ("(?:take|start with)", "(?:and )?(?:multiply (?:it )?by|\\*)", r"\1 * \2"),
        ("(?:take|start with)", "(?:and )?(?:divide (?:it )?by|/)", r"\1 / \2"),
        ("(?:the )?remainder (?:of|when)", "(?:is )?/", r"\1 MOD \2"),
        ("(?:what )?(?:%|percentage) is", "(?:out )?of", r"\1 / \2 * 100"),
        ("(?:what )?(?:%|percentage) of", "is", r"\2 / \1 * 100"),
    )
]
_BETWEEN: Final = [
    (re.compile(rf"({_PLAIN}) {joint} ({_PLAIN}){end}"), instead)
    for joint, end, instead in (
        ("take ?away", "", r"\1 - \2"),
        ("and", "", r"\1 + \2"),
        ("(?:bigger|greater|larger|higher|more) than", "", r"\2 + \1"),
        ("(?:-|fewer|smaller|lower) than", "", r"\2 - \1"),  # "less" is a sign by now
        ("(?:is )?(?:increased|raised|up) by", " ?(%?)", r"\1 + \2\3"),
        ("(?:is )?(?:decreased|reduced|lowered|down) by", " ?(%?)", r"\1 - \2\3"),
        ("(?:out )?of", " (?:as|in) (?:an? )?(?:%|percentage)", r"\1 / \2 * 100"),
    )
]
_MANY: Final = [
    (re.compile(rf"{word} ({_PLAIN})"), rf"{times} * \1") for word, times in (("(?:twice|double)", 2), ("(?:thrice|triple)", 3))
]
_DIFFERENCE: Final = re.compile(rf"(?:the )?difference (?:between|of) ({_PLAIN}) (?:and|to) ({_PLAIN})")
_AVERAGE: Final = re.compile(rf"(?:the )?(?:average|mean) of (?P<numbers>{_PLAIN}(?:(?:,? and |, ?| ){_PLAIN})+)")
_SUM: Final = re.compile(
    r"(?:(?:add(?: up)?|sum(?: up)?|(?:the )?(?:sum|total) of)|(?P<product>(?:the )?product of)) "
    rf"(?P<numbers>{_PLAIN}(?:(?:,? and |, ?| ){_PLAIN})+)"
)
_EACH: Final = re.compile(_PLAIN)
_AFTER: Final = [
    (rf"({_NUMBER})\s*!", r" factorial(\1)"),
    (rf"\b(sqrt|cbrt)\s+(-?{_NUMBER})", r"\1(\2)"),
    (rf"({_NUMBER})\s*%\s*of\b", r"(\1/100) * "),
    (rf"^({_NUMBER})\s*%\s*off(?: of)?\s*({_NUMBER})$", r"\2 * (1-\1/100)"),
    (rf"^(.+?)([+-])\s*({_NUMBER})\s*%\s*$", r"(\1)*(1\2\3/100)"),
    (rf"({_NUMBER})\s*%(?!\s*[\d(a-z.])", r"(\1/100)"),
    (r"\bMOD\b", "%"),
]


def as_expression(text: str) -> str:
    """Convert a calculation in words or figures to an expression of figures, `+ - * / % **`, brackets and function names."""
    plain = in_figures(text.translate(_SIGNS))
    for pattern, instead in _PHRASES:
        plain = re.sub(pattern, instead, plain)
    plain = _without_verb(" ".join(plain.split()))
    for pattern, instead in _AFTER:
        plain = re.sub(pattern, instead, plain)
    return " ".join(plain.split())


def _without_verb(plain: str) -> str:
    """Write what a verb asks for with signs: "divide 9 by 3", "add up 12, 15 and 31"."""
    for pattern, instead in (*_VERBS, *_BETWEEN, *_MANY):
        if found := pattern.fullmatch(plain):
            return found.expand(instead)
    if found := _SUM.fullmatch(plain):
        sign = " * " if found["product"] else " + "
        return sign.join(_EACH.findall(found["numbers"]))
    if found := _DIFFERENCE.fullmatch(plain):
        return "{} - {}".format(*sorted(found.groups(), key=Decimal, reverse=True))
    if found := _AVERAGE.fullmatch(plain):
        numbers = _EACH.findall(found["numbers"])
        return f"({' + '.join(numbers)}) / {len(numbers)}"
    return plain
