"""Gate: no module is longer than 500 lines."""

from __future__ import annotations

from typing import Final

from deploy.gates import ROOT, modules

LIMIT: Final = 500
_SCRIPTS: Final = ("client", "studio")
_SUFFIXES: Final = {".ts", ".tsx", ".mjs", ".css"}
_MADE: Final = {"dist", "node_modules"}


def problems() -> list[str]:
    """Return one problem for each module above the limit, with its length."""
    files = modules()
    for folder in _SCRIPTS:
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in _SUFFIXES and not _MADE & set(path.parts)]
    long = {path: lines for path in files if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LIMIT}
    return [f"{path.relative_to(ROOT)} has {lines} lines; split it below {LIMIT}." for path, lines in long.items()]
