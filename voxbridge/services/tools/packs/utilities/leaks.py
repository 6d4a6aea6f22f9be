"""Secrets in a text: keys, tokens and passwords by the forms that they have. What is found is never shown whole."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, count

ENTROPY: Final = 3.0
"""Bits a character, above which the value of something named as a secret looks random."""
_NAMED: Final = (
    r"(?i)\b[\w.-]{0,40}(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\w-]{0,20}[\"']?\s{0,5}[:=]\s{0,5}[\"']?"
    r"(?P<value>[^\s\"',;<>{}$()]{8,200})"
)
_FORMS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("private key", r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----"),
        ("AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("GitHub token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,255}|github_pat_[0-9A-Za-z_]{22,255})\b"),
        ("GitLab token", r"\bglpat-[0-9A-Za-z_-]{20,64}"),
        ("Slack token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,250}"),
        ("Slack webhook", r"https://hooks\.slack\.com/services/[0-9A-Za-z/]{20,100}"),
        ("Stripe key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,247}\b"),
        ("Anthropic key", r"\bsk-ant-[0-9A-Za-z_-]{20,200}"),
        ("OpenAI key", r"\bsk-(?!ant-)(?:proj-|svcacct-)?[0-9A-Za-z_-]{20,200}"),
        ("Google API key", r"\bAIza[0-9A-Za-z_-]{35}"),
        ("npm token", r"\bnpm_[0-9A-Za-z]{36}\b"),
        ("PyPI token", r"\bpypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{50,500}"),
        ("SendGrid key", r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}"),
        ("JSON Web Token", r"\beyJ[0-9A-Za-z_-]{8,4000}\.eyJ[0-9A-Za-z_-]{8,8000}\.[0-9A-Za-z_-]{8,1000}"),
        ("password in a URL", r"\b[a-z][a-z0-9+]{1,20}://[^\s:/@]{1,100}:(?P<value>[^\s:/@]{3,200})@"),
        (
            "value named as a secret",
            _NAMED,
        ),
    )
)
_HARMLESS: Final = re.compile(
    r"(?i)^(?:x+|\*+|\.+|your|example|change|placeholder|none|null|true|false|os\.|env|process\.|settings|config)"
)


def found(text: str) -> dict[str, Any]:
    """Return the secrets in a text: their kind, line and first characters."""
    secrets: list[dict[str, Any]] = []
    taken: set[int] = set()
    total = 0
    for number, line in enumerate(text.splitlines() or [text], 1):
        taken.clear()
        for name, form in _FORMS:
            for match in form.finditer(line):
                named = "value" in form.groupindex
                value = match["value"] if named else match[0]
                start, end = match.span("value") if named else match.span()
                if taken & set(range(start, end)) or (named and _looks_harmless(name, value)):
                    continue
                taken |= set(range(start, end))
                total += 1
                if len(secrets) < LISTED_LIMIT:
                    secrets.append({"kind": name, "line": number, "masked": masked(value)})
    kinds = ", ".join(sorted({one["kind"] for one in secrets}))
    spoken = f"I found {count(total, 'secret')}: {kinds}." if total else "I found no secret in a form that I know."
    return {"secrets": secrets, "count": total, "spoken": spoken[:300]}


def masked(value: str) -> str:
    """Return the first four characters of a long value, or none of a short one, and its length."""
    shown = value[:4] if len(value) >= 16 else ""
    return f"{shown}… ({len(value)} characters)"


def _looks_harmless(name: str, value: str) -> bool:
    if _HARMLESS.match(value):
        return True
    return name == "value named as a secret" and _entropy(value) < ENTROPY


def _entropy(value: str) -> float:
    return -sum(times / len(value) * math.log2(times / len(value)) for times in Counter(value).values())
