"""What the voice service tells the gateway about the moment: never stored, never replayed, replaced by what comes next."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

State = Literal["connecting", "listening", "user_speaking", "thinking", "calling_tool", "speaking", "restoring", "ended"]


class StateChanged(msgspec.Struct, frozen=True, tag="state", omit_defaults=True):
    """What the session is doing now (docs/protocol.md, `state`)."""

    state: State
    reason: str = ""


class PartialTranscript(msgspec.Struct, frozen=True, tag="partial", omit_defaults=True):
    """Text so far of the turn; each replaces the one before it. On the bus `text` is what follows the first `offset` code points of the
    one before it (`voxbridge.shared.bus.partials`)."""

    role: Literal["user", "assistant"]
    text: str
    turn: int
    generation: int = 0
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Nothing where `text` is all of it."""

    check: int = 0
    """The CRC-32 of the whole text in UTF-8, where there is an offset: a reader that missed something notices."""


Moment = StateChanged | PartialTranscript

_decoder: msgspec.msgpack.Decoder[Moment] = msgspec.msgpack.Decoder(Moment)


def decode(payload: bytes) -> Moment:
    """Read a moment from the bus."""
    return _decoder.decode(payload)
