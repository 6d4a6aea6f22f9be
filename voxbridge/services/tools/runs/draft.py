"""A draft of a macro from calls that were just made: "save what I just did". Pure.

Calls that ended badly are left out, and reads whose result no later step used. A value that equals one of an earlier result becomes a
pipe to it, if it is distinct enough for that to be no accident. A person sees and hears the draft before it is saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from voxbridge.services.tools.runs.checks import HIDDEN
from voxbridge.services.tools.runs.document import STEPS_LIMIT, Document, parse
from voxbridge.shared.agents.functions import Effect
from voxbridge.shared.errors import Code, VoxbridgeError

VALUES_LIMIT: Final = 2_000
"""Values of one result that are compared."""

DEPTH_LIMIT: Final = 6
"""Levels of a result that are compared, and that a pipe leads down."""

TEXT_FROM: Final = 3
"""Characters of the shortest text that becomes a pipe."""

NUMBER_FROM: Final = 10
"""Smallest number, without its sign, that becomes a pipe: smaller ones are equal by accident."""

ABOUT: Final = HIDDEN | {"cancel_task", "list_macros", "list_tasks", "list_tools", "list_workflows"}
"""Functions that are about functions, and so no part of what was done."""

_WORDS: Final = ("announce", "spoken")
"""Parts of a result that are made for the ear: a pipe leads to another part of the same value, if there is one."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was made. `result` is None for one that did not end well."""

    name: str
    arguments: Mapping[str, Any]
    result: Any = None
    effect: Effect = "write"


def draft(name: str, calls: Sequence[Past], *, trigger: str = "") -> Document:
    """Return a macro that makes these calls again, oldest first. Raises `NOT_FOUND` when nothing is left of them."""
    done = [call for call in calls if call.result is not None and call.name not in ABOUT][-STEPS_LIMIT:]
    linked = [_linked(call.arguments, done[:number]) for number, call in enumerate(done)]
    kept = _kept(done, linked)
    if not kept:
        raise VoxbridgeError(Code.NOT_FOUND, "Nothing was done just now that a macro could repeat.", field="steps")
    ids = {number: f"step{place}" for place, number in enumerate(kept, 1)}
    steps = [
        {"id": ids[number], "call": done[number].name, "arguments": _written(linked[number], ids)}
        for number in kept
    ]  # fmt: skip
    return parse({"name": name, "steps": steps, "trigger": trigger})


class _Link(msgspec.Struct, frozen=True):
    """The value at a path in the result of an earlier call."""

    call: int
    path: tuple[str, ...]


def _kept(done: Sequence[Past], linked: Sequence[Any]) -> list[int]:
    """Return the numbers of the calls that stay: those that changed something, and the reads that they, or reads that stay, rest on."""
    needed = {number for number, call in enumerate(done) if call.effect != "read"} or set(range(len(done)))
    for number in range(len(done) - 1, -1, -1):
        if number in needed:
            needed |= {link.call for link in _links(linked[number])}
    return sorted(needed)


def _linked(value: Any, earlier: Sequence[Past]) -> Any:
    """Return a value with links in place of what equals a part of an earlier result."""
    link = _link(value, earlier)
    if link is not None:
        return link
    if isinstance(value, Mapping):
        return {name: _linked(one, earlier) for name, one in value.items()}
    if isinstance(value, list):
        return [_linked(one, earlier) for one in value]
    return value


def _link(value: Any, earlier: Sequence[Past]) -> _Link | None:
    if not _is_distinct(value):
        return None
    for number in range(len(earlier) - 1, -1, -1):
        found = [path for path, one in _parts(earlier[number].result) if type(one) is type(value) and one == value]
        if found:
            return _Link(number, min(found, key=lambda path: (path[-1] in _WORDS, len(path), path)))
    return None


def _is_distinct(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.strip()) >= TEXT_FROM
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return abs(value) >= NUMBER_FROM
    return bool(value)


def _parts(result: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the parts of a result with their paths, level by level, as far as a pipe can lead."""
    level: list[tuple[tuple[str, ...], Any]] = [((), result)]
    left = VALUES_LIMIT
    for _ in range(DEPTH_LIMIT):
        following: list[tuple[tuple[str, ...], Any]] = []
        for path, value in level:
            inner: Iterator[tuple[str, Any]] = iter(())
            if isinstance(value, Mapping):
                inner = ((name, one) for name, one in value.items() if _is_plain(name))
            elif isinstance(value, list):
                inner = ((str(number), one) for number, one in enumerate(value))
            for name, one in inner:
                left -= 1
                if left < 0:
                    return
                yield (*path, name), one
                following.append(((*path, name), one))
        level = following


def _is_plain(name: str) -> bool:
    """Tell whether a pipe can name this part."""
    return name.isascii() and name.replace("_", "").replace("-", "").isalnum() and len(name) <= 32


def _links(value: Any) -> Iterator[_Link]:
    if isinstance(value, _Link):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _links(one)
    elif isinstance(value, list):
        for one in value:
            yield from _links(one)


def _written(value: Any, ids: Mapping[int, str]) -> Any:
    """Return a value with pipes for its links; other texts stand for themselves, whatever they hold."""
    if isinstance(value, _Link):
        return f"${{{'.'.join(('steps', ids[value.call], 'result', *value.path))}}}"
    if isinstance(value, Mapping):
        return {name: _written(one, ids) for name, one in value.items()}
    if isinstance(value, list):
        return [_written(one, ids) for one in value]
    return value.replace("${", "$${") if isinstance(value, str) else value
