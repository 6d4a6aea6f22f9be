"""The stand-in for Gemini Live as a separate process, for loads: echoes audio and keeps none of it.

    python -m tests.fakes.gemini.process FOLDER

Writes its URL to FOLDER/url once it listens, and its CA beside it; ends at SIGTERM. Takes commands, one line of JSON each, over the Unix
socket FOLDER/control, and answers each with a line: `Told`, or `Seen` for a `Report`. Times are those of `time.monotonic`, which all
processes of a machine share. Nothing is recorded until the first `Watch`, so that a load costs only its echo.
"""

from __future__ import annotations

import asyncio
import binascii
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame
from websockets.protocol import Event

from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.session import Session
from tests.fakes.gemini.turns import Line, Turn
from tests.fakes.gemini.wire import Wire

CONTROL: Final = "control"
FRAME_BYTES: Final = 640
"""Bytes of a microphone frame of the loads, 20 ms: each begins with its mark."""

MARK_BYTES: Final = 8
NOTES_LIMIT: Final = 100_000
"""Most marks and times that are kept of one connection."""

LINE_LIMIT: Final = 1 << 20
_DATA: Final = b'"data"'
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


class Watch(msgspec.Struct, frozen=True, tag="watch"):
    """Record what connections opened from now on send and receive. With `echo` they return audio unchanged, ignore text, and issue a handle
    at once; without it they listen and perform the script."""

    echo: bool


class Script(msgspec.Struct, frozen=True, tag="script"):
    """Script of the next turns, in place of any earlier script."""

    turns: list[Turn]


class GoAway(msgspec.Struct, frozen=True, tag="go_away"):
    """Announce over every open connection that it will be closed."""

    time_left: str


class Report(msgspec.Struct, frozen=True, tag="report"):
    """Request for the records of connections with higher numbers than this."""

    after: int = 0


Command = Watch | Script | GoAway | Report


class Told(msgspec.Struct, frozen=True):
    """Answer to a command: done, or the error."""

    newest: int
    """Number of the newest connection, counted from 1."""

    error: str = ""


class Instant(msgspec.Struct, frozen=True, array_like=True):
    """Time at which something was sent, and the CPU time of this process until then, both in s."""

    at: float
    cpu: float


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a connection and its traffic."""

    number: int
    open: bool
    voice: str
    resumed: bool
    marks: list[int]
    """First `MARK_BYTES` of each microphone frame as a little-endian number, in the order of arrival."""

    ready: Instant | None
    """Time of `setupComplete`."""

    called: list[Instant]
    """Time of each `toolCall`."""

    spoke: list[Instant]
    """Time of each message with audio."""

    told: list[str]
    """All texts from the client, including its initial history."""

    answers: list[dict[str, Any]]
    """Function responses, including those to calls that the connection did not make."""

    history: list[Line]


class Seen(msgspec.Struct, frozen=True):
    """The requested connections, oldest first."""

    connections: list[Connection]


class Notes:
    """Recorder of a connection."""

    def __init__(self, wire: Wire) -> None:
        self.marks: list[int] = []
        self.ready: Instant | None = None
        self.called: list[Instant] = []
        self.spoke: list[Instant] = []
        self._process_event: Callable[[Event], None] = wire.process_event
        self._send_frame: Callable[[Frame], None] = wire.protocol.send_frame
        wire.process_event = self._came  # type: ignore[method-assign]
        wire.protocol.send_frame = self._goes  # type: ignore[method-assign]

    def _came(self, event: Event) -> None:
        message = bytes(event.data) if isinstance(event, Frame) else b""
        key = message.find(_DATA)
        start = message.find(b'"', key + len(_DATA)) + 1
        if message.find(b'"audio"', 0, 64) > 0 and key > 0 and start > 0:
            with suppress(binascii.Error):  # invalid audio is refused by the session
                pcm = binascii.a2b_base64(message[start : message.find(b'"', start)].translate(_STANDARD))
                for at in range(0, len(pcm), FRAME_BYTES):
                    _add(self.marks, int.from_bytes(pcm[at : at + MARK_BYTES], "little"))
        self._process_event(event)

    def _goes(self, frame: Frame) -> None:
        head = bytes(frame.data[:96])
        if b'"inlineData"' in head:
            _add(self.spoke, _now())
        elif b'"toolCall"' in head:
            _add(self.called, _now())
        elif b'"setupComplete"' in head:
            self.ready = _now()
        self._send_frame(frame)


class Watched(GeminiServer):
    """The service, with records of its connections."""

    def __init__(self, folder: Path, options: Options) -> None:
        super().__init__(folder, options)
        self._watching = False
        self._notes: dict[ServerConnection, Notes] = {}

    def follow(self, watch: Watch) -> None:
        """Echo or converse from now on, and record new connections."""
        self._watching = True
        self.options.echo = self.options.handle_at_setup = watch.echo
        self.reply = (lambda _: None) if watch.echo else (lambda _: Turn(says="All right."))

    def rescript(self, turns: list[Turn]) -> None:
        """Replace the script."""
        self._script[:] = turns

    def report(self, after: int) -> Seen:
        """Return the records of connections with higher numbers."""
        found = [(session, self._notes.get(session.wire)) for session in self.sessions if session.number > after]
        return Seen([_shown(session, notes) for session, notes in found if notes is not None])

    async def _serve(self, wire: ServerConnection) -> None:
        if self._watching:
            assert isinstance(wire, Wire)
            self._notes[wire] = Notes(wire)
        await super()._serve(wire)


class Control:
    """Handler of the commands on the socket."""

    def __init__(self, server: Watched) -> None:
        self._server = server
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Command).decode

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a control client until it disconnects."""
        try:
            while line := await reader.readline():
                writer.write(self._encode(await self._answer(line)) + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):  # it disconnected, or sent a line longer than `LINE_LIMIT`
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Told | Seen:
        try:
            command = self._decode(line)
        except msgspec.MsgspecError as error:
            return Told(len(self._server.sessions), str(error))
        match command:
            case Watch():
                self._server.follow(command)
            case Script(turns=turns):
                self._server.rescript(turns)
            case GoAway(time_left=time_left):
                await self._server.go_away(time_left)
            case Report(after=after):
                return self._server.report(after)
        return Told(len(self._server.sessions))


def _shown(session: Session, notes: Notes) -> Connection:
    contents = [part.get("text", "") for one in session.contents for turn in one.get("turns", []) for part in turn.get("parts", [])]
    return Connection(
        number=session.number,
        open=session.open,
        voice=session.voice,
        resumed=session.resumed,
        marks=notes.marks,
        ready=notes.ready,
        called=notes.called,
        spoke=notes.spoke,
        told=[*contents, *session.texts],
        answers=[*session.answers, *session.ignored],
        history=session.history,
    )


def _add(notes: list[Any], note: Any) -> None:
    if len(notes) < NOTES_LIMIT:
        notes.append(note)


def _now() -> Instant:
    return Instant(time.monotonic(), time.process_time())


async def serve(folder: Path) -> None:
    """Run until SIGTERM."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with Watched(folder, Options(echo=True, keep_audio=False)) as server:
        control = await asyncio.start_unix_server(Control(server).serve, folder / CONTROL, limit=LINE_LIMIT)
        partial = folder / "url.new"
        partial.write_text(f"{server.url}\n{server.ca_file}\n")
        partial.rename(folder / "url")
        await over.wait()
        control.close()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
