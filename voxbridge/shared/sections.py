"""Sections of Markdown, each with the path of its headings. Pure.

Owns where a section begins and ends. Does not own the files, nor which section answers a question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

TEXT_LIMIT: Final = 20_000
"""Characters of a section that are kept."""

HEADING_LIMIT: Final = 1_000
"""Characters of a line that may be a heading."""

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its file, its headings from the outermost in, the line of its heading (from 1), and its text."""

    file: str
    headings: tuple[str, ...]
    line: int
    text: str


def sections(file: str, text: str, *, limit: int = TEXT_LIMIT, bare: bool = False) -> list[Section]:
    """Return the sections of a file that have a text, of which `limit` characters are kept; the one before the first heading is named after
    the file. With `bare`, a heading with nothing below it is a section whose text is the heading."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    began, fence = 1, ""

    def close(level: int = 0) -> None:
        body = "\n".join(lines).strip()[:limit]
        if bare and not body and path and level <= path[-1][0]:
            body = path[-1][1]
        if body:
            headings = tuple(name for _, name in path) or (file.rpartition("/")[2].removesuffix(".md"),)
            found.append(Section(file, headings, began, body))
        lines.clear()

    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or (mark[1].startswith(fence) and not line.strip().strip(fence[0]))):
            fence = "" if fence else mark[1]
        may_be = not fence and mark is None and len(line) <= HEADING_LIMIT
        heading = _HEADING.fullmatch(line) if may_be else None
        if heading is None:
            lines.append(line)
            continue
        level = len(heading[1])
        close(level)
        path = [(depth, name) for depth, name in path if depth < level] + [(level, (heading[2] or "").strip()[:200])]
        began = number
    close()
    return found
