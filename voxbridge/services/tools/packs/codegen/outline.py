"""The outline of a Python module, read by `ast` and never by importing. Runs in a child process: the text is anybody's.

Owns what counts as public. Does not own the tests that are made of it.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any, Final

from voxbridge.shared.errors import Code, VoxbridgeError

NAMES_LIMIT: Final = 100
"""Functions and classes that tests are made for."""

METHODS_LIMIT: Final = 30
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def outline(text: str, name: str) -> dict[str, Any]:
    """Return `functions` and `classes` of a module, each with what a test can check. Raises `INVALID_ARGUMENT` for what is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's text
            tree = ast.parse(text)
    except SyntaxError as error:
        raise _unreadable(name, f"line {error.lineno} is not valid Python") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise _unreadable(name, "it is nested too deeply, or no text") from error
    functions: dict[str, dict[str, Any]] = {}
    classes: dict[str, dict[str, Any]] = {}
    for node in tree.body:
        if isinstance(node, _Function) and _is_public(node.name):
            classes.pop(node.name, None)
            functions[node.name] = _function(node)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            functions.pop(node.name, None)
            methods = [one.name for one in node.body if isinstance(one, _Function) and _is_public(one.name)]
            classes[node.name] = {"name": node.name, "methods": list(dict.fromkeys(methods))[:METHODS_LIMIT], "examples": _examples(node)}
    if not functions and not classes:
        message = f"{name} has no public functions or classes to test. Name another file."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path")
    total = len(functions) + len(classes)
    kept = list(functions.values())[:NAMES_LIMIT]
    return {"functions": kept, "classes": list(classes.values())[: NAMES_LIMIT - len(kept)], "total": total}


def _function(node: _Function) -> dict[str, Any]:
    arguments = node.args
    return {
        "name": node.name,
        "parameters": [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)],
        "coroutine": isinstance(node, ast.AsyncFunctionDef),
        "plain": not node.decorator_list,
        "starred": arguments.vararg is not None or arguments.kwarg is not None,
        "examples": _examples(node),
    }


def _examples(node: _Function | ast.ClassDef) -> bool:
    return ">>> " in (ast.get_docstring(node) or "")


def _is_public(name: str) -> bool:
    return not name.startswith("_") and name.isascii()


def _unreadable(name: str, why: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} cannot be read: {why}. Mend it, or name another file.", field="path")
