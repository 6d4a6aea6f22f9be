"""State of the connection to a realtime model, and of the conversation over it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.voice.core import capabilities
from voxbridge.services.voice.core.capabilities import Capabilities


class Note(msgspec.Struct, frozen=True):
    """Text to be sent to a model once its connection is ready."""

    text: str
    respond: bool


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """An open call of a realtime model. It outlives the response that requested it."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    ref: str
    """Id given by the provider, valid on the connection `effect` only."""

    effect: int
    browser: bool = False


Resumes = Literal["", "handle", "seed", "summary"]
"""Way in which a model learns the conversation so far; empty if there is none."""


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """No connection: the first one is not opened yet, or none will be tried any more."""


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag="opening"):
    """A connection is being opened."""

    effect: int
    """Id of the running `Connect` effect."""

    resumes: Resumes

    shortened: bool = False
    """True if it is given only a summary of the conversation's beginning."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The model listens. The timer `connection.LEAVE` belongs to this phase."""

    effect: int
    resumes: Resumes
    leaving_at: int = 0
    """Time at which the provider will close the connection, µs; 0 until it announces that."""


Link = Closed | Opening | Ready
"""Phase of the connection."""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """Means of resuming the provider's session."""

    handle: str = ""
    """Reference of the last good handle. It is kept while the provider reports that the session cannot be resumed at the moment."""

    issued_at: int = 0
    """Time the handle was issued, µs."""

    knows: int = 0
    """Number of user messages (`Conversation.asked`) that the model knew when the handle was issued."""

    resumable: bool = False
    """True if the provider would resume the conversation as it is now."""

    deaths: int = 0
    """Connections lost while this handle was held, since it was issued or the last turn was completed."""


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation waits for a connection again."""

    since: int = 0
    """Time since which it waits, µs; 0 if unknown."""

    restoring: bool = False
    """True if `session.restored` is to be written when a connection is ready."""

    worker: str = ""
    """Worker that took the session over, for that event."""

    lost: tuple[str, ...] = ()
    """Descriptions of what was lost, for that event."""


class Hearing(msgspec.Struct, frozen=True, kw_only=True):
    """The user's speech, as the model heard it. Positions are ms of microphone audio."""

    from_ms: int = 0
    """Position from which on nothing was answered."""

    audio_ms: int = 0
    """Audio heard at the connection's last report."""

    pause_ms: int = 0
    """Position at which the speech that the installation's own detector hears last paused."""

    active: bool = False
    """True while the installation's own detector hears the user speak; the model was told so."""

    speaking: bool = False
    """True while the provider's detector hears the user speak."""

    words: tuple[tuple[str, str], ...] = ()
    """Words of the user that are in no event yet, as `(provider's item, text)`."""

    final: tuple[str, ...] = ()
    """Newest items of the provider that are in events; later words of these items are ignored."""

    turn: int = 0
    """Turn that `words` belong to; 0 until the model begins to answer them."""

    asked_at: int = 0
    """Value of `Conversation.remembered` when that turn began."""

    ended_at: int = 0
    """Time of the user's last words or end of speech, µs."""


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """The words that the model owes: answers, continuations, announcements."""

    asking: bool = False
    """True if the user said something that the model has not begun to answer."""

    question: str = ""
    """Last known question of the user that was not answered completely."""

    repeated: bool = False
    """True if the model stayed silent and was asked again."""

    turn: int = 0
    """Turn that is still to be answered, or whose answer is still to be continued; 0 if there is none."""

    go_on: bool = False
    """True if a fault cut a response off or left a question unanswered: the model is told to go on as soon as it can be told."""

    said: str = ""
    """Words heard of that response."""

    announcement: str | None = None
    """Text to be announced by the next response, which answers no turn; empty for the continuation of such a response. None if the next
    response answers a turn."""

    @property
    def announces(self) -> bool:
        """True if the next response answers no turn: a greeting, a notice, or the continuation of one."""
        return self.announcement is not None


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The model's current turn."""

    stage: Literal["over", "open", "called"] = "over"
    """`over`: the model is in no turn. `called`: it requested a call in its turn, which counts as an answer."""

    cut: bool = False
    """True if it was interrupted: its end then counts as no answer."""

    muted: bool = False
    """True if the rest of it is to be ignored."""

    counted_ms: int = 0
    """Milliseconds of its audio, as the connection counts it, that belong to a reply that is closed."""

    written: str = ""
    """Text of it that the model wrote and did not speak."""

    @property
    def over(self) -> bool:
        """True if the model is in no turn."""
        return self.stage == "over"

    @property
    def called(self) -> bool:
        """True if the model requested a call in this turn."""
        return self.stage == "called"


class ToolCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of the model that wait for their results."""

    open: tuple[OpenCall, ...] = ()
    rounds: tuple[int, int] = (0, 0)
    """`(turn, count)`: rounds of calls in this turn. A round ends with its first result."""

    answered: bool = True
    """True if a result was given since the last call."""


class RealtimeState(msgspec.Struct, frozen=True, kw_only=True):
    """State of an agent's realtime model. `connection` keeps it connected, `responses` holds the conversation with it."""

    provider: str
    model: str
    link: Link = Closed()
    resumption: Resumption = Resumption()
    tries: int = 0
    """Consecutive connections that completed no turn."""

    outage: Outage | None = None
    """None while there is a connection, and before the first."""

    hearing: Hearing = Hearing()
    owed: Owed = Owed()
    awaited: bool = False
    """True while the user waits for the model to speak, whatever the answer depends on."""

    response: Response = Response()
    answered_at: int = 0
    """End of the model's last turn, µs."""

    tool_calls: ToolCalls = ToolCalls()
    notes: tuple[Note, ...] = ()
    """Texts for the model that wait for a connection."""

    @property
    def effect(self) -> int:
        """Id of the running `Connect` effect; 0 if there is none."""
        return 0 if isinstance(self.link, Closed) else self.link.effect

    @property
    def ready(self) -> bool:
        """True if the model listens."""
        return isinstance(self.link, Ready)

    @property
    def can(self) -> Capabilities:
        """Capabilities of the model."""
        return capabilities.of(self.provider, self.model)

    @property
    def words_due(self) -> bool:
        """True if the provider is still to send words of the user, or the rest of them."""
        return self.hearing.turn != 0 and self.can.detects_voice
