"""A conversation in text over HTTP: one message, one answer, in a session like that of a page.

Owns the exchange: the session is opened or resumed, the text is written into it, and what the agent says in its turn is collected. Does not
own the session, which outlives each exchange for as long as one without a client waits. A crash here loses an answer; the log has it, and
the next exchange of the conversation goes on.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.core.messages import TEXT_LIMIT
from voxbridge.services.gateway.core.outbound import Message
from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.services.gateway.door.transport import Sink
from voxbridge.shared.agents import talking
from voxbridge.shared.errors import Code, VoxbridgeError

ANSWER_S: Final = 120.0
"""Seconds in which an answer must have come."""

OPEN_S: Final = 15.0
"""Seconds in which the session must have been opened or resumed."""

NEWS_LIMIT: Final = 16
"""Texts that the agent said by itself between two answers; older ones are dropped."""

TOLD_LIMIT: Final = 8_192
"""Messages of a session that may wait to be read."""

SWITCHED: Final = "Let's switch to voice mode."
"""Message of an answer that asks for voice and has no words of its own."""

_TOKEN: Final = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{1,128})\.(\d{1,15})")
_NORMAL: Final = 1000


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message, and the conversation that it belongs to: `conversation` as the answer before told it, empty for a new one, whose agent is
    what `configure` says."""

    message: str
    conversation: str = ""
    configure: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent's answer. `startVoiceSession`: the client is to go on by voice, where `pendingRequest` comes first. `steps` has
    `Using NAME` for each tool that was called. `news` is what the agent has said by itself since the answer before: that a task is done."""

    message: str
    start_voice_session: bool
    pending_request: str | None
    steps: tuple[str, ...]
    news: tuple[str, ...]
    conversation: str


class ChatSocket:
    """The socket of one exchange: what the gateway writes to it is read here. It plays no sound."""

    congested: Final = False

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._told: asyncio.Queue[Message] = asyncio.Queue(TOLD_LIMIT)
        self._left = False
        self.seq = 0
        """Position of the newest fact that was read."""

    def attach(self, sink: Sink, budget: Budget) -> None:
        """Take the receiver of what the client says. `budget` counts bytes of sockets, and this one has none."""
        del budget
        self._sink = sink

    def widen(self) -> None:
        """Take longer messages: they are never read from bytes here."""

    def gather(self) -> None:
        """Write messages together: each is read at once here."""

    def drop_queue(self) -> None:
        """Discard what was not read."""
        while not self._told.empty():
            self._told.get_nowait()

    async def drained(self) -> None:
        """Wait until more can be written, which is always."""

    def send_text(self, payload: bytes) -> None:
        """Take a message of the gateway."""
        try:
            self._told.put_nowait(msgspec.json.decode(payload))
        except asyncio.QueueFull:
            if self._sink is not None:
                self._sink.overflowed()

    def send_binary(self, payload: bytes) -> None:
        """Drop sound."""

    def finish(self, code: int, reason: str) -> None:
        """Take the close of the gateway."""
        if not self._told.full():
            self._told.put_nowait({"type": "closed", "code": code, "reason": reason})
        asyncio.get_running_loop().call_soon(self.leave)

    def leave(self) -> None:
        """Close the socket; the session goes on for a while."""
        if self._sink is not None and not self._left:
            self._left = True
            self._sink.lost(_NORMAL)

    def say(self, message: Mapping[str, Any]) -> None:
        """Say a message as a client does."""
        if self._sink is not None:
            self._sink.text(msgspec.json.encode(message))

    async def next(self) -> Message:
        """Return the next message. Raises the gateway's error, and `UNAVAILABLE` where it closed."""
        message = await self._told.get()
        self.seq = max(self.seq, message.get("seq", 0))
        if message["type"] == "error":
            raise VoxbridgeError(
                Code(message["code"]), message["message"], field=message.get("field"), retry_after_ms=message.get("retry_after_ms")
            )
        if message["type"] in ("closed", "session_ended"):
            raise VoxbridgeError(Code.UNAVAILABLE, "The conversation ended before the answer. Begin another one.", field="conversation")
        return message


