"""Gate: docs/functions.md is the output of `voxbridge functions --markdown`."""

from __future__ import annotations

from deploy.gates import ROOT
from voxbridge.commands.functions import page


def problems() -> list[str]:
    """Return one problem when the page differs from the code."""
    written = ROOT / "docs" / "functions.md"
    same = written.is_file() and written.read_text(encoding="utf-8") == page()
    return [] if same else ["docs/functions.md differs: run `voxbridge functions --markdown > docs/functions.md`."]
