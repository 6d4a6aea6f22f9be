"""A stand-in for the Gemini Live API: BidiGenerateContent over a WebSocket with TLS, as the google-genai SDK speaks it.

Keeps no state on disk. It performs the test's script, detects speech by loudness, refuses what the service refuses (`rules`, with the
source of each rule), and fails on request.

    async with GeminiServer(folder) as server:
        server.script(Turn(hears="what time is it", calls=[Call("get_time")], after="It is noon."))
        # SSL_CERT_FILE=server.ca_file, GOOGLE_GEMINI_BASE_URL=server.url

The next turn is triggered by text, by `activityEnd`, by the silence after speech in the audio itself, or by `server.turn`.
"""

from __future__ import annotations

import asyncio
import http
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response

from tests.fakes import tls
from tests.fakes.gemini.handles import Handles
from tests.fakes.gemini.rules import VOICES, Options
from tests.fakes.gemini.session import Session, Shared
from tests.fakes.gemini.turns import Call, Line, Turn
from tests.fakes.gemini.wire import Wire

__all__ = ["VOICES", "Call", "GeminiServer", "Line", "Options", "Refusal", "Session", "Turn"]

PATIENCE_S: Final = 10.0
_PATH: Final = re.compile(r"/+ws/google\.ai\.generativelanguage\.(v1|v1beta|v1alpha)\.GenerativeService\.BidiGenerateContent")
_MESSAGE_LIMIT: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Refusal:
    """Failure of a connection attempt: an HTTP `status` instead of the upgrade; or a close `code` instead of `setupComplete`; or `drop`, a
    TCP reset in the handshake; otherwise the setup is never answered."""

    status: int = 0
    code: int = 0
    reason: str = ""
    drop: bool = False


