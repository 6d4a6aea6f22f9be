"""Audio frames: a 16-byte prefix and PCM16, the same bytes on the browser's socket and on the bus.

Owns the layout (docs/protocol.md, section 4). A frame is checked once, where it enters the system, and not again.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from voxbridge.shared.errors import Code, VoxbridgeError

VERSION: Final = 1
PCM16: Final = 1
FLUSH: Final = 2
LAST: Final = 0x0001
"""Flag: the last frame of its generation."""

RATE_16K: Final = 0x0002
"""Flag: the payload has 16,000 samples a second, like the microphone's: an echo returns it as it came."""

INPUT_RATE: Final = 16_000
OUTPUT_RATE: Final = 24_000
MAX_FRAME: Final = 65_536
"""Bytes of a frame, prefix included."""

PREFIX: Final = Struct("<BBHIII")
PREFIX_SIZE: Final = PREFIX.size
_GENERATION: Final = slice(4, 8)
_SEQUENCE: Final = slice(8, 12)
_U32: Final = Struct("<I")


class Prefix(NamedTuple):
    """The fields of a prefix, in wire order; `time_ms` is the Unix clock in milliseconds modulo 2**32."""

    version: int
    kind: int
    flags: int
    generation: int
    sequence: int
    time_ms: int


def pack(kind: int, generation: int, sequence: int, time_ms: int, pcm: bytes = b"", flags: int = 0) -> bytes:
    """Build a whole frame. Generation, sequence and time are taken modulo 2**32."""
    return PREFIX.pack(VERSION, kind, flags, generation & 0xFFFFFFFF, sequence & 0xFFFFFFFF, time_ms & 0xFFFFFFFF) + pcm


def parse(frame: bytes) -> Prefix:
    """Return the prefix of a frame that was already checked."""
    return Prefix._make(PREFIX.unpack_from(frame))


def is_microphone(frame: bytes) -> bool:
    """Return whether `check` would pass, at a tenth of its cost."""
    size = len(frame)
    return PREFIX_SIZE < size <= MAX_FRAME and not size % 2 and frame[0] == VERSION and frame[1] == PCM16


def check(frame: bytes) -> Prefix:
    """Return the prefix of a microphone frame from outside; raises `INVALID_ARGUMENT` or `TOO_LARGE` naming the invalid part."""
    if len(frame) > MAX_FRAME:
        raise VoxbridgeError(
            Code.TOO_LARGE, f"An audio frame has at most {MAX_FRAME} bytes, this one {len(frame)}.", field="frame", limit=MAX_FRAME
        )
    if len(frame) < PREFIX_SIZE:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"An audio frame begins with a prefix of {PREFIX_SIZE} bytes; this one has {len(frame)} bytes.",
            field="prefix",
            limit=PREFIX_SIZE,
        )
    prefix = parse(frame)
    if prefix.version != VERSION:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"Audio frame version {prefix.version} is not known; send {VERSION}.", field="version", limit=VERSION
        )
    if prefix.kind != PCM16:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"Audio frame kind {prefix.kind} is not one a client sends; send {PCM16} (pcm16).",
            field="kind",
            limit=PCM16,
        )
    check_pcm(len(frame) - PREFIX_SIZE)
    return prefix


def check_pcm(size: int) -> None:
    """Raise `INVALID_ARGUMENT` unless `size` bytes can be PCM16 in one frame."""
    if size == 0:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "An audio frame carries at least one sample.", field="pcm", limit=2)
    if size % 2:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"PCM16 has two bytes a sample, so its length is even; this one has {size} bytes.", field="pcm"
        )
    if size > MAX_FRAME - PREFIX_SIZE:
        raise VoxbridgeError(
            Code.TOO_LARGE,
            f"An audio frame carries at most {MAX_FRAME - PREFIX_SIZE} bytes of PCM16, this one {size}.",
            field="pcm",
            limit=MAX_FRAME - PREFIX_SIZE,
        )


def restamp(frame: bytes, time_ms: int, position: int) -> bytes:
    """Return a microphone frame as the bus carries it. It has the gateway's time, so that one clock measures every age, and in place of the
    generation the log position of the event that attached its socket, modulo 2**32; 0 if no worker has to wait for that event."""
    stamped = (frame[: _GENERATION.start], _U32.pack(position & 0xFFFFFFFF), frame[_SEQUENCE], _U32.pack(time_ms & 0xFFFFFFFF))
    return b"".join((*stamped, memoryview(frame)[PREFIX_SIZE:]))


def said_behind(frame: bytes) -> bytes:
    """Return the four bytes of the position that `restamp` wrote."""
    return frame[_GENERATION]


def age_ms(time_ms: int, now_ms: int) -> int:
    """Return the age of a frame in ms; the clock wraps every 49 days, and a frame from the future is 0 ms old."""
    age = (now_ms - time_ms) & 0xFFFFFFFF
    return age if age < 0x8000_0000 else 0
