"""A stand-in for OpenAI Realtime on a loopback port: the GA events over a socket, strict input checks, scripted output.

A conversation behaves as the service's: speech is committed by loudness on the timeline of the audio (not of the clock), each commit or
`response.create` takes the next scripted `Turn`, audio is sent faster than it plays, one response at a time. Nothing sleeps.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec
import numpy as np
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.eventually import BOUND_S
from tests.fakes.openai import realtime_rules as rules
from tests.fakes.openai.realtime_rules import BYTES_PER_MS, Refused
from tests.fakes.openai.realtime_turns import Turn

KEY: Final = "sk-scripted"
_WINDOW: Final = 20 * BYTES_PER_MS
_LOUD: Final = 600.0
"""Least RMS of a window that counts as speech."""

_DELTA_MS: Final = 100
_ECHO: Final = '{"type":"input_audio_buffer.append","audio":"'
_ECHOED: Final = (
    '{"type":"response.output_audio.delta","event_id":"e","response_id":"%s","item_id":"%s","output_index":0,"content_index":0,"delta":"'
)


class OpenAIRealtimeServer:
    """The service. `url` is the base URL for the SDK. `sessions` has the sessions in the order in which they were opened."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self.sessions: list[Session] = []
        self.dialled: list[str] = []
        """Requested models, including refused ones."""

        self.turns: list[Turn] = []
        self.usual = Turn(says="All right.", audio_ms=200)
        self.reply: Callable[[Session], Turn] = lambda _: self.usual
        """Returns a session's next response when none is scripted."""

        self.echo = False
        """Every microphone frame is returned as audio of one endless response."""

        self.silent = False
        """Nothing is answered."""

        self._tls = tls
        self._refusals: list[tuple[int, str]] = []
        self._opening: Callable[[Session], Any] | None = None
        self._server: Server | None = None
        self._changed = asyncio.Condition()

    def script(self, *turns: Turn) -> None:
        """Append the next responses; after the last, `reply` chooses."""
        self.turns.extend(turns)

    def refuse(self, status: int, code: str = "") -> None:
        """Answer the next request for a socket with this HTTP status."""
        self._refusals.append((status, code))

    def on_open(self, action: Callable[[Session], Any]) -> None:
        """Await this instead of serving the next sessions."""
        self._opening = action

    async def session(self, count: int = 1) -> Session:
        """Wait for the `count`-th session, and return it."""
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(lambda: len(self.sessions) >= count)
        return self.sessions[count - 1]

    async def __aenter__(self) -> OpenAIRealtimeServer:
        self._server = await serve(
            self._serve, "127.0.0.1", 0, process_request=self._admit, compression=None, max_size=None, ssl=self._tls, close_timeout=0.2
        )
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        for session in self.sessions:
            session.kill()
        self._server.close()
        await self._server.wait_closed()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        address = urlsplit(request.path)
        model = parse_qs(address.query).get("model", [""])[0]
        self.dialled.append(model)
        status, code = self._refusals.pop(0) if self._refusals else (0, "")
        if request.headers.get("OpenAI-Beta"):
            status, code = 400, "beta_api_shape_disabled"
        elif address.path != "/v1/realtime":
            status, code = 404, "not_found"
        elif not model:
            status, code = 400, "missing_model"
        elif request.headers.get("Authorization") != f"Bearer {KEY}":
            status, code = 401, "invalid_api_key"
        if not status:
            return None
        body = json.dumps({"error": {"message": f"refused {request.headers.get('Authorization')}", "type": "scripted", "code": code}})
        return connection.respond(HTTPStatus(status), body)

    async def _serve(self, connection: ServerConnection) -> None:
        session = Session(self, connection)
        async with self._changed:
            self.sessions.append(session)
            self._changed.notify_all()
        with suppress(ConnectionClosed):
            if self._opening is not None:
                await self._opening(session)
            await session.serve()
        await session.stop()