class Exchange:
    """One message and its answer. `serve` serves a socket of the key, until it closes."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._socket = ChatSocket()
        self._text_id = secrets.token_hex(8)
        self._said: list[str] = []
        self._steps: list[str] = []
        self._news: deque[str] = deque(maxlen=NEWS_LIMIT)
        self._voice = False
        self._pending: str | None = None

    async def run(self, serve: Callable[[ChatSocket], Awaitable[None]]) -> AsyncGenerator[str | Answer, None]:
        """Yield the answer's text so far, each time that there is more of it, and then the answer. Raises the errors of the session, and
        `TIMED_OUT`."""
        serving = asyncio.ensure_future(serve(self._socket))
        try:
            await asyncio.sleep(0)  # it attaches itself
            async with asyncio.timeout(OPEN_S):
                conversation = await self._open()
            self._socket.say({"type": "text", "text": self._asked.message, "id": self._text_id})
            async with asyncio.timeout(ANSWER_S):
                async for text in self._answer():
                    yield text
            message = " ".join(self._said) or (SWITCHED if self._voice else "")
            yield Answer(
                message=message,
                start_voice_session=self._voice,
                pending_request=self._pending,
                steps=tuple(self._steps),
                news=tuple(self._news),
                conversation=f"{conversation}.{self._socket.seq}",
            )
        except TimeoutError:
            raise VoxbridgeError(Code.TIMED_OUT, f"There was no answer within {ANSWER_S:g} s.", retry_after_ms=1_000) from None
        finally:
            self._socket.leave()
            await serving

    async def _open(self) -> str:
        """Open or resume the session. Return its id and its token."""
        before = _TOKEN.fullmatch(self._asked.conversation)
        if before is None:
            self._socket.say({**self._asked.configure, "type": "configure", "output": "text", "modes": True})
        else:
            self._socket.seq = int(before[3])
            self._socket.say({"type": "resume", "sessionId": before[1], "resumeToken": before[2], "last_seq": int(before[3])})
        while True:
            message = await self._socket.next()
            if message["type"] == "setup_complete" and before is None:
                return f"{message['sessionId']}.{message['resumeToken']}"
            if message["type"] == "resumed" and before is not None:
                return f"{before[1]}.{before[2]}"

    async def _answer(self) -> AsyncIterator[str]:
        turn = 0
        while True:
            message = await self._socket.next()
            match message:
                case {"type": "transcript", "role": "user", "id": str(said)} if said == self._text_id:
                    turn = message["turn"]
                case {"type": "transcript", "role": "assistant", "turn": int(of), "text": str(text), "final": False} if of == turn > 0:
                    yield " ".join([*self._said, text])
                case {"type": "text" | "transcript", "turn": int(of), "text": str(text)} if of == turn > 0 and text and "id" not in message:
                    self._said.append(text)
                    yield " ".join(self._said)
                case {"type": "text", "text": str(text)} if text and self._asked.conversation:
                    self._news.append(text)
                case {"type": "function_call", "name": str(name), "args": dict(arguments)} if turn:
                    self._called(message, name, arguments)
                case {"type": "turn_complete", "turn": int(of)} if of == turn > 0:
                    return

    def _called(self, message: Message, name: str, arguments: Mapping[str, Any]) -> None:
        if message["server_handled"]:
            self._steps.append(f"Using {name}")
            return
        result = self._asked_for_voice(arguments) if name == talking.START.name else _refused(name)
        self._socket.say({"type": "browser_function_result", "name": name, "fn_call_id": message["fn_call_id"], "result": result})

    def _asked_for_voice(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = arguments.get("pending_request")
        pending = given.strip() if isinstance(given, str) else ""
        if len(pending) > talking.PENDING_LIMIT:
            return _failed("INVALID_ARGUMENT", f"pending_request has at most {talking.PENDING_LIMIT} characters")
        self._voice, self._pending = True, pending or self._pending
        told = {"voice_session_requested": True, "pending_request": pending or None, "message": "Voice session will be activated by client"}
        return {"ok": True, "data": told}


def asked(body: bytes) -> Asked:
    """Parse the body of a request. Raises `INVALID_ARGUMENT` and `TOO_LARGE` naming the field."""
    try:
        found = msgspec.json.decode(body, type=Asked)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, msgspec.ValidationError) else "it is not a JSON object in UTF-8"
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The body is wrong: {reason}.", field="body") from None
    if not found.message.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "`message` is empty.", field="message")
    if len(found.message) > TEXT_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"`message` has at most {TEXT_LIMIT} characters.", field="message", limit=TEXT_LIMIT)
    if found.conversation and _TOKEN.fullmatch(found.conversation) is None:
        why = "`conversation` is as the answer before told it; leave it out to begin one."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, why, field="conversation")
    return found


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"ok": False, "success": False, "error": {"type": kind, "message": message, "retryable": False}}


def _refused(name: str) -> dict[str, Any]:
    return _failed("MODE_RESTRICTED", f"{name} only available in voice mode")
