"""Conversion of spoken arithmetic to an expression: number words, operator words, percent.

Owns the wording only; `calculator` evaluates the expression.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = re.compile(r"[a-z]+")
_ONES: Final = {
    word: number
    for number, word in enumerate(
        _WORDS.findall(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
            "nineteen"
        )
    )
}
_TENS: Final = {
    word: 10 * number for number, word in enumerate(_WORDS.findall("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NUMBER: Final = r"(?:\d+(?:\.\d+)?|\.\d+|(?:[a-z]+)?\([^()]*\))"

_SIGNS: Final = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "\u2191", "√": " sqrt ", "²": " squared ", "³": " cubed "}
)
_TOKEN: Final = re.compile(r"[a-z]+|\d[\d.]*|\.\d+|\s+|.", re.IGNORECASE)
_PHRASES: Final = [
    (r"\b(?:what is|what's|whats|how much is|calculate|compute|work out|please|equals?|is equal to|the result of)\b", " "),
    (r"[=?]", " "),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"\bto the power of\b|\braised to\b|↑", " ** "),
    (r"\bmultiplied by\b|\btimes\b|(?<=\d)\s*x\s*(?=\d)", " * "),
    (r"\bdivided by\b", " / "),
    (r"\bplus\b|\badded to\b", " + "),
    (r"\bminus\b|\bless\b", " - "),
    (r"\bmodulo\b|\bmod\b", " MOD "),
    (r"\b(?:the )?(?:square root|sqrt)(?: of)?\b", " sqrt "),
    (r"\b(?:the )?(?:cube root|cbrt)(?: of)?\b", " cbrt "),
    (r"\b(?:a |one |1 )?half of\b", " 0.5 * "),
    (r"\b(?:a |one |1 )?third of\b", " (1/3) * "),
    (r"\b(?:a |one |1 )?quarter of\b", " 0.25 * "),
    (r"\bpercent\b|\bper cent\b", "%"),
    (r"\bsquared\b", " ** 2 "),
    (r"\bcubed\b", " ** 3 "),
]
_AFTER: Final = [
    (rf"({_NUMBER})\s*!", r" factorial(\1)"),
    (rf"\b(sqrt|cbrt)\s+(-?{_NUMBER})", r"\1(\2)"),
    (rf"({_NUMBER})\s*%\s*of\b", r"(\1/100) * "),
    (rf"^(.+?)([+-])\s*({_NUMBER})\s*%\s*$", r"(\1)*(1\2\3/100)"),
    (rf"({_NUMBER})\s*%(?!\s*[\d(a-z.])", r"(\1/100)"),
    (r"\bMOD\b", "%"),
]


def as_expression(text: str) -> str:
    """Convert a calculation in words or figures to an expression of figures, `+ - * / % **`, brackets and function names."""
    plain = text.casefold().translate(_SIGNS)
    for pattern, instead in _PHRASES:
        plain = re.sub(pattern, instead, plain)
    plain = _figures(plain)
    for pattern, instead in _AFTER:
        plain = re.sub(pattern, instead, plain)
    return " ".join(plain.split())


def _figures(text: str) -> str:
    """Replace number words by figures: `two hundred and five point five` becomes `205.5`."""
    out: list[str] = []
    run: list[str] = []
    for word in _TOKEN.findall(text):
        if word.isspace() and run:
            continue
        if word == "-" and run and run[-1] in _TENS:
            continue
        if _is_number_word(word) or (run and word in ("and", "hundred", "point")):
            run.append(word)
            continue
        if run:
            out.append(_value(run))
            run = []
            out.append(" ")
        out.append(word)
    if run:
        out.append(_value(run))
    return "".join(out)


def _is_number_word(word: str) -> bool:
    return word in _ONES or word in _TENS or word in _SCALES or word == "hundred"


def _value(words: list[str]) -> str:
    whole, _, fraction = " ".join(words).partition(" point ")
    total = group = 0
    for word in whole.split():
        if word in _ONES:
            group += _ONES[word]
        elif word in _TENS:
            group += _TENS[word]
        elif word == "hundred":
            group = max(group, 1) * 100
        elif word in _SCALES:
            total += max(group, 1) * _SCALES[word]
            group = 0
    digits = "".join(str(_ONES[word]) for word in fraction.split() if word in _ONES)
    return f"{total + group}.{digits}" if digits else str(total + group)
