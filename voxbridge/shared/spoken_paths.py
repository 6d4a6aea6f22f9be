"""Paths as people say them: "core dot py", "source slash user service dot pie". Pure.

Owns the check of a path's text and the comparison of what was said with the names that exist. Does not own the files.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

PATH_LIMIT: Final = 1_024
"""Characters of a path."""

NAME_LIMIT: Final = 255
"""Bytes of one name in a path."""

_SIGNS: Final = {"dot": ".", "point": ".", "period": ".", "slash": "/", "underscore": "_", "dash": "-", "hyphen": "-", "minus": "-"}
_SIGN: Final = re.compile(rf"\s+({'|'.join(_SIGNS)})(?:\s+|$)", re.IGNORECASE)
_FIRST: Final = re.compile(r"^(?:the\s+)?(?:file|folder|directory|module)\s+(?:called\s+|named\s+)?", re.IGNORECASE)
_ENDINGS: Final = {".pie": ".py", ".python": ".py", ".pi": ".py", ".javascript": ".js", ".typescript": ".ts", ".markdown": ".md"}
_JOINTS: Final = re.compile(r"[\s_\-]+")


def parts_of(text: str) -> tuple[str, ...]:
    """Return the names of a path, with `.` and `..` applied. Raises an error for one that leads out, is too long or cannot be shown."""
    if len(text) > PATH_LIMIT:
        message = f"The path has {len(text):,} characters; it may have {PATH_LIMIT:,}. Say a shorter one."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="path", limit=PATH_LIMIT)
    if not text.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The path is empty. Name a file or a folder.", field="path")
    if not text.isprintable():
        message = "The path has characters that cannot be shown, such as NUL or a line break. Name a file or a folder."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path")
    parts: list[str] = []
    for name in text.strip().split("/"):
        if name in ("", "."):
            continue
        if name == "..":
            if not parts:
                raise VoxbridgeError(Code.PERMISSION_DENIED, "The path leads out of the workspace. Name a file below it.", field="path")
            parts.pop()
        elif len(name.encode()) > NAME_LIMIT:
            message = f"A name in the path is longer than {NAME_LIMIT} bytes. Say a shorter one."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path", limit=NAME_LIMIT)
        else:
            parts.append(name)
    return tuple(parts)


def written(said: str) -> str:
    """Return a spoken path as it may be written: signs that were said as words become signs."""
    text = _FIRST.sub("", said.strip())
    text = _SIGN.sub(lambda found: _SIGNS[found[1].lower()], f" {text}").strip()
    stem, dot, ending = text.rpartition(".")
    return stem + _ENDINGS.get(f".{ending.lower()}", f".{ending}") if dot else text


def near(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the indexes of the paths that end with the wanted names. Differences in case, joints and ending count if no path is equal."""
    for form in (str, str.casefold, _squashed, _stem):
        ending = [form(part) for part in wanted]
        found = [
            index for index, name in enumerate(names) if (parts := name.split("/")) and [form(p) for p in parts[-len(ending) :]] == ending
        ]
        if found:
            shortest = [index for index in found if len(names[index].split("/")) == len(wanted)]
            return shortest if len(shortest) == 1 and form is not _stem else found
    return []


def suggestions(said: str, names: Sequence[str], *, count: int) -> list[str]:
    """Return the paths whose last name looks most like what was said."""
    wanted = _squashed(written(said).rpartition("/")[2])
    lasts: dict[str, str] = {}
    for name in names:
        lasts.setdefault(_squashed(name.rpartition("/")[2]), name)
    return [lasts[found] for found in difflib.get_close_matches(wanted, list(lasts), n=count, cutoff=0.6)]


def _squashed(name: str) -> str:
    return _JOINTS.sub("", name).casefold()


def _stem(name: str) -> str:
    """Return a name without its ending, as it is often said."""
    return _squashed(name.partition(".")[0] or name)
