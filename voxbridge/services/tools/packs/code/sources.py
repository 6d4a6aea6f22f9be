"""The source files of a path: read from the workspace within bounds, and named as they are told.

Owns which files are taken and how many. Does not own what is said of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.workspace import Workspace

FILES_LIMIT: Final = 300
"""Files of a folder that one call looks at."""

TOTAL_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of all files that one call looks at."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts by path. `left_out` counts files beyond a limit or that are no text; `whole` is false if a listing was cut."""

    name: str
    texts: dict[str, str]
    left_out: int
    is_file: bool


def gather(workspace: Workspace, path: str, suffixes: tuple[str, ...]) -> Sources:
    """Return the files that a spoken or written path means: one, or those of a folder with these endings. Blocks.

    Raises as `Workspace.find`, `INVALID_ARGUMENT` for a file of another kind, and `NOT_FOUND` for a folder without one.
    """
    place = workspace.find(path)
    if place.kind == "file":
        if not place.name.endswith(suffixes):
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{place.name} is not {_kinds(suffixes)}. Name another file.", field="path")
        return Sources(place.name, {place.name: workspace.read_text(place)}, 0, True)
    listing = workspace.listing(place, suffixes=suffixes)
    texts: dict[str, str] = {}
    left_out, total = 0, 0
    for one in listing.places:
        try:
            text = workspace.read_text(one) if len(texts) < FILES_LIMIT and total < TOTAL_LIMIT else None
        except VoxbridgeError:  # no UTF-8, too large, or gone since it was listed
            text = None
        if text is None or total + len(text) > TOTAL_LIMIT:
            left_out += 1
        else:
            total += len(text)
            texts[one.name] = text
    if not texts:
        raise VoxbridgeError(Code.NOT_FOUND, f"{place.name} has no file that is {_kinds(suffixes)}. Name another folder.", field="path")
    return Sources(place.name, texts, left_out + (not listing.complete), False)


def some(found: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return a list cut to a number of entries, with how many there are."""
    return {"count": len(found), "found": found[:limit], **({"not_shown": len(found) - limit} if len(found) > limit else {})}


def _kinds(suffixes: tuple[str, ...]) -> str:
    return "Python" if suffixes == (".py",) else "source code in a known language"
