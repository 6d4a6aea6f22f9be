"""Gate: modules, functions and lists of parameters stay short enough to read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.gates import ROOT, modules

FOLDERS: Final = ("voxbridge", "bench", "deploy", "tests", "client", "studio")

LIMIT: Final = 500
"""Lines of a module."""

LONG: Final = 400
"""Lines above which a module is warned of: its next change is a chance to divide it."""

FUNCTION_LIMIT: Final = 60
"""Lines of a function of the product, of bench/ and of deploy/."""

PARAMETERS_LIMIT: Final = 7
"""Parameters of such a function beside `self`. A command of the command line has one for each of its options."""

_SUFFIXES: Final = {".ts", ".tsx", ".mjs", ".css"}
_MADE: Final = {"dist", "node_modules"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def problems() -> list[str]:
    """Return one problem for each module, function and list of parameters above its limit."""
    found = [f"{name} has {lines} lines; split it below {LIMIT}." for name, lines in sorted(_lengths()) if lines > LIMIT]
    for path in modules("voxbridge", "bench", "deploy"):
        found += [f"{path.relative_to(ROOT)}:{problem}" for problem in of(path)]
    return found


def warnings() -> list[str]:
    """Return one line for each module that is near its limit."""
    return [f"{name} has {lines} lines; {LIMIT} is the most." for name, lines in sorted(_lengths()) if LONG < lines <= LIMIT]


def _lengths() -> Iterator[tuple[str, int]]:
    for folder in FOLDERS:
        scripts = [path for path in (ROOT / folder).rglob("*") if path.suffix in _SUFFIXES and not _MADE & set(path.parts)]
        for path in modules(folder) + scripts:
            yield path.relative_to(ROOT).as_posix(), len(path.read_text(encoding="utf-8").splitlines())


def of(path: Path) -> Iterator[str]:
    """Return the functions of a module that are too long or take too much."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, _Function):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LIMIT:
            yield f"{node.lineno} {node.name} has {lines} lines; split it below {FUNCTION_LIMIT}."
        taken = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if one.arg not in ("self", "cls")]
        if len(taken) > PARAMETERS_LIMIT and not _is_command(node):
            yield f"{node.lineno} {node.name} takes {len(taken)} parameters; group them, {PARAMETERS_LIMIT} is the most."


def _is_command(node: _Function) -> bool:
    return any(ast.unparse(one).startswith("click.command") or ".command(" in ast.unparse(one) for one in node.decorator_list)
