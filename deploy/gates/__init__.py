"""Project rules that no linter checks. Each gate is a module with `problems() -> list[str]`; an empty list means that it passes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("voxbridge", "deploy", "tests", "bench")


def modules(*folders: str) -> list[Path]:
    """Return every Python file of the project below these folders."""
    return [path for folder in folders or CODE for path in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in path.parts]
