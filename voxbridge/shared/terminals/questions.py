"""Questions to the terminals service of a host, on `vx.svc.terminals.<host>.<verb>`, and their answers.

Owns these shapes. Does not own how they are asked (`client`), who may ask (`voxbridge.services.gateway`, by role and workspace) nor the
answers (`voxbridge.services.terminals`). Whoever asks says by whose decision (`by`): a person's account, or a call of a model.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from voxbridge.shared.terminals.model import Card, Columns, Definition, DefinitionId, Name, Offer, Rows, State

ANSWER_S: Final = 10.0
WAIT_LIMIT_S: Final = 30.0
TEXT_LIMIT: Final = 32_768
LINES_LIMIT: Final = 1_000
KNOWN_LIMIT: Final = 64
VIEW_BYTES: Final = 4_096
"""Bytes of text that a view returns unless more is asked for; its end is kept."""

_A = TypeVar("_A", bound=msgspec.Struct)
Terminal = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
Life = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
View = Literal["screen", "since", "scrollback", "command", "turn"]
Signal = Literal["INT", "TERM", "HUP", "KILL", "STOP", "CONT"]
Until = Literal["turn_end", "idle", "text", "blocked", "exit"]


class Cards(msgspec.Struct, frozen=True, kw_only=True):
    """Terminals of a host, in the order of their start; the isolation in force, in a sentence; how many were done unseen or need you."""

    host: str
    terminals: tuple[Card, ...]
    isolation: str
    unseen: int = 0
    needs_you: int = 0


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions of a host, those built in first."""

    offers: tuple[Offer, ...]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A question that changes something was carried out."""


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """Exact screen of a terminal as bytes for an emulator, and the offset from which output follows."""

    run: int
    offset: int
    columns: int
    rows: int
    snapshot: bytes


class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rendered text of a terminal, free of escapes, concealed, bidirectional and invisible characters."""

    text: str
    view: View
    row: int = 0
    column: int = 0
    modes: tuple[str, ...] = ()
    """Modes in force, by name: `alternate_screen`, `bracketed_paste`, `application_cursor`, `echo_off`, `mouse`."""

    title: str = ""
    directory: str = ""
    seq: int = 0
    """Sequence of this view: `since` it, the rows that changed are returned."""

    dropped: int = 0
    """Lines that were left out at the front."""

    exit_code: int | None = None
    """Exit code of the command, for `command`."""

    state: State | None = None


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Screen of a terminal at a past moment, as text that a person saw. `at_ms` is when it last changed, ms since 1970."""

    life: str
    at_ms: int
    columns: int
    rows: int
    title: str
    text: str


class Taped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Part of what a terminal showed: bytes of the piece (an asciicast) that was begun at `begun_ms`, ms since 1970. With `more` there are
    others: ask for them by `next_ms` and `next_offset`."""

    begun_ms: int
    data: bytes
    more: bool = False
    next_ms: int = 0
    next_offset: int = 0


class Sent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Outcome of text or a key: `submitted` with its proof, `typed` where no submission was asked for, or `not_submitted` with why."""

    outcome: Literal["submitted", "typed", "not_submitted"]
    reason: str = ""
    proof: str = ""
    removed: int = 0
    """Control and invisible characters that were taken out of the text."""


class Waited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """End of a wait: whether its condition came, what did, and how long it took (ms)."""

    met: bool
    state: State
    text: str = ""
    ms: int = 0
    clamped: bool = False


class Rung(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Word of one source on a state, whether it counts now, and why or why not."""

    source: str
    says: str
    at: int
    counts: bool
    why: str = ""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """State of a terminal with what each source says, the best first."""

    state: State
    rungs: tuple[Rung, ...]


class Question(msgspec.Struct, Generic[_A], frozen=True, kw_only=True):
    """A question to the service of a host, asked by somebody."""

    verb: ClassVar[str] = ""
    answer: ClassVar[type[msgspec.Struct]] = Done
    answer_s: ClassVar[float] = ANSWER_S
    by: Annotated[str, Meta(min_length=1, max_length=128)]


class ListTerminals(Question[Cards], frozen=True, kw_only=True):
    """List the terminals."""

    verb = "list"
    answer = Cards


class Watch(Question[Cards], frozen=True, kw_only=True):
    """Wait until a terminal is another one, or does something else, than what is known: times of the cards (`Card.changed_at`) by terminal.
    Returns all terminals, also when the time is over."""

    verb = "watch"
    answer = Cards
    answer_s = WAIT_LIMIT_S + 5
    known: Annotated[dict[str, int], Meta(max_length=KNOWN_LIMIT)]
    timeout_s: Annotated[float, Meta(gt=0, le=WAIT_LIMIT_S)] = WAIT_LIMIT_S


class ListDefinitions(Question[Offers], frozen=True, kw_only=True):
    """List the definitions."""

    verb = "definitions"
    answer = Offers


class Define(Question[Offers], frozen=True, kw_only=True):
    """Add a definition, or change one that was added."""

    verb = "define"
    answer = Offers
    definition: Definition


class Undefine(Question[Offers], frozen=True, kw_only=True):
    """Remove a definition that was added."""

    verb = "undefine"
    answer = Offers
    definition: DefinitionId


