"""The engine that runs JavaScript, behind a seam: what loads scripts, takes a message and runs what is to be run.

Owns the one library that is used (quickjs-ng, by its extension module: the package around it starts a thread, and a process with threads
does not fork safely). Does not own the process, whose limits hold whatever an engine does. Nothing lasts here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, Protocol

import _quickjs

SCRIPTS: Final = ("vendor/web.js", "globals.js", "run.js")
"""Scripts of the context that runs handlers; the value of the last is its entry."""

CHECKING: Final = ("vendor/acorn.js", "check.js")
"""Scripts of the context that reads handlers when they are configured."""

MEMORY_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that the objects of a context may hold."""

STACK_LIMIT: Final = 1024 * 1024
RANDOM_LIMIT: Final = 65_536
_NAMES: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})


class Engine(Protocol):
    """A context with its scripts loaded."""

    def call(self, what: str, text: str = "") -> Any:
        """Call its entry, and return what that returns: a text, a number, a truth value or nothing."""

    def run(self) -> None:
        """Run what is to be run, until nothing is."""


class Failed(Exception):
    """Error that a script did not catch: memory or the stack ran out, most often."""


# The last is what the library raises where memory ran out in a function that a script called.
_FAULTS: Final = (_quickjs.JSException, _quickjs.StackOverflow, MemoryError, SystemError)


class QuickJs:
    """A context of quickjs-ng. `send` gets each message of its scripts."""

    def __init__(self, scripts: tuple[str, ...], send: Callable[[str], None]) -> None:
        self._context = _quickjs.Context()
        self._context.set_max_stack_size(STACK_LIMIT)
        self._context.set_memory_limit(MEMORY_LIMIT)
        for name, function in (("__send", send), ("__random", _random), ("__digest", _digest)):
            self._context.add_callable(name, function)
        for script in scripts:
            self._entry = self._context.eval(script_text(script))

    def call(self, what: str, text: str = "") -> Any:
        """Call the entry. Raises `Failed`."""
        try:
            return self._entry(what, text)
        except _FAULTS as error:
            raise _failed(error) from None

    def check(self, text: str) -> str:
        """Call the entry of the checking script. Raises `Failed`."""
        try:
            return str(self._entry(text))
        except _FAULTS as error:
            raise _failed(error) from None

    def run(self) -> None:
        """Run jobs until none is left. Raises `Failed`."""
        try:
            while self._context.execute_pending_job():
                pass
        except _FAULTS as error:
            raise _failed(error) from None


def _failed(error: BaseException) -> Failed:
    known = isinstance(error, _quickjs.JSException | _quickjs.StackOverflow)
    return Failed(str(error).split("\n", 1)[0] if known else "out of memory")


def script_text(name: str) -> str:
    """Return the text of a script of this package."""
    return files(__package__).joinpath("script", name).read_text(encoding="utf-8")


def _random(count: float) -> str:
    return os.urandom(min(int(count), RANDOM_LIMIT)).hex()


def _digest(name: str, data: str) -> str:
    if name not in _NAMES:
        raise ValueError(name)
    return hashlib.new(name, bytes.fromhex(data)).hexdigest()
