"""Rules of the house that no linter knows. Each gate is a module with `problems() -> list[str]`; no problems means it passes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("voxbridge", "deploy", "tests", "bench")


def modules(*folders: str) -> list[Path]:
    """Every Python file of our own below these folders."""
    return [path for folder in folders or CODE for path in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in path.parts]
