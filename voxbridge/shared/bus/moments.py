"""Moments, which the voice service sends to the gateway: never stored, never replayed, replaced by the next one."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

State = Literal["connecting", "listening", "user_speaking", "thinking", "calling_tool", "speaking", "restoring", "ended"]


class StateChanged(msgspec.Struct, frozen=True, tag="state", omit_defaults=True):
    """State of the session now (docs/protocol.md, `state`)."""

    state: State
    reason: str = ""


class PartialTranscript(msgspec.Struct, frozen=True, tag="partial", omit_defaults=True):
    """Text so far of the turn; each replaces the one before it. On the bus `text` is what follows the first `offset` code points of the one
    before it (`voxbridge.shared.bus.partials`)."""

    role: Literal["user", "assistant"]
    text: str
    turn: int
    generation: int = 0
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Code points; 0 where `text` is the whole text."""

    check: int = 0
    """CRC-32 of the whole text in UTF-8 where there is an offset, so that a reader notices that it missed a message."""


class GreetingBegun(msgspec.Struct, frozen=True, tag="greeting"):
    """The agent begins to say its greeting. Told to clients that ask for it (`ClientCapabilities.chat`), as the next one."""

    text: str


class ReplyWritten(msgspec.Struct, frozen=True, tag="written", omit_defaults=True):
    """The whole text of a reply is known; its sound may still be on its way. `calls` names the functions called in its turn, in order; the
    turn is 0 for an announcement."""

    text: str
    turn: int
    generation: int
    calls: tuple[str, ...] = ()


Moment = StateChanged | PartialTranscript | GreetingBegun | ReplyWritten

_decoder: msgspec.msgpack.Decoder[Moment] = msgspec.msgpack.Decoder(Moment)


_encoder: msgspec.msgpack.Encoder = msgspec.msgpack.Encoder()


def encode(moment: Moment) -> bytes:
    """Encode a moment for the bus."""
    return _encoder.encode(moment)


def decode(payload: bytes) -> Moment:
    """Decode a moment from the bus."""
    return _decoder.decode(payload)
