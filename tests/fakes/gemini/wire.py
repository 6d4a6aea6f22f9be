"""The socket under a session of the fake Gemini, and a fast path for audio that is only echoed.

A benchmark measures the systems in front of the fake, so an echo must cost next to nothing: it is made on receipt of the frame, by a search
in its bytes. Unusual messages take the normal path, which reports the error in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State

from tests.fakes.gemini.rules import INPUT_MIME, Options

_HEAD: Final = b'{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"'
_TAIL: Final = b'"}}]}}}'
_MIME: Final = INPUT_MIME.encode()
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def echo_of(message: bytes) -> tuple[bytes | None, int]:
    """Return the message that echoes an audio message's samples, and their length in bytes; None when it needs the normal path."""
    at = message.find(b'"audio"', 0, 64)
    if at < 0 or message[2:10] != b"realtime":
        return None, 0
    key = message.find(b'"data"', at)
    start = message.find(b'"', key + 6) + 1
    end = message.find(b'"', start)
    if key < 0 or start <= 0 or end < 0 or not (message.find(_MIME, end) > 0 or 0 < message.find(_MIME, at) < start):
        return None, 0
    data = message[start:end].translate(_STANDARD)
    body = data.rstrip(b"=")
    length = len(data) // 4 * 3 - (len(data) - len(body))
    if len(data) % 4 or len(data) - len(body) > 2 or length % 2 or body.translate(None, _ALPHABET):
        return None, 0
    return b"".join((_HEAD, data, _TAIL)), length


class Wire(ServerConnection):
    """A socket that can echo audio without waking a task, and can delay pongs."""

    options: Options | None = None
    echo: Callable[[bytes], bytes | None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: list[Frame] = []
        self._send_frame = self.protocol.send_frame
        self.protocol.send_frame = self._frame  # type: ignore[method-assign]

    def process_event(self, event: Event) -> None:
        """Echo an audio message; process other events as usual."""
        if self.echo is not None and isinstance(event, Frame) and event.fin and event.opcode in (Opcode.TEXT, Opcode.BINARY):
            answer = self.echo(bytes(event.data))
            if answer is not None:
                if self.protocol.state is State.OPEN:
                    self.protocol.send_binary(answer)
                    self.send_data()
                return
        super().process_event(event)

    def release_pongs(self) -> None:
        """Send the delayed pongs."""
        for frame in tuple(self._held):
            self._release(frame)

    def _release(self, frame: Frame) -> None:
        if any(held is frame for held in self._held):
            self._held = [held for held in self._held if held is not frame]
            if self.protocol.state is State.OPEN:
                self._send_frame(frame)
                self.send_data()

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG and self.options is not None and self.options.pong_delay_s > 0:
            self._held.append(frame)
            self.loop.call_later(self.options.pong_delay_s, self._release, frame)
        else:
            self._send_frame(frame)
