"""A piece of a reply as a voice should say it: no markup, and numbers, dates, money, units, signs and addresses in words.

The log and the captions keep a piece as it was written (`markup.written`); this is for the speech model alone. The same text and
language give the same words on every machine: its locale, clock and time zone are not read, and num2words gets the language with each
call.

Rules are conservative: text that no rule understands stays as it is. Each piece is made speakable by itself, so nothing moves between
pieces.

Owns the order of the steps and the choice of a language. A crash here loses nothing.
"""

from __future__ import annotations

import re
from typing import Final

from voxbridge.services.voice.speakable import codes, dates, formulas, markup, names, regions, rules
from voxbridge.services.voice.speakable.locales import LOCALES

MOST_PASSES: Final = 8
"""Number of passes over a text: undoing one layer of markup may expose another. A text that still changes after them was crafted to."""

LANGUAGES: Final = tuple(LOCALES)
"""ISO 639-1 codes of the languages whose numbers and signs become words."""

_MONTH_FIRST: Final = frozenset({"en", "en-us", "en-ph"})
_FIGURE: Final = re.compile(r"[0-9½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]")


def speakable(text: str, language: str = "en") -> str:
    """Return the words for a voice of `language` (a BCP 47 tag: `de`, `en-GB`), on one line; empty if there is nothing to say.

    In a language that has no rules only markup is undone. A text that was made speakable already stays as it is.
    """
    tag = language.lower().replace("_", "-")
    code = tag.partition("-")[0]
    for _ in range(MOST_PASSES):
        said = _once(text, tag, code, month_first=tag in _MONTH_FIRST)
        if said == text:
            break
        text = said
    return text


def _once(text: str, tag: str, code: str, *, month_first: bool) -> str:
    locale = regions.of(tag)
    text = formulas.plain(text, code)
    text = markup.unmarked(text)
    if locale is not None:
        text = names.addresses(locale, text)
        if _FIGURE.search(text):
            text = dates.moments(locale, text)
            text = dates.minutes(locale, text)
            text = codes.codes(locale, text)
        text = names.signs(locale, text)
        if _FIGURE.search(text):
            text = names.phones(locale, text)
            text = names.versions(locale, text)
            text = rules.spelled(locale, text, month_first=month_first)
        text = names.abbreviations(locale, text)
        text = names.acronyms(locale, text)
    return " ".join(markup.bare(text).split())
