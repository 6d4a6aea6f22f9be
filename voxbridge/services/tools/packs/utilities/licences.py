"""Licences that the files of a folder declare: in licence files, in SPDX lines, and in manifests."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import PurePosixPath
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, count
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.workspace import Workspace

FILES_LIMIT: Final = 500
"""Files that are opened to look for a licence."""
BYTES_LIMIT: Final = 256 * 1024
"""Bytes of a file that is read; a larger one says nothing about its licence in a place that is looked at."""
_FILE: Final = re.compile(r"(?i)(?:licen[cs]e|copying|unlicense)(?:[-._].*)?")
_SPDX: Final = re.compile(r"SPDX-License-Identifier:[ \t]{0,8}([A-Za-z0-9.+() -]{2,100})")
_TEXTS: Final = (
    ("AGPL-3.0", ("gnu affero general public license", "version 3")),
    ("LGPL-3.0", ("gnu lesser general public license", "version 3")),
    ("LGPL-2.1", ("gnu lesser general public license", "version 2.1")),
    ("GPL-3.0", ("gnu general public license", "version 3")),
    ("GPL-2.0", ("gnu general public license", "version 2")),
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("MPL-2.0", ("mozilla public license", "2.0")),
    ("Unlicense", ("this is free and unencumbered software",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software",)),
    ("MIT", ("permission is hereby granted, free of charge",)),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "endorse or promote")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms",)),
)
_MANIFESTS: Final = frozenset({"package.json", "pyproject.toml", "Cargo.toml"})


def of_folder(workspace: Workspace, folder: str) -> dict[str, Any]:
    """Return the licences that files of a folder declare, and where. Blocks."""
    below = workspace.find(folder, kind="folder") if folder else None
    listing = workspace.listing(below)
    found: list[dict[str, str]] = []
    opened = 0
    for place in listing.places:
        if opened >= FILES_LIMIT:
            break
        opened += 1
        try:
            text = workspace.read_text(place, limit=BYTES_LIMIT)
        except VoxbridgeError:  # larger, no text, or gone meanwhile: it declares nothing that is looked at
            continue
        found += [{"licence": licence, "file": place.name} for licence in declared(place.name, text)]
    complete = listing.complete and opened == len(listing.places)
    counts = Counter(one["licence"] for one in found)
    licences = [{"licence": licence, "files": files} for licence, files in counts.most_common(LISTED_LIMIT)]
    named = ", ".join(licence for licence, _ in counts.most_common(3))
    spoken = f"I found {count(len(counts), 'licence')}: {named}." if licences else "No file there declares a licence."
    return {
        "licences": licences,
        "where": found[:LISTED_LIMIT],
        "count": len(found),
        "files": opened,
        "complete": complete,
        "spoken": spoken[:300],
    }


def declared(name: str, text: str) -> list[str]:
    """Return the licences that one file declares, as SPDX names where they are known."""
    base = PurePosixPath(name).name
    if base in _MANIFESTS:
        return [licence] if (licence := _manifest(base, text)) else []
    spdx = _SPDX.search(text[:4_096])
    if spdx:
        return [spdx[1].strip().removesuffix("*").strip()]
    if not _FILE.fullmatch(base):
        return []
    words = " ".join(text.lower().split())[:8_000]
    return [next((licence for licence, marks in _TEXTS if all(mark in words for mark in marks)), "unknown")]


def _manifest(name: str, text: str) -> str:
    try:
        value: Any = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    if name != "package.json":
        value = value.get("project" if name == "pyproject.toml" else "package")
    licence = value.get("license") if isinstance(value, dict) else None
    if isinstance(licence, dict):
        licence = licence.get("type") or licence.get("text")
    return licence.strip()[:100] if isinstance(licence, str) else ""
