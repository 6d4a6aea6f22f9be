"""Gate: a docstring names the thing or opens with a verb; none opens with a clause ("What was heard", "Whether it runs"). The text behind a
value is one, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
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
    for line, text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
        words = text.split()
        if words and words[0].strip(".,:;") in CLAUSES:
            found.append(f"{line} has a docstring that opens with {words[0]!r}; open it with a verb, or name the thing.")
    return found


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring with its line: of modules, classes and functions, and of values."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            yield (1 if isinstance(node, ast.Module) else node.lineno), ast.get_docstring(node) or ""
            for value, behind in pairwise(node.body):
                if (
                    isinstance(value, ast.Assign | ast.AnnAssign)
                    and isinstance(behind, ast.Expr)
                    and isinstance(behind.value, ast.Constant)
                    and isinstance(behind.value.value, str)
                ):
                    yield behind.lineno, behind.value.value
