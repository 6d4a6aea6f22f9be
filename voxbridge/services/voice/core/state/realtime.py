"""State of the connection to a realtime model, and of the conversation over it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


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


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """State of the connection to a realtime model. `connection` keeps it open, `responses` holds the conversation over it."""

    provider: str
    model: str
    effect: int = 0
    """Id of the running `Connect` effect."""

    ready: bool = False
    resumes: Literal["", "handle", "seed", "summary"] = ""
    """Way in which the model learns the conversation so far over the running connection."""

    shortened: bool = False
    """True if that connection gives the model only a summary of the conversation's beginning."""

    handle: str = ""
    """Reference of the last good handle. It is kept while the provider reports that the session cannot be resumed at the moment."""

    handle_at: int = 0
    """Time the handle was issued, µs."""

    handle_knows: int = 0
    """Number of user messages (`State.asked`) that the model knew when the handle was issued."""

    resumable: bool = False
    """True if the provider would resume the conversation as it is now."""

    deaths: int = 0
    """Connections lost while this handle was held, since it was issued or the last turn was completed."""

    tries: int = 0
    """Consecutive connections that completed no turn."""

    lost_at: int = 0
    """Time since which the conversation waits for a connection, µs; 0 while it has one, and before the first."""

    restoring: bool = False
    """True if `session.restored` is to be written when a connection is ready."""

    worker: str = ""
    """Worker that took the session over, for that event."""

    lost: tuple[str, ...] = ()
    """Descriptions of what was lost, for that event."""

    leaving_at: int = 0
    """Time at which the provider will close the connection, µs; 0 until it announces that."""

    from_ms: int = 0
    """Position in the microphone audio, ms, from which on nothing was answered."""

    audio_ms: int = 0
    """Milliseconds of microphone audio heard at the connection's last report."""

    words: tuple[tuple[str, str], ...] = ()
    """Words of the user that are in no event yet, as `(provider's item, text)`."""

    final: tuple[str, ...] = ()
    """Newest items of the provider that are in events; later words of these items are ignored."""

    turn: int = 0
    """Turn that `words` belong to; 0 until the model begins to answer them."""

    asked_at: int = 0
    """Value of `State.remembered` when that turn began."""

    ended_at: int = 0
    """Time of the user's last words or end of speech, µs."""

    answered_at: int = 0
    """End of the model's last turn, µs."""

    active: bool = False
    """True while the installation's own detector hears the user speak; the model was told so."""

    pause_ms: int = 0
    """Position in the microphone audio, ms, at which that speech last paused."""

    asking: bool = False
    """True if the user said something that the model has not begun to answer."""

    speaking: bool = False
    """True while the provider's detector hears the user speak."""

    awaited: bool = False
    """True while the user waits for the model to speak, whatever the answer depends on."""

    asked: str = ""
    """Last known question of the user that was not answered completely."""

    asked_again: bool = False
    """True if the model stayed silent and was asked again."""

    notice: bool = False
    """True if the next response answers no turn: a greeting or a notice."""

    announced: str = ""
    """Text that this response is to say."""

    cut: bool = False
    """True if the model's response was interrupted: the end of its turn then counts as no answer."""

    muted: bool = False
    """True if the rest of the response is to be ignored."""

    rounds: tuple[int, int] = (0, 0)
    """`(turn, count)`: rounds of calls in this turn. A round ends with its first result."""

    answered: bool = True
    """True if a result was given since the last call."""

    called: bool = False
    """True if the model requested a call in its current turn, which counts as an answer."""

    over: bool = True
    """True if the model is in no turn."""

    counted_ms: int = 0
    """Milliseconds of audio in the model's current turn, as the connection counts it, that belong to a reply that is closed."""

    written: str = ""
    """Text of the response that the model wrote and did not speak."""

    notes: tuple[Note, ...] = ()
    calls: tuple[OpenCall, ...] = ()
    go_on: bool = False
    """True if a fault cut a response off or left a question unanswered: the model is told to go on as soon as it can be told."""

    said: str = ""
    """Words heard of that response."""

    going_on: int = 0
    """Turn that is still to be answered, or whose answer is still to be continued; 0 if there is none."""
