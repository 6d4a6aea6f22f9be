"""Life of a terminal as its log tells it: what was noticed is taken in order, and what of it is news is appended.

Pure. Owns which state of a program follows from what its sources say, as `core.state` does for the card, and that nothing is told twice.
Does not own when something is noticed, nor how often (`voxbridge.services.terminals.life`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.services.terminals.core import state as states
from voxbridge.shared.events import terminals as events
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.terminals.model import Kind, Source
from voxbridge.shared.terminals.model import State as ProgramState


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """State of a terminal's life."""

    kind: Kind = "shell"
    started: int = 0
    run: int = 0
    name: str = ""
    columns: int = 0
    rows: int = 0
    told: ProgramState | None = None
    """State of the program that was told last."""

    ended: bool = True
    """True while no program runs."""

    closed: bool = False


class _Noticed(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what is taken. `at` is when it was noticed, µs since 1970."""

    at: int


class Started(_Noticed, frozen=True, kw_only=True, tag="started"):
    """The program was started."""

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
    pid: int | None


class Heard(_Noticed, frozen=True, kw_only=True, tag="heard"):
    """The last words of the sources on the program's state."""

    words: Mapping[Source, states.Word]


class Sent(_Noticed, frozen=True, kw_only=True, tag="sent"):
    """A text or a key was sent, or refused."""

    by: str
    outcome: Literal["submitted", "typed", "not_submitted"]
    reason: str = ""
    proof: str = ""
    key: str = ""
    size: int = 0
    digest: str = ""


class Typed(_Noticed, frozen=True, kw_only=True, tag="typed"):
    """People typed."""

    size: int
    connections: int


class Resized(_Noticed, frozen=True, kw_only=True, tag="resized"):
    """The terminal was given a size."""

    columns: int
    rows: int


class Renamed(_Noticed, frozen=True, kw_only=True, tag="renamed"):
    """The terminal was given a name."""

    by: str
    name: str


class Signalled(_Noticed, frozen=True, kw_only=True, tag="signalled"):
    """A signal was sent."""

    by: str
    signal: str


class Ended(_Noticed, frozen=True, kw_only=True, tag="ended"):
    """The program ended."""

    sentence: str
    code: int | None


class Closed(_Noticed, frozen=True, kw_only=True, tag="closed"):
    """The terminal was closed."""

    by: str
    left: tuple[str, ...]


class Lost(_Noticed, frozen=True, kw_only=True, tag="lost"):
    """So many inputs were dropped, because the log was away."""

    count: int


Input = Started | Heard | Sent | Typed | Resized | Renamed | Signalled | Ended | Closed | Lost


def initial(_log_id: str) -> Life:
    """Return the life before anything was noticed."""
    return Life()


def step(life: Life, noticed: Input | LogInput, _now: int) -> tuple[Life, Sequence[Append]]:
    """Take what was noticed; return the life after it, and what is appended to its log."""
    now, event = _after(life, noticed)
    return now, () if event is None else (Append(event),)


def _after(life: Life, noticed: Input | LogInput) -> tuple[Life, events.Happened | None]:
    match noticed:
        case Started(run=run):
            if run <= life.run:  # noted again by the next process, which does not know what the one before wrote
                return life, None
            begun = replace(
                life, kind=noticed.kind, started=noticed.at, run=noticed.run, name=noticed.name, columns=noticed.columns,
                rows=noticed.rows, told=None, ended=False,
            )  # fmt: skip
            return begun, events.TerminalStarted(**_fields(noticed))
        case Heard(words=words):
            wrote = noticed.at if life.told is not None else 0  # before anything was told it is starting
            state = states.state(states.Known(kind=life.kind, started=life.started, words=words, output_at=wrote))
            if life.told is not None and _essence(state) == _essence(life.told):
                return life, None
            return replace(life, told=state), events.TerminalChanged(at=noticed.at, state=state)
        case Resized(columns=columns, rows=rows):
            if (columns, rows) == (life.columns, life.rows):
                return life, None
            return replace(life, columns=columns, rows=rows), events.TerminalResized(**_fields(noticed))
        case Renamed(name=name):
            return (life, None) if name == life.name else (replace(life, name=name), events.TerminalRenamed(**_fields(noticed)))
        case Ended():
            return (life, None) if life.ended else (replace(life, ended=True), events.TerminalEnded(**_fields(noticed)))
        case Closed():
            return (life, None) if life.closed else (replace(life, closed=True), events.TerminalClosed(**_fields(noticed)))
        case Sent():
            return life, events.TerminalSent(**_fields(noticed))
        case Typed():
            return life, events.TerminalTyped(**_fields(noticed))
        case Signalled():
            return life, events.TerminalSignalled(**_fields(noticed))
        case Lost():
            return life, events.TerminalUnrecorded(**_fields(noticed))
    return life, None


def _essence(state: ProgramState) -> tuple[str, ...]:
    """Return what of a state is news: progress in percent is not."""
    return state.phase, state.source, state.reason, state.words


def _fields(noticed: Input) -> dict[str, Any]:
    return {name: getattr(noticed, name) for name in noticed.__struct_fields__}
