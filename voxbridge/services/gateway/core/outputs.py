"""Outputs of a connection for its shell, and the codes it closes a socket with (docs/protocol.md, section 5). Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from voxbridge.shared import events
from voxbridge.shared.platform.handlers import Configuration

NORMAL: Final = 1000
FAULT: Final = 1011
RESTARTING: Final = 1012
TRY_LATER: Final = 1013
NOT_ALLOWED: Final = 4003
NOT_THERE: Final = 4004
TOO_SLOW: Final = 4008
TOO_MANY_WRONG: Final = 4009
TAKEN_OVER: Final = 4010


class Send(msgspec.Struct, frozen=True):
    """A JSON message for the client."""

    message: dict[str, Any]


class Open(msgspec.Struct, frozen=True):
    """Check that the token, or the socket's opener, allows this session; then subscribe and write the event. Answer with `opened` or
    `failed`."""

    event: events.gateway.SessionRequested
    token: str = ""
    configuration: Configuration | None = None
    """Configuration of the page, at the door where it sends one."""


class Resume(msgspec.Struct, frozen=True):
    """Look for this session. Answer with `refused`; or read what is missing and answer with `resumed`; or with `failed`. With `unrecorded`,
    a session whose audio is kept is refused too."""

    sid: str
    token: str
    last_seq: int
    unrecorded: bool = False


class Attach(msgspec.Struct, frozen=True):
    """Write that this socket holds the session. Answer with `taken_over` when another socket is written after it."""

    event: events.gateway.ClientConnected


class Append(msgspec.Struct, frozen=True):
    """Write an event to the log."""

    event: events.Event


class PublishMic(msgspec.Struct, frozen=True):
    """Publish microphone samples (PCM16, 16 kHz) that came without a prefix."""

    pcm: bytes


class Ended(msgspec.Struct, frozen=True):
    """Note that the log has the session's end."""


class Close(msgspec.Struct, frozen=True):
    """Close the socket; no output follows."""

    code: int
    reason: str


Output = Send | Open | Resume | Attach | Append | PublishMic | Ended | Close
Outputs = Sequence[Output]