class Session:
    """A session on one socket."""

    def __init__(self, server: OpenAIRealtimeServer, socket: ServerConnection) -> None:
        self.events: list[dict[str, Any]] = []
        """Received events, without microphone frames."""

        self.heard = bytearray()
        """All microphone audio."""

        self.errors: list[dict[str, Any]] = []
        """Errors that were sent."""

        self.settings: dict[str, Any] = {}
        self.items: dict[str, Any] = {}
        """The conversation, in order."""

        self.truncated: dict[str, int] = {}
        self._server = server
        self._socket = socket
        self._detection: rules.ServerVad | rules.SemanticVad | None = rules.ServerVad()
        self._voice = ""
        self._spoke = False
        self._transcribes = False
        self._calls: set[str] = set()
        self._durations: dict[str, int] = {}
        self._count = 0
        self._buffered = 0
        self._seen = 0
        self._speech = False
        self._quiet_ms = 0
        self._user_item = ""
        self._response: dict[str, Any] | None = None
        self._making: asyncio.Task[None] | None = None
        self._released = asyncio.Event()
        self._changed = asyncio.Condition()
        self._echo_head = ""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a type."""
        return [event for event in self.events if event["type"] == kind]

    async def until(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the `count`-th event of a type, and return it."""
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    async def until_heard(self, size: int) -> None:
        """Wait for so many bytes of audio."""
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(lambda: len(self.heard) >= size)

    def release(self) -> None:
        """Let a held response continue."""
        self._released.set()

    def kill(self, *, mid_frame: bool = False) -> None:
        """Cut the connection without a close, optionally after half a frame."""
        if mid_frame:
            self._socket.transport.write(b'\x81\x7e\x10\x00{"type":"response.')
        self._socket.transport.abort()

    def deafen(self) -> None:
        """Stop reading, even close frames."""
        self._socket.transport.pause_reading()

    async def close(self, code: int, reason: str = "") -> None:
        """Close the socket with a code."""
        await self._socket.close(code, reason)

    async def expire(self) -> None:
        """End the session as the service does after sixty minutes."""
        message = "Your session hit the maximum duration of 60 minutes."
        await self.fail("session_expired", message)
        await self.close(1001)

    async def fail(self, code: str, message: str = "scripted", kind: str = "invalid_request_error") -> None:
        """Send an `error` that no event caused."""
        await self.send("error", error={"type": kind, "code": code, "message": message, "param": None, "event_id": None})

    async def raw(self, message: str | bytes) -> None:
        """Send a raw message."""
        await self._socket.send(message)

    async def send(self, kind: str, **fields: Any) -> None:
        """Send a server event."""
        if not self._server.silent:
            await self._socket.send(json.dumps({"type": kind, "event_id": self._id("event"), **fields}))

    async def serve(self) -> None:
        """Answer until the socket closes."""
        await self.send("session.created", session={"type": "realtime", "object": "realtime.session", "id": "sess_1"})
        async for message in self._socket:
            if self._server.echo and isinstance(message, str) and message.startswith(_ECHO):
                await self._back(message[len(_ECHO) : -2])
                continue
            event: rules.ClientEvent | None = None
            try:
                event = rules.read(message)
                await self._take(event)
            except Refused as refused:
                given = json.loads(message).get("event_id") if isinstance(message, str) and message.startswith("{") else None
                fields = {**refused.fields, "event_id": given}
                self.errors.append(fields)
                await self.send("error", error=fields)
            async with self._changed:
                if event is not None and not isinstance(event, rules.Append):
                    self.events.append(json.loads(message))
                self._changed.notify_all()

    async def stop(self) -> None:
        """Cancel the response under way."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)

    async def _take(self, event: rules.ClientEvent) -> None:
        match event:
            case rules.Append() if self._server.echo:
                await self._back(event.audio)
            case rules.Append():
                await self._hear(rules.pcm(event.audio))
            case rules.SessionUpdate():
                await self._configure(event)
            case rules.ItemCreate():
                rules.check_item(event.item, self._calls)
                if isinstance(event.item, rules.CallItem):
                    self._calls.add(event.item.call_id)
                await self._add(event.item.id or self._id("item"), msgspec.to_builtins(event.item))
            case rules.Truncate():
                await self._truncate(event)
            case rules.Commit():
                if self._buffered < rules.SHORTEST_MS * BYTES_PER_MS:
                    ms = self._buffered / BYTES_PER_MS
                    message = (
                        f"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but had {ms:.2f}ms."
                    )
                    raise Refused("input_audio_buffer_commit_empty", message)
                await self._commit(self._id("item"))
            case rules.Clear():
                self._buffered = 0
                await self.send("input_audio_buffer.cleared")
            case rules.ResponseCreate():
                if self._response is not None:
                    message = f"Conversation already has an active response in progress: {self._response['id']}."
                    raise Refused("conversation_already_has_active_response", message)
                await self._respond(self._next())
            case rules.ResponseCancel():
                if self._response is None or event.response_id not in (None, self._response["id"]):
                    raise Refused("response_cancel_not_active", "Cancellation failed: no active response found")
                await self._cancel("client_cancelled")

    async def _configure(self, event: rules.SessionUpdate) -> None:
        output, heard = event.session.audio.output, event.session.audio.input
        if output.voice is not None and output.voice != self._voice:
            if output.voice not in rules.VOICES:
                raise Refused("invalid_value", f"Invalid value: '{output.voice}'.", param="session.audio.output.voice")
            if self._spoke:
                message = "Cannot update a conversation's voice if assistant audio is present."
                raise Refused("cannot_update_voice", message, param="session.audio.output.voice")
            self._voice = output.voice
        if not isinstance(heard.turn_detection, msgspec.UnsetType):
            self._detection = heard.turn_detection
        self._transcribes = heard.transcription is not None
        self.settings = msgspec.to_builtins(event.session)
        await self.send("session.updated", session=self.settings)

    async def _truncate(self, event: rules.Truncate) -> None:
        duration = self._durations.get(event.item_id)
        if duration is None:
            raise Refused("item_truncate_invalid_item_id", f"Error truncating item: item '{event.item_id}' not found.", param="item_id")
        if event.content_index:
            raise Refused("invalid_value", "Only content_index 0 can be truncated.", param="content_index")
        if event.audio_end_ms > duration:
            message = f"Audio content of {duration}ms is already shorter than {event.audio_end_ms}ms"
            raise Refused("invalid_value", message, param="audio_end_ms")
        self.truncated[event.item_id] = self._durations[event.item_id] = event.audio_end_ms
        await self.send("conversation.item.truncated", item_id=event.item_id, content_index=0, audio_end_ms=event.audio_end_ms)

    async def _hear(self, pcm: bytes) -> None:
        self.heard += pcm
        self._buffered += len(pcm)
        while len(self.heard) - self._seen >= _WINDOW and self._detection is not None:
            window = np.frombuffer(bytes(self.heard[self._seen : self._seen + _WINDOW]), "<i2").astype(np.float64)
            self._seen += _WINDOW
            await self._judge(loud=float(np.sqrt(np.mean(window**2))) >= _LOUD)

    async def _judge(self, *, loud: bool) -> None:
        detection = self._detection
        assert detection is not None
        at = self._seen // BYTES_PER_MS
        silence_ms = detection.silence_duration_ms if isinstance(detection, rules.ServerVad) else 200
        if loud and not self._speech:
            self._speech, self._quiet_ms, self._user_item = True, 0, self._id("item")
            await self.send("input_audio_buffer.speech_started", audio_start_ms=max(0, at - 320), item_id=self._user_item)
            if detection.interrupt_response and self._response is not None:
                await self._cancel("turn_detected")
        elif self._speech:
            self._quiet_ms = 0 if loud else self._quiet_ms + 20
            if self._quiet_ms >= silence_ms:
                self._speech = False
                await self.send("input_audio_buffer.speech_stopped", audio_end_ms=at, item_id=self._user_item)
                await self._commit(self._user_item)
                if detection.create_response and self._response is None:
                    await self._respond(self._next())

    async def _commit(self, item: str) -> None:
        self._buffered = 0
        turn = self._server.turns[0] if self._server.turns else self._server.usual
        await self.send("input_audio_buffer.committed", item_id=item, previous_item_id=next(reversed(self.items), None))
        await self._add(item, {"type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": None}]})
        if not self._transcribes:
            return
        kind = "conversation.item.input_audio_transcription"
        if turn.unheard:
            await self.send(f"{kind}.failed", item_id=item, content_index=0, error={"type": "server_error", "message": "scripted"})
            return
        for word in turn.hears.split(" ")[:-1]:
            await self.send(f"{kind}.delta", item_id=item, content_index=0, delta=f"{word} ")
        usage = {"type": "duration", "seconds": 1.0}
        for _ in range(1 + turn.hears_twice):
            await self.send(f"{kind}.completed", item_id=item, content_index=0, transcript=turn.hears, usage=usage)

    async def _add(self, id: str, item: dict[str, Any]) -> None:
        previous = next(reversed(self.items), None)
        self.items[id] = item = {**item, "id": id, "object": "realtime.item"}
        await self.send("conversation.item.added", item=item, previous_item_id=previous)
        await self.send("conversation.item.done", item=item, previous_item_id=previous)

    def _next(self) -> Turn:
        return self._server.turns.pop(0) if self._server.turns else self._server.reply(self)

    async def _respond(self, turn: Turn) -> None:
        self._response = {"id": self._id("resp"), "object": "realtime.response", "status": "in_progress", "output": []}
        self._released.clear()
        await self.send("response.created", response=self._response)
        self._making = asyncio.create_task(self._make(turn, self._response))

    async def _make(self, turn: Turn, response: dict[str, Any]) -> None:
        with suppress(ConnectionClosed):
            if turn.broken:
                await self.raw(turn.broken)
            if turn.says or turn.audio_ms:
                await self._say(turn, response)
            if turn.writes:
                await self._write(turn.writes, response)
            for name, arguments in turn.calls:
                await self._call(name, arguments, response, hold=turn.hold_call)
            await self._end(response, turn.status, turn.reason)

    async def _say(self, turn: Turn, response: dict[str, Any]) -> None:
        item = await self._begin({"type": "message", "role": "assistant", "content": []}, response)
        self._durations[item["id"]] = 0
        where = {"response_id": response["id"], "item_id": item["id"], "output_index": len(response["output"]) - 1, "content_index": 0}
        words = turn.says.split(" ") if turn.says else []
        total = max(1, -(-turn.audio_ms // _DELTA_MS))
        for number in range(total):
            if 0 <= turn.hold_after_ms <= number * _DELTA_MS:
                await self._released.wait()
            part = words[-(-len(words) * number // total) : -(-len(words) * (number + 1) // total)]
            if part:
                end = "" if number == total - 1 else " "
                await self.send("response.output_audio_transcript.delta", **where, delta=" ".join(part) + end)
            ms = min(_DELTA_MS, turn.audio_ms - number * _DELTA_MS)
            if ms > 0:
                self._spoke = True
                self._durations[item["id"]] += ms
                tone = np.tile(np.array([turn.level, -turn.level], "<i2"), ms * BYTES_PER_MS // 4).tobytes()
                await self.send("response.output_audio.delta", **where, delta=base64.b64encode(tone).decode())
        await self.send("response.output_audio.done", **where)
        await self.send("response.output_audio_transcript.done", **where, transcript=turn.says)
        item["content"].append({"type": "output_audio", "transcript": turn.says})
        await self._finish(item, response, "completed")

    async def _write(self, text: str, response: dict[str, Any]) -> None:
        item = await self._begin({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}, response)
        where = {"response_id": response["id"], "item_id": item["id"], "output_index": 0, "content_index": 0}
        await self.send("response.output_text.delta", **where, delta=text)
        await self.send("response.output_text.done", **where, text=text)
        await self._finish(item, response, "completed")

    async def _call(self, name: str, arguments: str, response: dict[str, Any], *, hold: bool) -> None:
        call = self._id("call")
        item = await self._begin({"type": "function_call", "name": name, "call_id": call, "arguments": arguments}, response)
        self._calls.add(call)
        if hold:
            await self._released.wait()
        where = {"response_id": response["id"], "item_id": item["id"], "output_index": 0, "call_id": call}
        await self.send("response.function_call_arguments.done", **where, name=name, arguments=arguments)
        await self._finish(item, response, "completed")

    async def _begin(self, fields: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
        item = {**fields, "id": self._id("item"), "object": "realtime.item", "status": "in_progress"}
        response["output"].append(item)
        self.items[item["id"]] = item
        await self.send("response.output_item.added", response_id=response["id"], output_index=0, item=item)
        return item

    async def _finish(self, item: dict[str, Any], response: dict[str, Any], status: str) -> None:
        item["status"] = status
        await self.send("response.output_item.done", response_id=response["id"], output_index=0, item=item)

    async def _cancel(self, reason: str) -> None:
        response, making = self._response, self._making
        assert response is not None
        assert making is not None
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        for item in response["output"]:
            if item["status"] == "in_progress":
                if item["type"] == "function_call":
                    where = {"response_id": response["id"], "item_id": item["id"], "output_index": 0, "call_id": item["call_id"]}
                    await self.send("response.function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"])
                await self._finish(item, response, "incomplete")
        if self._response is response:
            await self._end(response, "cancelled", reason)

    async def _end(self, response: dict[str, Any], status: str, reason: str) -> None:
        self._response = None
        details: dict[str, Any] | None = None
        if status == "failed":
            details = {"type": status, "error": {"type": "server_error", "code": reason or None}}
        elif status != "completed":
            details = {"type": status, "reason": reason or None}
        usage = {"total_tokens": 46, "input_tokens": 34, "output_tokens": 12}
        await self.send("response.done", response={**response, "status": status, "status_details": details, "usage": usage})

    async def _back(self, audio: str) -> None:
        if not self._echo_head:
            response, item = self._id("resp"), self._id("item")
            self._response = {"id": response, "object": "realtime.response", "status": "in_progress", "output": []}
            await self.send("response.created", response=self._response)
            self._echo_head = _ECHOED % (response, item)
        await self._socket.send(f'{self._echo_head}{audio}"}}')

    def _id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"
