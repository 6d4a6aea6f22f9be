"""Gate: docs/configuration.md is the output of `voxbridge config --markdown`."""

from __future__ import annotations

from deploy.gates import ROOT
from voxbridge.commands.settings import document
from voxbridge.shared.config import as_markdown


def problems() -> list[str]:
    """Return one problem when the page differs from the code."""
    page = ROOT / "docs" / "configuration.md"
    same = page.is_file() and page.read_text(encoding="utf-8") == document(as_markdown())
    return [] if same else ["docs/configuration.md differs: run `voxbridge config --markdown > docs/configuration.md`."]
