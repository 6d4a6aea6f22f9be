"""What the voice service tells the gateway about the moment: never stored, never replayed, replaced by what comes next."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["connecting", "listening", "user_speaking", "thinking", "calling_tool", "speaking", "restoring", "ended"]


class StateChanged(msgspec.Struct, frozen=True, tag="state", omit_defaults=True):
    """What the session is doing now (docs/protocol.md, `state`)."""

    state: State
    reason: str = ""


class PartialTranscript(msgspec.Struct, frozen=True, tag="partial", omit_defaults=True):
    """Text so far of the turn; each replaces the one before it."""

    role: Literal["user", "assistant"]
    text: str
    turn: int
    generation: int = 0


Moment = StateChanged | PartialTranscript

_decoder: msgspec.msgpack.Decoder[Moment] = msgspec.msgpack.Decoder(Moment)


def decode(payload: bytes) -> Moment:
    """Read a moment from the bus."""
    return _decoder.decode(payload)
