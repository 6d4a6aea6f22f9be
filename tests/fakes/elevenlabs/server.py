"""A stand-in for ElevenLabs' speech over a socket with several contexts, with the same messages on the wire.

A context begins with a single space, is given text, and ends when it is closed; its sound comes in pieces, the end after it. A message that
breaks a rule of the service ends the connection as the service does. Sources: elevenlabs.io/docs/api-reference, "Multi-Context WebSocket",
the message types of the vendor's SDK, and livekit/agents-js #1985 for the limit of contexts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections import deque
from enum import Enum
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.fakes.openai.http import tone
from tests.fakes.sockets import SocketServer

KEY: Final = "xi-key-of-the-tests"
VOICES: Final = {"JBFqnCBsd6RMkjVDRZzb", "cgSgspJ2msm6clMCkdW9"}
CONTEXTS: Final = 5
_PIECE: Final = 4_801
"""Bytes of a piece of sound: odd, since the service promises no whole samples."""

_PATH: Final = re.compile(r"/v1/text-to-speech/(?P<voice>[^/]+)/multi-stream-input")
_MODELS: Final = {"eleven_flash_v2_5", "eleven_flash_v2", "eleven_turbo_v2_5", "eleven_multilingual_v2"}
_WITH_LANGUAGE: Final = {"eleven_flash_v2_5", "eleven_turbo_v2_5"}
_QUERY: Final = {"model_id", "output_format", "auto_mode", "language_code", "inactivity_timeout", "sync_alignment"}
_FIELDS: Final = {"text", "context_id", "voice_settings", "flush", "close_context", "close_socket", "generation_config"}


class Fault(Enum):
    """Faults of the next sentence."""

    CUT = "the connection breaks after the first piece"
    HANG = "nothing more comes after the first piece"
    MUTE = "it ends without a sound"


class Refused(Exception):
    """A broken rule: the name and words of the service."""

    def __init__(self, name: str, words: str, code: int = 1008) -> None:
        super().__init__(words)
        self.name = name
        self.code = code


class ElevenLabsServer(SocketServer):
    """The service. `url` is for `ELEVENLABS_BASE_URL`."""

    def __init__(self, *, key: str = KEY) -> None:
        super().__init__()
        self.key = key
        self.queries: list[dict[str, str]] = []
        """Query of each connection, with its `voice`."""

        self.said: list[tuple[str, dict[str, Any]]] = []
        """Each text, with the voice settings of its context."""

        self.refused: list[str] = []
        self.faults: deque[Fault | Refused] = deque()

    async def drop(self) -> None:
        """Close every connection, as the service does with one that nobody uses."""
        await asyncio.gather(*(connection.close(1000) for connection in self.open))

    @property
    def connections(self) -> int:
        """Number of connections that are open."""
        return len(self.open)

    async def _connection(self, socket: ServerConnection) -> None:
        try:
            voice = self._opened(socket)
            await self._speak(socket, voice)
        except Refused as refusal:
            self.refused.append(str(refusal))
            await socket.send(json.dumps({"message": str(refusal), "error": refusal.name, "code": refusal.code}))
            await socket.close(refusal.code, str(refusal)[:100])
        except ConnectionClosed:
            pass

    def _opened(self, socket: ServerConnection) -> str:
        assert socket.request is not None
        address = urlsplit(socket.request.path)
        query, found = dict(parse_qsl(address.query)), _PATH.fullmatch(address.path)
        if found is None:
            raise Refused("not_found", "Not found")
        if socket.request.headers.get("xi-api-key") != self.key:
            raise Refused("invalid_api_key", "Invalid API key")
        if found["voice"] not in VOICES:
            raise Refused("voice_id_does_not_exist", f"A voice with voice_id {found['voice']} does not exist.")
        if query.keys() - _QUERY or query.get("output_format") != "pcm_24000" or query.get("model_id") not in _MODELS:
            raise Refused("invalid_parameters", f"The parameters are not valid: {query}")
        if "language_code" in query and (query["model_id"] not in _WITH_LANGUAGE or not re.fullmatch("[a-z]{2}", query["language_code"])):
            raise Refused("unsupported_language", "The model does not support the language_code.")
        self.queries.append({**query, "voice": found["voice"]})
        return found["voice"]

    async def _speak(self, socket: ServerConnection, voice: str) -> None:
        contexts: dict[str, dict[str, Any]] = {}
        async for raw in socket:
            message = json.loads(raw)
            if message.keys() - _FIELDS:
                raise Refused("invalid_message", f"Unknown fields: {sorted(message.keys() - _FIELDS)}")
            if message.get("close_socket"):
                await socket.close(1000)
                return
            name = message.get("context_id", "")
            if name not in contexts:
                if message.get("text") != " ":
                    raise Refused("invalid_message", "The first text of a context is a single space.")
                if len(contexts) >= CONTEXTS:
                    raise Refused(
                        "max_active_conversations", f"Maximum simultaneous contexts per WebSocket connection exceeded ({CONTEXTS})."
                    )
                settings = message.get("voice_settings") or {}
                if not 0.7 <= settings.get("speed", 1.0) <= 1.2:
                    raise Refused("invalid_voice_settings", "speed must be between 0.7 and 1.2")
                contexts[name] = settings
                continue
            if "voice_settings" in message:
                raise Refused("invalid_message", "Voice settings belong to the first message of a context.")
            if text := message.get("text"):
                await self._say(socket, name, text, voice, contexts[name])
            if message.get("close_context"):
                del contexts[name]
                await socket.send(json.dumps({"audio": None, "isFinal": True, "contextId": name}))

    async def _say(self, socket: ServerConnection, name: str, text: str, voice: str, settings: dict[str, Any]) -> None:
        if not text.endswith(" "):
            raise Refused("invalid_message", "A text ends with a single space.")
        self.said.append((text, settings))
        fault = self.faults.popleft() if self.faults else None
        if isinstance(fault, Refused):
            raise fault
        sound = b"" if fault is Fault.MUTE else tone(text.strip(), voice)
        for at in range(0, len(sound), _PIECE):
            piece = base64.b64encode(sound[at : at + _PIECE]).decode()
            await socket.send(json.dumps({"audio": piece, "isFinal": None, "contextId": name, "alignment": None}))
            if fault is Fault.CUT:
                socket.transport.abort()
            if fault in (Fault.CUT, Fault.HANG):
                await socket.wait_closed()
