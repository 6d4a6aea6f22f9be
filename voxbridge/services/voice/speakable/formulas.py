"""Formulas in LaTeX, which models write for every sum, as plain signs and words. Pure.

Owns what of a formula is LaTeX. Signs between two operands are read by `names.signs`, numbers by `rules`. A piece of a reply may hold half
a formula, so each command is converted where it stands; one that is not known loses its backslash.
"""

from __future__ import annotations

import re
from typing import Final

_INSIDE: Final = re.compile(r"\$\$(?P<shown>[^$]{1,400})\$\$|(?<![\w$\\])\$(?P<inline>[^\s$](?:[^$\n]{0,198}[^\s$])?)\$(?![\w$])")
_IS_FORMULA: Final = re.compile(r"\\[a-zA-Z]|[\^_]\{|[0-9a-zA-Z)]\s*[=+*/^<>-]\s*[0-9a-zA-Z(\\]|^[a-zA-Z]$")
_SIGNS: Final = {
    **dict.fromkeys(("times", "cdot", "ast"), "×"),
    "div": "÷",
    **dict.fromkeys(("leq", "le"), "≤"),
    **dict.fromkeys(("geq", "ge"), "≥"),
    **dict.fromkeys(("neq", "ne"), "≠"),
    "approx": "≈",
    **dict.fromkeys(("to", "rightarrow"), "→"),
    **dict.fromkeys(("left", "right", "displaystyle", "quad", "qquad", "big", "Big"), ""),
}
_WORDS: Final = {
    "en": {
        "pm": "plus or minus", "sqrt": "the square root of", "over": "over", "squared": "squared", "cubed": "cubed",
        "power": "to the power of", "infty": "infinity", "percent": "percent", "minus": "minus",
    },
    "de": {
        "pm": "plus oder minus", "sqrt": "die Wurzel aus", "over": "durch", "squared": "zum Quadrat", "cubed": "hoch drei",
        "power": "hoch", "infty": "unendlich", "percent": "Prozent", "minus": "minus",
    },
    "fr": {
        "pm": "plus ou moins", "sqrt": "la racine carrée de", "over": "sur", "squared": "au carré", "cubed": "au cube",
        "power": "puissance", "infty": "l'infini", "percent": "pour cent", "minus": "moins",
    },
    "es": {
        "pm": "más o menos", "sqrt": "la raíz cuadrada de", "over": "sobre", "squared": "al cuadrado", "cubed": "al cubo",
        "power": "elevado a", "infty": "infinito", "percent": "por ciento", "minus": "menos",
    },
    "it": {
        "pm": "più o meno", "sqrt": "la radice quadrata di", "over": "su", "squared": "al quadrato", "cubed": "al cubo",
        "power": "elevato a", "infty": "infinito", "percent": "per cento", "minus": "meno",
    },
    "pt": {
        "pm": "mais ou menos", "sqrt": "a raiz quadrada de", "over": "sobre", "squared": "ao quadrado", "cubed": "ao cubo",
        "power": "elevado a", "infty": "infinito", "percent": "por cento", "minus": "menos",
    },
}  # fmt: skip
_FRACTION: Final = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT: Final = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|mathbf|operatorname|boxed)\s*\{([^{}]*)\}")
_POWER: Final = re.compile(r"\^\{([^{}]*)\}|(?<=[\w)])\^(-?\w)(?!\w)")
_RAISED: Final = re.compile(r"(?:(?<![\w.,])(?<![0-9] )[a-zA-Z]|[0-9)])([²³])(?!\w)")
"""A variable, a figure or a bracket that is squared or cubed; "25 m²" is a unit."""

_INDEX: Final = re.compile(r"(?<=\w)_\{([^{}]*)\}")
_MINUS: Final = re.compile(r"\s*-\s*")
_COMMAND: Final = re.compile(r"\\([a-zA-Z]+)")
_FENCES: Final = re.compile(r"\\[()\[\]]")
MOST_LAYERS: Final = 6
"""Layers of braces that are opened; a formula that is deeper keeps what is within."""


def plain(text: str, code: str) -> str:
    """Return a text with its formulas in signs and words of a language; a text without any is returned as it is."""
    words = _WORDS.get(code, _WORDS["en"])
    if "$" in text:
        text = _INSIDE.sub(lambda found: _undelimited(found, words), text)
    if "²" in text or "³" in text:
        text = _RAISED.sub(lambda found: found[0][:-1] + _power("2" if found[1] == "²" else "3", words), text)
    if "\\" not in text and "^" not in text:
        return text
    text = _FENCES.sub(" ", text)
    for _ in range(MOST_LAYERS):
        before = text
        text = _TEXT.sub(r"\1", text)
        text = _POWER.sub(lambda found: _power(found[1] or found[2] or "", words), text)
        text = _INDEX.sub(r" \1", text)
        text = _ROOT.sub(lambda found: f" {words['sqrt']} {_inside(found[1], words)} ", text)
        text = _FRACTION.sub(lambda found: f" {_inside(found[1], words)} {words['over']} {_inside(found[2], words)} ", text)
        if text == before:
            break
    text = text.replace("\\%", f" {words['percent']}")
    return _COMMAND.sub(lambda found: _command(found[1], words), text)


def _undelimited(found: re.Match[str], words: dict[str, str]) -> str:
    inside: str = found["shown"] or found["inline"]
    return _MINUS.sub(f" {words['minus']} ", inside).strip() if _IS_FORMULA.search(inside) else found[0]


def _inside(part: str, words: dict[str, str]) -> str:
    """Return what is within a command's braces, where a hyphen is a minus."""
    return _MINUS.sub(f" {words['minus']} ", part).strip()


def _power(exponent: str, words: dict[str, str]) -> str:
    special = {"2": words["squared"], "3": words["cubed"], "\\circ": "°", "∘": "°"}
    return f" {special[exponent]}" if exponent in special else f" {words['power']} {exponent}"


def _command(name: str, words: dict[str, str]) -> str:
    return f" {words.get(name, _SIGNS.get(name, name))} "
