"""Live bytes of terminals on core NATS: output that is followed, keys that are typed, and cards that changed.

Owns the subjects and frames. Nothing here is kept: a viewer that misses a frame sees it in the offset of the next one, and attaches again.

| subject | who publishes | payload |
|---|---|---|
| `vx.t.<host>.<terminal>.out` | the terminals service | `Output` |
| `vx.t.<host>.<terminal>.in` | the gateway | `Typed`, as MessagePack |
| `vx.t.<host>.<terminal>.card` | the terminals service | `model.Card`, as JSON; empty once it is removed |
"""

from __future__ import annotations

import struct
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from voxbridge.shared.errors import Code, VoxbridgeError

TYPED_LIMIT: Final = 65_536
"""Most bytes that one message types."""

OUTPUT_LIMIT: Final = 262_144
"""Most bytes of output in one message."""

_HEAD: Final = struct.Struct("<BIQ")


class Output(NamedTuple):
    """Bytes that a program wrote, from `offset` since its start number `run`; with `keyframe`, the whole screen at that offset, in place of
    all before it."""

    run: int
    offset: int
    data: bytes | memoryview
    keyframe: bool = False


class Typed(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that a person typed, and who it was. They are counted and never kept."""

    by: Annotated[str, Meta(min_length=1, max_length=128)]
    connection: Annotated[str, Meta(min_length=1, max_length=64)]
    data: Annotated[bytes, Meta(min_length=1, max_length=TYPED_LIMIT)]


def output_subject(host: str, terminal: str) -> str:
    """Return the subject of a terminal's output; `*` stands for any host or terminal."""
    return f"vx.t.{host}.{terminal}.out"


def typed_subject(host: str, terminal: str) -> str:
    """Return the subject of what people type into a terminal."""
    return f"vx.t.{host}.{terminal}.in"


def card_subject(host: str = "*", terminal: str = "*") -> str:
    """Return the subject of a terminal's card, or of all of them."""
    return f"vx.t.{host}.{terminal}.card"


def encode_output(output: Output) -> bytes:
    """Return the frame of some output."""
    return _HEAD.pack(output.keyframe, output.run, output.offset) + output.data


def decode_output(frame: bytes) -> Output:
    """Return the output of a frame. Raises `INVALID_MESSAGE` for one that is too short."""
    if len(frame) < _HEAD.size:
        raise VoxbridgeError(Code.INVALID_MESSAGE, f"A frame of output has {_HEAD.size} bytes at least.", limit=_HEAD.size)
    keyframe, run, offset = _HEAD.unpack_from(frame)
    return Output(run=run, offset=offset, data=memoryview(frame)[_HEAD.size :], keyframe=bool(keyframe))
