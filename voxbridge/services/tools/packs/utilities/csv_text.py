"""The rows of a CSV text: which of its lines are the table, and which stand around it.

Spreadsheets put titles above a table, and totals and sources below it. Counted as rows, they make every answer about the table wrong; so
they are left out, and said. A row within the table is never left out. Pure.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Final, Literal, NamedTuple

from voxbridge.services.tools.packs.utilities.bounds import count, refused

_DELIMITERS: Final = (",", ";", "\t", "|")
_TOTAL: Final = re.compile(
    r"(?:grand\s+|sub-?\s?)?(?:totals?|sums?|averages?|summen?|gesamt\w*|insgesamt|zwischensumme|durchschnitt|mittelwert|somme|"
    r"moyenne|totale|totaux|suma|promedio|итого|всего|合计|合計|总计|總計|小计|小計)\b\s*:?",
    re.IGNORECASE,
)
_SHOWN: Final = 200
"""Characters of a line that are told."""

Why = Literal["title", "total", "note"]


class Outside(NamedTuple):
    """A line that is not of the table: its number from 1, why, and what it says."""

    line: int
    why: Why
    text: str


class Table(NamedTuple):
    """A table: names of the columns, rows of as many cells, lines that were left out, and how many rows had other numbers of cells."""

    header: list[str]
    rows: list[list[str]]
    outside: list[Outside]
    ragged: int
    named: bool
    """False if the text has no line of names, and they were made."""


def read(text: str, *, strict: bool = True) -> Table:
    """Return the table of a text; short rows are filled up. Raises `INVALID_ARGUMENT` for one that has none, and, where `strict`, for a row
    with more cells than names; else these are cut off."""
    lines = _lines(text)
    if not lines:
        raise refused("A table has a line of names and at least one row.", "table")
    width = _width(lines)
    first = next(place for place, (_, row) in enumerate(lines) if len(row) == width and (width == 1 or sum(map(bool, row)) > 1))
    last = len(lines) - 1
    below: list[Outside] = []
    while last > first + 1 and (why := _why(lines[last][1], width)):
        below.insert(0, Outside(lines[last][0], why, _shown(lines[last][1])))
        last -= 1
    outside = [Outside(line, "title", _shown(row)) for line, row in lines[:first]] + below
    named = not any(_is_number(cell) for cell in lines[first][1])
    header = lines[first][1] if named else [f"column{place}" for place in range(width)]
    body = lines[first + named : last + 1]
    if not body:
        raise refused("A table has a line of names and at least one row.", "table")
    rows = [_fitted(line, row, width, strict) for line, row in body]
    return Table(_distinct(header), rows, outside, sum(len(row) != width for _, row in body), named)


def told(table: Table) -> str:
    """Return a sentence on what was left out of a table or made for it; empty if nothing was."""
    kinds = Counter(one.why for one in table.outside)
    parts = [count(kinds[why], why) for why in ("title", "total", "note") if kinds[why]]
    said = f" I left out {_listed(parts)}, which {'is' if len(table.outside) == 1 else 'are'} not part of the table." if parts else ""
    if table.ragged:
        said += f" {count(table.ragged, 'row')} had too few or too many cells."
    return said + ("" if table.named else " It has no line of names.")


def _lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines that hold anything, by the delimiter that makes the most of them alike."""
    parsed: list[tuple[int, str, list[tuple[int, list[str]]]]] = []
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=delimiter, strict=True)
        try:
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]
        except csv.Error as error:
            parsed.append((-1, str(error)[:100], []))
            continue
        width = _width(rows) if rows else 0
        parsed.append((sum(len(row) == width for _, row in rows) if width > 1 else 0, "", rows))
    best = max(parsed, key=lambda one: one[0])
    if best[0] < 0 or (parsed[0][0] < 0 and best[0] == 0):
        raise refused(f"This is not valid CSV: {parsed[0][1]}.", "table")
    return best[2]


def _width(lines: list[tuple[int, list[str]]]) -> int:
    """Return the width of the table: that of most lines, and of two that are as many, the larger one."""
    widths = Counter(len(row) for _, row in lines)
    return max(widths, key=lambda width: (widths[width], width))


def _why(row: list[str], width: int) -> Why | None:
    """Tell what a line below a table is, if not a row of it: a total by its word, a note by standing alone in its row."""
    filled = [cell for cell in row if cell]
    if width > 1 and len(filled) > 1:
        return "total" if _TOTAL.fullmatch(filled[0]) else None
    alone = width > 1 and row[0] and not _is_number(row[0])
    return "note" if alone and (len(row) < width or ":" in row[0]) else None


def _fitted(line: int, row: list[str], width: int, strict: bool) -> list[str]:
    if strict and any(row[width:]):
        message = f"Line {line} has {len(row)} cells, and the table {width}. A cell with a comma of its own is put in quotes."
        raise refused(message, "table")
    return (row + [""] * width)[:width]


def _distinct(header: list[str]) -> list[str]:
    """Return names of columns that are all there, and each once."""
    names: dict[str, None] = {}
    for place, cell in enumerate(header):
        name, number = cell or f"column{place}", 1
        while (known := name if number == 1 else f"{name}_{number}").casefold() in {one.casefold() for one in names}:
            number += 1
        names[known] = None
    return list(names)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[$€£]?\s?\d[\d.,\s]*%?", cell) is not None


def _shown(row: list[str]) -> str:
    return ", ".join(cell for cell in row if cell)[:_SHOWN]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