class Start(Question[Card], frozen=True, kw_only=True):
    """Start a terminal. Its name is made from the definition's title where none is given."""

    verb = "start"
    answer = Card
    definition: DefinitionId
    name: Annotated[str, Meta(max_length=64)] = ""
    workspace: Name = "default"
    directory: Annotated[str, Meta(max_length=4_096)] = ""
    columns: Columns = 120
    rows: Rows = 40


class Past(Question[Shown], frozen=True, kw_only=True):
    """Get the screen that a terminal had at a time, ms since 1970; also of one that was closed."""

    verb = "past"
    answer = Shown
    life: Life
    at_ms: Annotated[int, Meta(ge=0)]


class ReadTape(Question[Taped], frozen=True, kw_only=True):
    """Read what a terminal showed, also one that was closed: the first piece that was begun at `from_ms` or later, from an offset on."""

    verb = "tape"
    answer = Taped
    life: Life
    from_ms: Annotated[int, Meta(ge=0, le=2**53)] = 0
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class Forget(Question[Done], frozen=True, kw_only=True):
    """Remove what a closed terminal showed."""

    verb = "forget"
    life: Life


class OfTerminal(Question[_A], Generic[_A], frozen=True, kw_only=True):
    """A question about one terminal."""

    terminal: Terminal


class Restart(OfTerminal[Card], frozen=True, kw_only=True):
    """End the program if it runs, and start it again in the same terminal; with `resume`, by its command for that."""

    verb = "restart"
    answer = Card
    answer_s = 30.0
    resume: bool = False


class Rename(OfTerminal[Card], frozen=True, kw_only=True):
    """Give a terminal another name. Its token stays."""

    verb = "rename"
    answer = Card
    name: Name


class Resize(OfTerminal[Card], frozen=True, kw_only=True):
    """Give a terminal another size."""

    verb = "resize"
    answer = Card
    columns: Columns
    rows: Rows


class SendSignal(OfTerminal[Card], frozen=True, kw_only=True):
    """Send a signal to the foreground program."""

    verb = "signal"
    answer = Card
    signal: Signal


class Close(OfTerminal[Card], frozen=True, kw_only=True):
    """End everything that a terminal started, and take it off the list. The answer names what lives on."""

    verb = "close"
    answer = Card
    answer_s = 30.0


class Activate(OfTerminal[Card], frozen=True, kw_only=True):
    """Make a terminal the active one."""

    verb = "activate"
    answer = Card


class See(OfTerminal[Card], frozen=True, kw_only=True):
    """Say that somebody has looked at a terminal."""

    verb = "see"
    answer = Card


class Hold(OfTerminal[Card], frozen=True, kw_only=True):
    """Take the keys of a terminal for one connection, or give them back (`take=False`). Whoever held them before loses them."""

    verb = "hold"
    answer = Card
    connection: Annotated[str, Meta(min_length=1, max_length=64)]
    take: bool = True


class Attach(OfTerminal[Attached], frozen=True, kw_only=True):
    """Get the exact screen."""

    verb = "attach"
    answer = Attached


class Read(OfTerminal[Seen], frozen=True, kw_only=True):
    """Read rendered text."""

    verb = "read"
    answer = Seen
    view: View = "screen"
    lines: Annotated[int, Meta(ge=1, le=LINES_LIMIT)] = 40
    since: Annotated[int, Meta(ge=0)] = 0


class Send(OfTerminal[Sent], frozen=True, kw_only=True):
    """Type a text, and submit it unless told otherwise. `seq` is that of the view that was read before, if any: where another program is in
    the foreground since, the text is refused."""

    verb = "send"
    answer = Sent
    answer_s = 60.0
    text: Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT)]
    submit: bool = True
    seq: int | None = None


class SendKey(OfTerminal[Sent], frozen=True, kw_only=True):
    """Press a key by its name, such as `enter`, `escape`, `ctrl-c`, `up`, `f5`, `alt-x`."""

    verb = "key"
    answer = Sent
    key: Annotated[str, Meta(min_length=1, max_length=16)]
    times: Annotated[int, Meta(ge=1, le=20)] = 1


class Wait(OfTerminal[Waited], frozen=True, kw_only=True):
    """Wait until something is so: a turn ended, the program is idle, a text is on the screen, it is blocked, or it exited."""

    verb = "wait"
    answer = Waited
    answer_s = WAIT_LIMIT_S + 5
    until: Until
    text: Annotated[str, Meta(max_length=300)] = ""
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 10.0


class Explain(OfTerminal[Explained], frozen=True, kw_only=True):
    """Say who says what of the state."""

    verb = "explain"
    answer = Explained


QUESTIONS: Final[tuple[type[Question[Any]], ...]] = (
    ListTerminals, Watch, ListDefinitions, Define, Undefine, Past, ReadTape, Forget, Start, Restart, Rename, Resize, SendSignal, Close,
    Activate, See, Hold, Attach, Read, Send, SendKey, Wait, Explain,
)  # fmt: skip
"""Every question, in the order of this module."""


def question_subject(host: str, verb: str) -> str:
    """Return the subject of a question to a host; `*` stands for any."""
    return f"vx.svc.terminals.{host}.{verb}"
