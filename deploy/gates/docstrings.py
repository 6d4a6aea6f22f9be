"""Gate: a docstring names the thing or opens with a verb; none opens with a clause ("What was heard", "Whether it runs")."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from deploy.gates import ROOT, modules

CLAUSES: Final = frozenset(
    {"How", "It", "That", "There", "They", "Those", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"}
)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def problems() -> list[str]:
    """Return one problem for each docstring that opens with a clause."""
    return [f"{path.relative_to(ROOT)}:{problem}" for path in modules() for problem in of(path)]


def of(path: Path) -> list[str]:
    """Return the problems of one file, each with its line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, _DOCUMENTED):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0].strip(".,:;") in CLAUSES:
                line = 1 if isinstance(node, ast.Module) else node.lineno
                found.append(f"{line} has a docstring that opens with {words[0]!r}; open it with a verb, or name the thing.")
    return found
