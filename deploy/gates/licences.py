"""Gate: every installed Python distribution has a licence that an Apache-2.0 project may depend on, or an exception with its reason.

Reads the metadata of the distributions: `License-Expression`, then `License`, then the classifiers.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distributions
from typing import Final

ALLOWED: Final = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
    ]
)
WEAK: Final = frozenset({"MPL-2.0"})
"""Licences with file-level copyleft: the packages are used unmodified, so there are no further obligations."""

EXCEPTIONS: Final = {
    "quickjs-ng": ("", "MIT by its file LICENSE; its metadata names none"),
    "piper-tts": ("GPL-3.0-or-later", "runs as a process of its own and is never imported (docs/models.md)"),
    "num2words": ("LGPL", "used unmodified; pure Python that the user may replace"),
    "soxr": ("LGPL-2.1-or-later", "a shared library that the user may replace"),
}
_WORDS: Final = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "dfsg approved": "",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
_LONG: Final = 80


def problems() -> list[str]:
    """Return each distribution whose licence is not allowed, is unknown, or no longer matches its exception."""
    return sorted({problem for found in distributions() if (problem := problem_of(found.name, declared(found)))})


def declared(found: Distribution) -> str:
    """Return the declared licence of a distribution, as an SPDX expression where it is known."""
    expression = _field(found, "License-Expression")
    if expression:
        return expression
    text = _field(found, "License")
    if text and "\n" not in text and len(text) < _LONG and (known := _known(text)):
        return known
    classifiers = [line.split(" :: ")[-1] for line in found.metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    names = {name for line in classifiers if (name := _known(line))}
    if names:
        return " AND ".join(sorted(names))
    return "MIT" if _is_mit(text) else text.splitlines()[0] if text else ""


def problem_of(name: str, expression: str) -> str | None:
    """Return the problem with a licence, or None."""
    if name in EXCEPTIONS:
        wanted, reason = EXCEPTIONS[name]
        if expression == wanted:
            return None
        return f"{name}: the exception is for {wanted} ({reason}), and it now says {expression or 'nothing'}."
    if not expression:
        return f"{name} declares no licence; look it up and write it into deploy/gates/licences.py."
    return None if allowed(expression) else f"{name}: {expression} is not an allowed licence."


def allowed(expression: str) -> bool:
    """Return whether an SPDX expression can be satisfied: one side of each OR, both sides of each AND; AND binds tighter."""
    words = re.findall(r"[()]|[^\s()]+", expression)
    return _either(words) and not words


def _either(words: list[str]) -> bool:
    found = _both(words)
    while words and words[0] == "OR":
        words.pop(0)
        found = _both(words) or found
    return found


def _both(words: list[str]) -> bool:
    found = _term(words)
    while words and words[0] == "AND":
        words.pop(0)
        found = _term(words) and found
    return found


def _term(words: list[str]) -> bool:
    word = words.pop(0) if words else ""
    if word != "(":
        return word in ALLOWED | WEAK
    found = _either(words)
    return bool(words) and words.pop(0) == ")" and found


def _field(found: Distribution, name: str) -> str:
    return str(found.metadata[name]).strip() if name in found.metadata else ""


def _known(text: str) -> str:
    word = _WORDS.get(text.lower(), text)
    return word if not word or allowed(word) or word in {licence for licence, _ in EXCEPTIONS.values()} else ""


def _is_mit(text: str) -> bool:
    return "Permission is hereby granted, free of charge" in text
