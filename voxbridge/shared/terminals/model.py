"""Shapes of a fleet of terminals: definitions of programs, the card of a terminal, and what is known of its state.

Owns these shapes and their limits. Does not own what they are made from (`voxbridge.services.terminals`).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

LOCAL_HOST: Final = "local"
"""Host of the terminals service that an installation starts itself."""

NAME_LIMIT: Final = 64
ARGUMENTS_LIMIT: Final = 64
VARIABLES_LIMIT: Final = 64
COLUMNS: Final = 120
ROWS: Final = 40
APPROVE: Final = "y"
SIZE_LIMIT: Final = 500
"""Columns and rows of a terminal nobody has resized, and the most of either."""

Name = Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)]
DefinitionId = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Columns = Annotated[int, Meta(ge=2, le=SIZE_LIMIT)]
Rows = Annotated[int, Meta(ge=1, le=SIZE_LIMIT)]
Kind = Literal["shell", "repl", "agent"]
Phase = Literal["starting", "idle", "working", "blocked", "done", "dead", "unknown"]
Reason = Literal["", "permission", "question", "auth", "error"]
"""Reason that a program is blocked; `error` with `done` says that a turn ended with an error."""

Source = Literal["program", "hook", "shell", "exit", "screen", "silence", ""]
"""Source of a state, best first: the program itself (OSC 7501), its signed hook, the shell's integration (OSC 633 with its nonce), the
kernel, a manifest that reads the screen, and time without output."""


class Submit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Way to submit text to a program: a gap (ms) between the text and Enter, how long proof is waited for (ms), and times Enter is
    pressed again without one."""

    gap_ms: Annotated[int, Meta(ge=0, le=5_000)] = 300
    proof_ms: Annotated[int, Meta(ge=100, le=30_000)] = 2_000
    again: Annotated[int, Meta(ge=0, le=3)] = 1


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that terminals run, as a row: its command, how it resumes its last conversation, how to get it, and what it is given."""

    id: DefinitionId
    title: Name
    kind: Kind
    command: Annotated[tuple[str, ...], Meta(min_length=1, max_length=ARGUMENTS_LIMIT)]
    resume: Annotated[tuple[str, ...], Meta(max_length=ARGUMENTS_LIMIT)] = ()
    """Command that goes on with the last conversation of its folder, for a restart; empty where there is none."""

    get: Annotated[str, Meta(max_length=300)] = ""
    """Hint how to install it, said where it is missing."""

    integration: Literal["", "bash", "zsh", "fish", "claude", "codex"] = ""
    """Integration that it is started with, so that it says itself when a command or a turn ends."""

    variables: Annotated[tuple[str, ...], Meta(max_length=VARIABLES_LIMIT)] = ()
    """Names of variables that it is given beyond those of every terminal; the only way for a key or token to reach it."""

    set: Annotated[dict[str, str], Meta(max_length=VARIABLES_LIMIT)] = {}
    """Variables with their values."""

    manifest: DefinitionId | None = None
    """Manifest that reads its screen; that of its own id by default."""

    approve: Annotated[str, Meta(min_length=1, max_length=16)] = APPROVE
    """Key that says yes where it asks for permission."""

    submit: Submit = Submit()
    built_in: bool = False


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A definition on a host: where its program is, empty if it is missing, and a sentence that says so and how to get it."""

    definition: Definition
    program: str
    missing: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a terminal's program: what it does, who says so, and since when (µs since 1970)."""

    phase: Phase
    since: int
    source: Source = ""
    reason: Reason = ""
    words: str = ""
    """The program's own words for it, without control or invisible characters, at most 300 characters."""

    progress: int | None = None
    """Progress of its work in percent."""


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Last message of a program to the officer: its time (µs, 0 for none), the name its writer goes by, and its text. Untrusted."""

    at: int = 0
    by: str = ""
    text: str = ""


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A terminal as lists show it."""

    host: str
    id: str
    """Stable token of the terminal in subjects: lower-case letters, digits, `-`."""

    name: str
    workspace: str
    definition: str
    kind: Kind
    title: str = ""
    """Title that the program set; untrusted."""

    directory: str = ""
    state: State
    columns: int = COLUMNS
    rows: int = ROWS
    seen: bool = True
    """True once somebody has looked since it was last done."""

    needs_you: bool = False
    stale: bool = False
    """True if it no longer answers what is typed; a restart is offered."""

    active: bool = False
    run: int = 1
    """Number of this start of its program; a restart adds one."""

    pid: int | None = None
    exit_code: int | None = None
    ended: str = ""
    """End in a sentence; empty while it lives."""

    resumable: bool = False
    isolation: str = ""
    """Isolation that is in force, in a sentence."""

    left: tuple[str, ...] = ()
    """Processes that it started and that live on after its end, each with its id and command."""

    held_by: str = ""
    """Person who types now, and whose keys alone are taken; empty where nobody is."""

    held_connection: str = ""
    """Connection whose keys these are: a person may look from several windows."""

    offset: int = 0
    """Bytes that its program has written since it started."""

    started: int = 0
    """Time of its start in µs since 1970."""

    said: Said = Said()
    life: str = ""
    """Name of its life: what happened in it stands in the log under this name, also after it was closed."""

    @property
    def changed_at(self) -> int:
        """Return when it last did something else or said something, µs."""
        return max(self.state.since, self.said.at)
