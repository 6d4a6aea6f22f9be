"""Inputs of a connection: messages of its client, answers of its shell, events and moments of its session. Pure data.

Times are milliseconds of the Unix clock.
"""

from __future__ import annotations

from typing import Any

import msgspec

from voxbridge.services.gateway.core.browser_calls import Calls
from voxbridge.services.gateway.core.messages import ClientMessage
from voxbridge.services.gateway.core.outputs import Open
from voxbridge.services.gateway.core.resume_rules import Known
from voxbridge.shared import events
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import VoxbridgeError


class TextMessage(msgspec.Struct, frozen=True):
    """A text message of the client."""

    payload: bytes
    now_ms: int


class MessageRead(msgspec.Struct, frozen=True):
    """A message of the client that its door has parsed."""

    message: ClientMessage
    now_ms: int


class Asked(msgspec.Struct, frozen=True):
    """A request for a session, from a door that has messages of its own for that."""

    opens: Open
    now_ms: int


class Wrong(msgspec.Struct, frozen=True):
    """A message of the client that its door refuses."""

    error: VoxbridgeError
    now_ms: int


class BinaryMessage(msgspec.Struct, frozen=True):
    """A binary message of the client that the audio path refused, or, from a client without frames, `bare` samples."""

    payload: bytes
    now_ms: int
    bare: bool = False


class Opened(msgspec.Struct, frozen=True):
    """`Open` is done: the log has the session, and its feeds run."""


class Resumed(msgspec.Struct, frozen=True):
    """`Resume` found the session. The events after the client's position follow; with a snapshot, those after `known.top`. `CallsKnown`
    comes when the past was read."""

    known: Known
    snapshot: dict[str, Any] | None
    now_ms: int


class ResumeRefused(msgspec.Struct, frozen=True):
    """`Resume` found no session that this client may resume."""

    now_ms: int


class CallsKnown(msgspec.Struct, frozen=True):
    """The calls that the past of a resumed session left open."""

    past: Calls
    now_ms: int


class EventRead(msgspec.Struct, frozen=True):
    """An event of the log that the client may see."""

    recorded: events.Recorded


class MomentReceived(msgspec.Struct, frozen=True):
    """A moment from the voice service."""

    moment: moments.Moment


class Tick(msgspec.Struct, frozen=True):
    """Time has passed. `owned` says whether a voice worker renews the session's lease; None when that is not known."""

    now_ms: int
    owned: bool | None


class Failed(msgspec.Struct, frozen=True):
    """The log, or the opening of the session, failed for good."""

    error: VoxbridgeError


class TakenOver(msgspec.Struct, frozen=True):
    """Another socket was attached to the session after this one."""


class Disconnected(msgspec.Struct, frozen=True):
    """The socket is gone."""

    reason: str


class Stopping(msgspec.Struct, frozen=True):
    """The gateway is stopping."""


class Congested(msgspec.Struct, frozen=True):
    """The client did not read, and its queue is full."""


ClientInput = TextMessage | MessageRead | Asked | Wrong
Input = (
    ClientInput
    | BinaryMessage
    | Opened
    | Resumed
    | ResumeRefused
    | CallsKnown
    | EventRead
    | MomentReceived
    | Tick
    | Failed
    | TakenOver
    | Disconnected
    | Stopping
    | Congested
)
