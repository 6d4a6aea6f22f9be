"""Text without what a person cannot see: on its way to a program, and from a screen to a model.

Pure. What is taken out: control characters of 7 and 8 bits, bidirectional marks, characters without width, tags and variation selectors
that hide text, and lone surrogates.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_HIDDEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Characters without a picture. Joiners (U+200C, U+200D) and the emoji selector stay: scripts and emoji need them."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_ESCAPE: Final = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^X][^\x1b]*\x1b\\|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])")


def typed(text: str) -> tuple[str, int]:
    """Return a text as it may be typed, with line feeds alone between its lines, and how many characters were taken out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = _HIDDEN.sub("", _CONTROL.sub("", lines))
    return clean, len(lines) - len(clean)


def seen(styled: str) -> str:
    """Return what a screen shows, of text with its styles as escape sequences: nothing concealed, no control or invisible character."""
    parts: list[str] = []
    at, concealed = 0, False
    for match in _SGR.finditer(styled):
        if not concealed:
            parts.append(styled[at : match.start()])
        concealed = _conceals(match.group(1), concealed)
        at = match.end()
    if not concealed:
        parts.append(styled[at:])
    return plain("".join(parts))


def plain(text: str) -> str:
    """Return a text without escape sequences, control and invisible characters; lines and tabs stay."""
    text = _ESCAPE.sub("", text.replace("\r\n", "\n"))
    return _HIDDEN.sub("", _CONTROL.sub("", text))


def words(text: str, limit: int = 300) -> str:
    """Return a program's own words in one line, at most `limit` characters."""
    line = " ".join(plain(unicodedata.normalize("NFC", text)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _conceals(parameters: str, concealed: bool) -> bool:
    numbers = parameters.replace(":", ";").split(";")
    skip = 0
    for place, number in enumerate(numbers):
        if skip:
            skip -= 1
        elif number in ("38", "48", "58"):
            following = numbers[place + 1] if place + 1 < len(numbers) else ""
            skip = 2 if following == "5" else 4 if following == "2" else 0
        elif number in ("", "0", "28"):
            concealed = False
        elif number == "8":
            concealed = True
    return concealed
