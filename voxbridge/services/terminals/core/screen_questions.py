"""Questions that a program asks on its screen, read from its last rows: permission, a password, a choice. Pure.

A manifest is the list of looks that a program's questions have. Owns these lists, and the question's subject: the command or the file that
stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from voxbridge.shared.terminals.model import Phase, Reason


class Look(NamedTuple):
    """A pattern of the last rows of a screen, and what it means."""

    pattern: re.Pattern[str]
    phase: Phase
    reason: Reason = ""


_ASKS: Final = Look(
    re.compile(r"^.*(?:\([yY]/[nN]\)|\[[yY]/[nN]\]|\(yes/no(?:/\[fingerprint\])?\)).*$", re.MULTILINE), "blocked", "question"
)
_AUTH: Final = Look(re.compile(r"^.*(?:[Pp]assword|[Pp]assphrase)[^\n]*: ?\Z", re.MULTILINE), "blocked", "auth")
_PERMISSION: Final = Look(
    re.compile(r"^.*(?:Do you want to|Would you like to|Allow (?:execution|this)|Apply this change|Run this command).*\?.*$", re.MULTILINE),
    "blocked",
    "permission",
)
_TRUST: Final = Look(re.compile(r"^.*[Dd]o you trust.*\?.*$", re.MULTILINE), "blocked", "question")

MANIFESTS: Final[Mapping[str, tuple[Look, ...]]] = {
    "": (_AUTH, _ASKS),
    **dict.fromkeys(("claude", "codex", "gemini", "cursor", "opencode", "aider"), (_TRUST, _PERMISSION, _AUTH, _ASKS)),
}
"""Looks of the questions of programs, by manifest; that of no name is every program's. The first that fits counts."""

_BELOW: Final[Mapping[str, re.Pattern[str]]] = {"codex": re.compile(r"^ *\$ (\S.*(?:\n +\S.*)*)$", re.MULTILINE)}
_ABOVE: Final[Mapping[str, re.Pattern[str]]] = {"gemini": re.compile(r"^[ │]*\? +(\S.*?)[ │]*$", re.MULTILINE)}
"""Subjects of questions, by manifest, where a program writes them on rows of their own below or above: a command, a file."""

_DIALOG: Final = re.compile(r"^[ │]*(\S.*\?)[ │]*$(?=(?:\n.*){0,8}?\n[ │]*[❯›●>] \S)", re.MULTILINE)

LAST_ROWS: Final = 24
"""Rows of the screen that are looked at, from its last one."""


def look(manifest: str, rows: list[str]) -> tuple[Phase, Reason, str] | None:
    """Return what a screen's last rows show, and the last row that shows it (an answered question may stand above), with its subject."""
    shown = "\n".join(rows[-LAST_ROWS:])
    for one in MANIFESTS.get(manifest, MANIFESTS[""]):
        if found := list(one.pattern.finditer(shown)):
            asks = found[-1]
            subject = _subject(manifest, shown[: asks.start()], shown[asks.end() :])
            return one.phase, one.reason, " ".join([asks.group().strip(" │┃|>❯╭╰─"), *subject])
    return None


def dialog(rows: list[str]) -> str:
    """Return the question of an open dialog: a row that ends with a question mark, above a choice that a pointer stands before; empty if
    there is none. Prose above a prompt looks like that, too, so it is for programs that say that they ask."""
    found = _DIALOG.findall("\n".join(rows[-LAST_ROWS:]))
    return str(found[-1]) if found else ""


def _subject(manifest: str, above: str, below: str) -> list[str]:
    """Return the subject of a question between these rows; an empty list if there is none."""
    after = [match[1] for match in _BELOW[manifest].finditer(below)][:1] if manifest in _BELOW else []
    before = [match[1] for match in _ABOVE[manifest].finditer(above)][-1:] if manifest in _ABOVE else []
    return [*before, *after]
