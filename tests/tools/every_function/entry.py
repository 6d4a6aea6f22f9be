"""Entries of the table: a function, its arguments, and what it answers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.tools.every_function.doors import Scope

Check = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, kw_only=True)
class Before:
    """A call that must come first, in the same session."""

    name: str
    arguments: dict[str, Any]
    scope: Scope = "once"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A function with arguments that it takes, and what it answers to them.

    `@@` in a text stands for a word that is another one for each door, and a word in braces such as `{server}` for what the fixture says.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    wanted: Mapping[str, Any] = field(default_factory=dict)
    """Values of the result."""

    check: Check | None = None
    """Further check of the result."""

    varies: tuple[str, ...] = ()
    """Names in the result whose values differ from call to call; all others are the same by each door."""

    before: tuple[Before, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the call writes into the workspace, each with a part of its text."""

    step: bool = True
    """False for a function that no step of a macro may call."""

    alone: str = ""
    """Functions of one word are asked one after the other, because they change what the others tell."""

    hostile: tuple[tuple[dict[str, Any], str], ...] = ()
    """Arguments of its own kind of harm, each with the code of the refusal; an empty one where the result is harmless."""