class GeminiServer:
    """The service. `url` is for `GOOGLE_GEMINI_BASE_URL`, `ca_file` for `SSL_CERT_FILE`; it keeps its port through `stop` and `start`.

    `authority` (from `tls.issue`) lets several stand-ins share one CA."""

    def __init__(self, folder: Path, options: Options | None = None, *, authority: tuple[Path, ssl.SSLContext] | None = None) -> None:
        self.options = options or Options()
        self.ca_file, self._context = authority or tls.issue(folder)
        self.handles = Handles(self.options)
        self.sessions: list[Session] = []
        """Every connection that was upgraded, oldest first, with what it sent."""

        self.attempts = 0
        """Number of connection attempts, including refused ones."""

        self.reply: Callable[[Session], Turn | None] = lambda _: Turn(says="All right.")
        """Next turn of the model when the script is used up."""

        self._port = 0
        self._server: Server | None = None
        self._script: list[Turn] = []
        self._refusals: list[Refusal] = []
        self._refused: dict[ServerConnection, Refusal] = {}
        self._wires: set[Wire] = set()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._shared = Shared(self.options, self.handles, self._script, self._reply, self._changed)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def connections(self) -> list[Session]:
        """Sessions whose socket is open now."""
        return [session for session in self.sessions if session.open]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        if self._shared.errors:
            raise self._shared.errors[0]

    async def start(self) -> None:
        """Listen: on a free port the first time, then on the same."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self._port,
            ssl=self._context,
            create_connection=Wire,
            process_request=self._process_request,
            compression=None,
            ping_interval=None,
            close_timeout=1,
            max_size=_MESSAGE_LIMIT,
            max_queue=None,
        )
        self._port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Cut every connection and stop listening, as when the service is down. Conversations are kept."""
        if self._server is not None:
            for wire in self._wires:
                wire.transport.abort()
            self._server.close()
            await self._server.wait_closed()

    def script(self, *turns: Turn) -> None:
        """Append the next turns of the model, on whichever connection triggers them."""
        self._script.extend(turns)

    async def turn(self, session: Session, turn: Turn) -> None:
        """Perform a turn now, after those under way; returns when it is over."""
        await session.model.trigger(turn, interrupts=False)

    def conversation(self, handle: str) -> list[Line]:
        """Return the conversation that is kept under a handle."""
        return list(self.handles.issued[handle].history)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after every message. Raises `TimeoutError` after 10 s."""
        if not holds():
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((holds, waiting))
            async with asyncio.timeout(PATIENCE_S):
                await waiting

    async def opened(self, count: int = 1) -> Session:
        """Wait until so many sessions in all were set up. Return the last of them."""
        await self.until(lambda: len(self._ready()) >= count)
        return self._ready()[count - 1]

    def refuse(self, *refusals: Refusal) -> None:
        """Set the failures of the next connection attempts."""
        self._refusals.extend(refusals)

    async def go_away(self, time_left: str = "50s", *, then_silent: bool = False, session: Session | None = None) -> None:
        """Announce that connections will be closed, without closing them. `then_silent`: nothing more is sent over them."""
        for one in self._of(session):
            await one.send({"goAway": {"timeLeft": time_left}})
            one.mute = then_silent

    async def close(self, code: int, reason: str = "", *, session: Session | None = None) -> None:
        """Close connections."""
        for one in self._of(session):
            await one.close(code, reason)

    def kill(self, *, session: Session | None = None) -> None:
        """Cut TCP in the middle of a frame, without a close."""
        for one in self._of(session):
            self.half_a_message(session=one)
            one.wire.transport.abort()

    def half_a_message(self, *, session: Session | None = None) -> None:
        """Send the first half of a frame, and nothing after it."""
        for one in self._of(session):
            if one.broken:
                continue
            one.mute = one.broken = True
            frame = Frame(Opcode.BINARY, b'{"serverContent":{"modelTurn":{"parts":[]}}}').serialize(mask=False)
            one.wire.transport.write(frame[: len(frame) // 2])

    async def malformed(self, payload: bytes = b'{"serverContent":{"modelTurn":', *, session: Session | None = None) -> None:
        """Send a message that is not JSON."""
        for one in self._of(session):
            await one.send_raw(payload)

    def release_pongs(self) -> None:
        """Send the pongs that `Options.pong_delay_s` delays."""
        for wire in self._wires:
            wire.release_pongs()

    def _of(self, session: Session | None) -> list[Session]:
        return self.connections if session is None else [session]

    def _ready(self) -> list[Session]:
        return [session for session in self.sessions if session.ready]

    def _reply(self, session: Session) -> Turn | None:
        return self.reply(session)

    def _changed(self) -> None:
        still = []
        for holds, waiting in self._waiting:
            if waiting.done():
                continue
            if holds():
                waiting.set_result(None)
            else:
                still.append((holds, waiting))
        self._waiting = still

    def _process_request(self, wire: ServerConnection, request: Request) -> Response | None:
        self.attempts += 1
        if not _PATH.fullmatch(urlsplit(request.path).path):
            return wire.respond(http.HTTPStatus.NOT_FOUND, "no such method\n")
        if not self._refusals:
            return None
        refusal = self._refusals.pop(0)
        if refusal.drop:
            wire.transport.abort()
        if refusal.status or refusal.drop:
            return wire.respond(http.HTTPStatus(refusal.status or 503), refusal.reason or "refused\n")
        self._refused[wire] = refusal
        return None

    async def _serve(self, wire: ServerConnection) -> None:
        assert isinstance(wire, Wire)
        assert wire.request is not None
        wire.options = self.options
        self._wires.add(wire)
        asked = urlsplit(wire.request.path)
        version = _PATH.fullmatch(asked.path)
        key = wire.request.headers.get("x-goog-api-key") or parse_qs(asked.query).get("key", [""])[0]
        loop = asyncio.get_running_loop()
        session = Session(
            self._shared, wire, len(self.sessions) + 1, key=key, api_version=version[1] if version else "", opened_at=loop.time()
        )
        self.sessions.append(session)
        try:
            refusal = self._refused.pop(wire, None)
            if refusal is None:
                await session.serve()
            else:
                await session.refuse(refusal.code, refusal.reason)
        finally:
            session.closed_at = loop.time()
            self._wires.discard(wire)
            self._changed()
