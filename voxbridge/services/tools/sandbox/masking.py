"""Masking: the values of secrets, as they are and encoded, are struck out of whatever comes back to a handler.

Owns the forms that are known: as it is, percent-encoded, escaped for JSON and HTML, hexadecimal, and base64 at each of its three
alignments, in both alphabets. A host that hands a value out in pieces, reversed or enciphered is beyond it: a secret is sent only to hosts
that its rule names. Pure.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

import re2

MASK: Final = "***"
_MEMORY: Final = 256 * 1024 * 1024
_HTML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_BASE64: Final = {"+": r"(?:\+|-|%2[bB]|\\u002[bB])", "/": r"(?:/|_|\\/|%2[fF])"}


class Masks:
    """The values to strike out."""

    def __init__(self, values: Collection[str]) -> None:
        self._forms = _compiled(tuple(sorted(set(values), key=lambda one: (-len(one), one))))

    def text(self, text: str) -> str:
        """Return a text without the values."""
        return text if self._forms is None else str(self._forms.sub(MASK, text))

    def data(self, data: bytes) -> bytes:
        """Return bytes without the values."""
        return data if self._forms is None else self.text(data.decode("latin-1")).encode("latin-1")

    def holds(self, text: str) -> bool:
        """Tell whether one of the values is in a text, in any form."""
        return self._forms is not None and self._forms.search(text) is not None


@lru_cache(maxsize=64)
def _compiled(values: tuple[str, ...]) -> Any:
    if not values:
        return None
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    return re2.compile("|".join(form for value in values for form in _forms(value)), options)


def _forms(value: str) -> list[str]:
    raw = value.encode()
    spelled = "".join(_character(one) for one in value)
    encoded = ["".join(_BASE64.get(one, re.escape(one)) for one in _aligned(raw, before)) for before in range(3)]
    return [spelled, f"(?i:{raw.hex()})", *encoded]


def _character(one: str) -> str:
    code = ord(one)
    upper, lower = f"{code:02X}", f"{code:02x}"
    hexadecimal = "".join(f"[{a}{b}]" if a != b else a for a, b in zip(upper, lower, strict=True))
    forms = [
        re.escape(one), rf"\\{re.escape(one)}" if not one.isalnum() else "", f"%(?:25)*{hexadecimal}", rf"\\u00{hexadecimal}",
        rf"\\x{hexadecimal}", f"&#0*{code};", f"&#[xX]0*{hexadecimal};", _HTML.get(one, ""), r"\+" if one == " " else "",
    ]  # fmt: skip
    return f"(?:{'|'.join(form for form in forms if form)})"


def _aligned(raw: bytes, before: int) -> str:
    """Return the characters of base64 that depend on these bytes alone, with so many unknown bytes in front of them."""
    text = b64encode(bytes(before) + raw).decode().rstrip("=")
    first = (0, 2, 3)[before]
    return text[first : (len(raw) + before) * 8 // 6]
