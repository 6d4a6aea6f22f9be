"""Entries of what is known of a user's screen. All texts in them are foreign: pages, programs and other people wrote them."""

from __future__ import annotations

from typing import Final

import msgspec

SOURCES: Final = ("pages", "errors", "context")
"""Sources that can be switched off one by one."""

PAGES: Final = 5
ERRORS: Final = 3
FACTS: Final = 8
"""Entries of each source that an agent is told."""


class Visit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page that the user came to, `at` µs of the Unix clock."""

    id: str
    page: str
    at: int
    title: str = ""
    session: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error that is open: met `count` times, last `at` µs. `function` is the function of the agent that failed, if it was one."""

    id: str
    kind: str
    message: str
    at: int
    page: str = ""
    count: int = 1
    session: str = ""
    function: str = ""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement of a client about the user's work, `at` µs."""

    key: str
    value: str
    at: int
    session: str = ""


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entries that an agent is told, newest first."""

    pages: tuple[Visit, ...] = ()
    errors: tuple[Problem, ...] = ()
    context: tuple[Fact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.errors or self.context)


NOTHING: Final = View()


def of_session(view: View, session: str) -> View:
    """Return the entries of one session alone."""
    return View(
        pages=tuple(one for one in view.pages if one.session == session),
        errors=tuple(one for one in view.errors if one.session == session),
        context=tuple(one for one in view.context if one.session == session),
    )
