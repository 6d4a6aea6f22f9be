"""The state of a client connection: what is true in each of its phases, and what all of them share. Pure data."""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.services.gateway.core import messages, outputs
from voxbridge.services.gateway.core.browser_calls import Calls
from voxbridge.services.gateway.core.outbound import Reader
from voxbridge.services.gateway.core.session_token import SessionToken
from voxbridge.shared import events
from voxbridge.shared.bus import moments

_MODEL_AWAY: Final = moments.StateChanged(state="restoring", reason="the connection to the model was lost and is opened again")
_WAITING_FOR_MODEL: Final = ("listening", "thinking", "calling_tool")


class Fresh(msgspec.Struct, frozen=True, tag="fresh"):
    """The client has asked for no session yet."""

    since_ms: int | None = None
    """Time of the first tick; None before it."""


class Opening(msgspec.Struct, frozen=True, tag="opening"):
    """The session is being written to the log."""

    asked_ms: int
    waiting: tuple[events.Event, ...] = ()
    """Events of the client, to be written once the session is open."""


class Otherwise(msgspec.Struct, frozen=True):
    """The new session that a plain client gets when its old one cannot be resumed."""

    reader: Reader
    opens: outputs.Open


class Resuming(msgspec.Struct, frozen=True, tag="resuming"):
    """The session to resume is looked for in the log."""

    asked_ms: int
    otherwise: Otherwise | None = None
    waiting: tuple[events.Event, ...] = ()


class Requested(msgspec.Struct, frozen=True, tag="requested"):
    """The log has the session; no voice worker has started it."""

    asked_ms: int


class Live(msgspec.Struct, frozen=True, tag="live"):
    """A voice worker runs the session, or is waited for since `lost_since_ms`."""

    lost_since_ms: int | None = None


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """The end of the session was requested."""

    asked_ms: int


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """The socket is closed, or about to be; nothing is sent any more."""


Phase = Fresh | Opening | Resuming | Requested | Live | Ending | Closed
Attached = Requested | Live | Ending
"""Phases in which the socket holds a session."""

CLOSED: Final = Closed()


class Origin(msgspec.Struct, frozen=True):
    """Names of a connection. `resume_hash` is kept in the log, to check the resume token of a session that this connection starts."""

    gateway: str
    name: str
    resume_hash: str = ""


class Shown(msgspec.Struct, frozen=True):
    """The session's state as the client knows it."""

    reported: moments.StateChanged | None = None
    """The last state reported by the voice worker."""

    worker_lost: bool = False
    """True if the client was told that the worker is gone."""

    model_away: bool = False
    """True if the connection to a realtime model is lost and not restored."""

    def as_told(self, moment: moments.StateChanged) -> moments.StateChanged:
        """Return the state to tell: while the model is away, a session that would wait for it is `restoring`."""
        return _MODEL_AWAY if self.model_away and moment.state in _WAITING_FOR_MODEL else moment


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one connection."""

    origin: Origin
    reader: Reader
    phase: Phase = Fresh()
    last_seq: int = 0
    """Position of the last event that the client was told, or has missed for good."""

    told_to: int = 0
    """Position up to which the answer to `resume` covered changes of state."""

    set_up: bool = False
    """True if a plain client that resumed was told `setup_complete` already."""

    shown: Shown = Shown()
    calls: Calls = Calls()
    answers: tuple[messages.BrowserFunctionResult, ...] = ()
    """Answers of the page that wait until its open calls are known."""

    wrong: tuple[int, ...] = ()
    """Times of the last wrong messages, ms."""

    @property
    def takes_audio(self) -> bool:
        """True when microphone frames may be published now."""
        return isinstance(self.phase, Requested | Live)

    @property
    def attached(self) -> bool:
        """True when the connection holds a session that has not ended."""
        return isinstance(self.phase, Attached)

    @property
    def session_token(self) -> str:
        """Token with which a plain client goes on over another socket, behind the last event that it was told. Empty before it has a
        session. A `voxbridge.v1` client already has its resume token and gets the session id."""
        reader = self.reader
        if reader.v1:
            return reader.sid
        if not self.attached and not isinstance(self.phase, Resuming):
            return ""
        return str(SessionToken(reader.sid, reader.resume_token, self.last_seq))


Step = tuple[Connection, outputs.Outputs]
"""The next state, and the outputs to perform."""


def fresh(origin: Origin, *, sid: str, v1: bool, resume_token: str = "", first: str = "start") -> Connection:
    """Return a new connection. `sid` is the id of the session if this connection starts one; `v1` says whether it speaks `voxbridge.v1`.
    The client resumes that session with `resume_token`, and opens it with a message of the type `first`."""
    return Connection(origin=origin, reader=Reader(sid, v1, resume_token, first=first))
