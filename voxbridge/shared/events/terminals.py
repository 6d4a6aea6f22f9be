"""Events that the terminals service writes into the log of a terminal: its program's starts and ends, its states, and who sent what.

What people type is counted, and what programs write is not here at all. `at` is when it happened (µs since 1970): the log may take it
later, since programs run on while it is away.
"""

from __future__ import annotations

from typing import Literal

from voxbridge.shared.events.envelope import Event, event
from voxbridge.shared.terminals.model import Kind, State


class Happened(Event, frozen=True, kw_only=True):
    """Base of what happened in a terminal."""

    at: int


@event("terminal.started", writer="terminals", visible=True)
class TerminalStarted(Happened, frozen=True, kw_only=True):
    """The program was started: the first time in this terminal, or again (`run` above 1)."""

    by: str
    terminal: str
    name: str
    workspace: str
    definition: str
    kind: Kind
    directory: str
    columns: int
    rows: int
    run: int
    pid: int | None = None


@event("terminal.changed", writer="terminals", visible=True)
class TerminalChanged(Happened, frozen=True, kw_only=True):
    """The program is in another state, or says something else of it."""

    state: State


@event("terminal.sent", writer="terminals", visible=True)
class TerminalSent(Happened, frozen=True, kw_only=True):
    """A text or a key was sent by somebody's decision, or was refused."""

    by: str
    outcome: Literal["submitted", "typed", "not_submitted"]
    reason: str = ""
    proof: str = ""
    key: str = ""
    """Name of the key; empty for a text."""

    size: int = 0
    """Bytes of the text that was asked for."""

    digest: str = ""
    """SHA-256 of the text in hex: who has the text can tell that it was this one."""


@event("terminal.typed", writer="terminals", visible=True)
class TerminalTyped(Happened, frozen=True, kw_only=True):
    """People typed so many bytes within a few seconds. What they typed is not kept."""

    size: int
    connections: int


@event("terminal.resized", writer="terminals", visible=True)
class TerminalResized(Happened, frozen=True, kw_only=True):
    """The terminal has another size."""

    columns: int
    rows: int


@event("terminal.renamed", writer="terminals", visible=True)
class TerminalRenamed(Happened, frozen=True, kw_only=True):
    """The terminal has another name."""

    by: str
    name: str


@event("terminal.signalled", writer="terminals", visible=True)
class TerminalSignalled(Happened, frozen=True, kw_only=True):
    """A signal was sent to the program in the foreground."""

    by: str
    signal: str


@event("terminal.ended", writer="terminals", visible=True)
class TerminalEnded(Happened, frozen=True, kw_only=True):
    """The program ended, with its exit code where there is one."""

    sentence: str
    code: int | None = None


@event("terminal.closed", writer="terminals", visible=True)
class TerminalClosed(Happened, frozen=True, kw_only=True):
    """The terminal was closed. `left` names the processes that live on."""

    by: str
    left: tuple[str, ...] = ()


@event("terminal.unrecorded", writer="terminals", visible=True)
class TerminalUnrecorded(Happened, frozen=True, kw_only=True):
    """So many happenings are not in the log, which was away for too long."""

    count: int
