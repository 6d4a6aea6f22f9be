"""Conditions of steps: comparisons of pipes and plain values, joined by `and`, `or` and `not`.

    ${prev.count} > 3 and "api" in ${steps.list.result.names}
    exists ${steps.find.result.id} or ${input.force} == true

A pipe's value is bound to a name and never becomes part of the text, so no value can change what is compared. Nothing is called, no
attribute or item is read, nothing is computed. Owns the syntax and its bounds. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
import simpleeval

from voxbridge.services.tools.runs.pipes import Missing, Part, Pipe, Resolver, split
from voxbridge.shared.errors import Code, VoxbridgeError

TERMS_LIMIT: Final = 20
"""Comparisons and values of one condition."""

CONDITION_CHARACTERS: Final = 500

_PREFIX: Final = "pipe_"
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_NODES: Final = (ast.Expression, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Load)
_OPERATORS: Final = {kind: simpleeval.DEFAULT_OPERATORS[kind] for kind in (*_COMPARISONS, ast.Not, ast.USub)}


class Condition(msgspec.Struct, frozen=True, eq=False):
    """A condition that was read: its expression, and the pipes behind its names; those asked for by `exists` alone are in `asked`."""

    expression: ast.expr
    text: str
    pipes: Mapping[str, Pipe]
    asked: frozenset[str]


@lru_cache(maxsize=256)
def read(text: str) -> Condition:
    """Return the condition that a text describes. Raises `INVALID_ARGUMENT` and `TOO_LARGE`."""
    if len(text) > CONDITION_CHARACTERS:
        message = f"A condition has at most {CONDITION_CHARACTERS} characters."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="when", limit=CONDITION_CHARACTERS)
    source, pipes, asked = _named(split(text, field="when"))
    if len(pipes) > TERMS_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"A condition has at most {TERMS_LIMIT} terms.", field="when", limit=TERMS_LIMIT)
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _invalid(text, "it is not a comparison") from error
    _check(tree, text, pipes)
    return Condition(tree.body, source, pipes, asked)


def holds(text: str, resolver: Resolver) -> bool:
    """Return whether a condition holds. Raises `Missing` for a pipe without a value, `INVALID_ARGUMENT` for what cannot be compared."""
    condition = read(text)

    def value_of(node: ast.Name) -> Any:
        pipe = condition.pipes.get(node.id)
        if pipe is None:
            return _WORDS[node.id]
        if node.id not in condition.asked:
            return resolver.pipe(pipe)
        try:
            resolver.pipe(msgspec.structs.replace(pipe, default=None))
        except Missing:
            return False
        return True

    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions={}, names=value_of)
    try:
        return bool(evaluator.eval(condition.text, previously_parsed=condition.expression))
    except (TypeError, RecursionError, simpleeval.InvalidExpression) as error:
        raise _invalid(text, f"its values cannot be compared ({error})") from error


def _named(parts: list[Part]) -> tuple[str, dict[str, Pipe], frozenset[str]]:
    """Return the text with a name for each pipe, the pipes by name, and the names whose existence alone is asked for."""
    source = ""
    pipes: dict[str, Pipe] = {}
    asked: set[str] = set()
    for part in parts:
        if isinstance(part, str):
            if _PREFIX in part:
                raise _invalid(part, f"it names {_PREFIX!r}")
            source += part
            continue
        name = f"{_PREFIX}{len(pipes)}"
        pipes[name] = part
        before = source.rstrip()
        if before.endswith("exists") and not before[:-6][-1:].isidentifier():
            source = before[: -len("exists")]
            asked.add(name)
        source += f" {name} "
    return source, pipes, frozenset(asked)


def _check(tree: ast.Expression, text: str, pipes: Mapping[str, Pipe]) -> None:
    terms = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            terms += 1
            if not isinstance(node.value, str | int | float | bool | None):
                raise _invalid(text, "it holds a value that is not text, number, true, false or null")
            if isinstance(node.value, str) and _PREFIX in node.value:
                raise _invalid(text, "a pipe stands within quotes; write it without them")
        elif isinstance(node, ast.Name):
            terms += 1
            if node.id not in pipes and node.id not in _WORDS:
                raise _invalid(text, f"{node.id!r} is not a pipe; texts stand within quotes")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if not isinstance(node.operand, ast.Constant) or not isinstance(node.operand.value, int | float):
                raise _invalid(text, "a minus stands before a number only")
        elif not isinstance(node, (*_NODES, *_COMPARISONS)):
            raise _invalid(text, "only ==, !=, <, <=, >, >=, in, exists, and, or, not join values")
    if terms > TERMS_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"A condition has at most {TERMS_LIMIT} terms.", field="when", limit=TERMS_LIMIT)


def _invalid(text: str, why: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"The condition {text[:60]!r} cannot be used: {why}.", field="when")
