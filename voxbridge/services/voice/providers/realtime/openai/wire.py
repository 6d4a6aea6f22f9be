"""The socket of an OpenAI Realtime session: what goes over it, and what its end means.

The vendor's SDK opens the socket and reads most events. Two things are done without it, since they occur fifty times a second in each
session and their cost limits sessions per core. A microphone frame is encoded here, base64 between two constants: 1 µs for 20 ms, where
the SDK takes 110 µs to build a dict, transform it by its type hints and dump it. Deltas of audio and words are read by msgspec, base64
included: 1 µs, where the SDK takes 44 µs to build its model of one.
"""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeClientEventParam
from websockets.exceptions import ConnectionClosed, WebSocketException

from voxbridge.services.voice.providers.realtime.base import ConnectionLost
from voxbridge.services.voice.providers.realtime.openai import payloads as shapes
from voxbridge.services.voice.providers.realtime.websocket import Behind, ProviderSocket

CLOSE_S: Final = 1.0
_HEAD: Final = b'{"type":"input_audio_buffer.append","audio":"'
_END: Final = b'"}'
_NAME_LIMIT: Final = 64


class AudioDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="response.output_audio.delta"):
    """PCM16 at 24 kHz, of one item of a response."""

    response_id: str
    item_id: str
    delta: bytes
    content_index: int = 0


class WordsDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="response.output_audio_transcript.delta"):
    """More words of the audio of a response."""

    response_id: str
    delta: str


class TextDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="response.output_text.delta"):
    """More text that a response writes and does not speak."""

    response_id: str
    delta: str


class Kind(msgspec.Struct, frozen=True, gc=False):
    """The type of any event."""

    type: str


_DELTAS: Final = frozenset(str(kind.__struct_config__.tag) for kind in (AudioDelta, WordsDelta, TextDelta))
_deltas: Final = msgspec.json.Decoder(AudioDelta | WordsDelta | TextDelta)
_kind: Final = msgspec.json.Decoder(Kind)


class Wire:
    """Open socket of a session. Every method but `close` raises `ConnectionLost` when the socket is closed."""

    def __init__(self, sdk: AsyncRealtimeConnection) -> None:
        self._sdk = sdk
        self._socket = cast("ProviderSocket", sdk._connection)  # noqa: SLF001 - pinned; tests/deploy/test_internals.py

    def append(self, pcm: bytes) -> None:
        """Send microphone audio: PCM16 at 24 kHz."""
        try:
            self._socket.send_now(b"".join((_HEAD, b2a_base64(pcm, newline=False), _END)))
        except ConnectionClosed as error:
            raise _over(error) from error
        except Behind as error:
            raise ConnectionLost(str(error)) from error

    async def send(self, event: RealtimeClientEventParam) -> None:
        """Send any other event, in the SDK's shape. The SDK's own sending would load another 100 ms of modules in the first session."""
        try:
            await self._socket.send(msgspec.json.encode(event), text=True)
        except ConnectionClosed as error:
            raise _over(error) from error

    async def receive(self) -> tuple[AudioDelta | WordsDelta | TextDelta | Kind, bytes]:
        """Return the next event, as a delta or as its type, and the message that `parse` reads."""
        try:
            message = await self._socket.recv(decode=False)
        except ConnectionClosed as error:
            raise _over(error) from error
        try:
            return _deltas.decode(message), message
        except msgspec.ValidationError:
            return self._kind(message), message
        except msgspec.DecodeError as error:
            raise unreadable() from error

    def parse(self, message: bytes) -> Any:
        """Return the SDK's model of an event. Nothing is validated: a field may be missing or of another type. Raises `ConnectionLost`."""
        try:
            return self._sdk.parse_event(message)
        except (ValueError, TypeError, RecursionError) as error:
            raise unreadable() from error

    async def close(self) -> None:
        """Close the socket; abort it if the vendor does not answer within 1 s."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._sdk.close()
        except (TimeoutError, OSError, WebSocketException):
            self._socket.transport.abort()
            with suppress(OSError, WebSocketException):
                await self._socket.wait_closed()

    def _kind(self, message: bytes) -> Kind:
        try:
            found = _kind.decode(message)
        except msgspec.DecodeError as error:
            raise unreadable() from error
        if found.type in _DELTAS:
            raise unreadable()
        return found


def named(event: Any) -> tuple[str, str, str]:
    """Return type, code and parameter of an `error` event, but not its message, which may quote what was said."""
    return plain(event.error.type), plain(event.error.code), plain(event.error.param)


def plain(value: object) -> str:
    """Return a name that the vendor gave, cut to 64 characters, without characters that no name has."""
    return "".join(letter for letter in str(value or "") if letter.isalnum() or letter in "._-[]")[:_NAME_LIMIT]


def unreadable() -> ConnectionLost:
    """Return the error for a vendor, or a server in its place, that breaks the protocol. The state of the session is unknown then."""
    return ConnectionLost("OpenAI sent something that cannot be read.")


def _over(error: ConnectionClosed) -> ConnectionLost:
    """Return the error for the close frame that the vendor sent, else the one that was sent to it, else none."""
    frame = error.rcvd or error.sent
    return shapes.closed(frame.code, frame.reason) if frame else shapes.closed(1006, "")
