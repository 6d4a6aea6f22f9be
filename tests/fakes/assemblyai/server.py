"""A stand-in for AssemblyAI's streaming recogniser (v3), with the same messages on the wire.

What it hears are tones: `script` gives the words of the next stretch of sound, one of which is known for each `WORD_MS` of sound that was
received, as a real recogniser knows them while they are said; at the end of a turn the rest is. A turn ends where the client forces it to,
first without and then with its format. A connection that breaks a rule of the service is refused as the service does: with an `Error` and a
close code. Sources: assemblyai.com/docs/streaming/message-sequence, /common-session-errors-and-closures, /api-reference/streaming-api, and
the vendor's SDK, which `test_server` drives against it.
"""

from __future__ import annotations

import json
from collections import deque
from enum import Enum
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.fakes.sockets import SocketServer

KEY: Final = "aai-key-of-the-tests"
WORD_MS: Final = 200
"""Milliseconds of sound in which a word is said."""

_LOUD: Final = 500
_CHUNK_MS: Final = (50, 1_000)
_MODELS: Final = {"universal-streaming-english", "universal-streaming-multilingual", "u3-rt-pro", "universal-3-5-pro", "universal-3-6-pro"}
_QUERY: Final = {
    *("speech_model", "sample_rate", "encoding", "format_turns", "end_of_turn_confidence_threshold", "max_turn_silence"),
    *("min_turn_silence", "keyterms_prompt", "inactivity_timeout", "language_detection", "vad_threshold", "token"),
}
_TERMS: Final = (100, 50)


class Fault(Enum):
    """Faults at the next end of a turn."""

    CLOSE = "the connection is closed as a server that fails does"
    SILENCE = "the end is not answered"


class Refused(Exception):
    """A broken rule: the code and words of the service."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class AssemblyAIServer(SocketServer):
    """The service. `url` is for `ASSEMBLYAI_BASE_URL`."""

    def __init__(self, *, key: str = KEY) -> None:
        super().__init__()
        self.key = key
        self.queries: list[dict[str, str]] = []
        """Query of each connection."""

        self.heard_ms: list[int] = []
        """Milliseconds of audio of each connection."""

        self.ended: list[str] = []
        """End of each connection: `terminated` by the client's message, or by its close."""

        self.refused: list[str] = []
        """Words of the refusals."""

        self.faults: deque[Fault] = deque()
        self._texts: deque[list[str]] = deque()

    def script(self, *texts: str) -> None:
        """Set the words of the next turns."""
        self._texts.extend(text.split() for text in texts)

    def drop(self) -> None:
        """Cut every connection, as a server that dies does."""
        for connection in self.open:
            connection.transport.abort()

    async def _connection(self, socket: ServerConnection) -> None:
        number = len(self.heard_ms)
        self.heard_ms.append(0)
        self.ended.append("")
        try:
            query = self._opened(socket)
            self.queries.append(query)
            await _tell(socket, type="Begin", id="b5f6", expires_at=1_900_000_000)
            await self._listen(socket, query, number)
        except Refused as refusal:
            self.refused.append(str(refusal))
            await _tell(socket, type="Error", error_code=refusal.code, error=str(refusal))
            await socket.close(refusal.code, str(refusal)[:100])
        except ConnectionClosed:
            self.ended[number] = self.ended[number] or "closed"

    def _opened(self, socket: ServerConnection) -> dict[str, str]:
        assert socket.request is not None
        address = urlsplit(socket.request.path)
        query = dict(parse_qsl(address.query))
        if address.path != "/v3/ws":
            raise Refused(1008, "Not found")
        if (socket.request.headers.get("Authorization") or query.get("token")) != self.key:
            raise Refused(1008, "Unauthorized Connection: Invalid API key")
        if unknown := sorted(query.keys() - _QUERY):
            raise Refused(3006, f"Invalid parameters: {unknown}")
        if query.get("speech_model") not in _MODELS:
            raise Refused(3006, "Invalid parameter: speech_model")
        if query.get("sample_rate") != "16000" or query.get("encoding", "pcm_s16le") != "pcm_s16le":
            raise Refused(3006, "Invalid parameter: sample_rate or encoding")
        if not 0 <= float(query.get("end_of_turn_confidence_threshold", "0.4")) <= 1:
            raise Refused(3006, "Invalid parameter: end_of_turn_confidence_threshold")
        terms = json.loads(query.get("keyterms_prompt", "[]"))
        if len(terms) > _TERMS[0] or any(len(term) > _TERMS[1] for term in terms):
            raise Refused(3006, "Invalid parameter: keyterms_prompt")
        return query

    async def _listen(self, socket: ServerConnection, query: dict[str, str], number: int) -> None:
        order, sound_ms, said = 0, 0, list[str]()
        async for message in socket:
            if isinstance(message, bytes):
                ms = len(message) / 32
                if not _CHUNK_MS[0] <= ms <= _CHUNK_MS[1] or len(message) % 2:
                    raise Refused(3007, f"Input Duration Violation: {ms:.1f} ms. Expected between 50 and 1000 ms")
                self.heard_ms[number] += round(ms)
                sound_ms += _sound_ms(message)
                known = (self._texts[0] if self._texts else [])[: sound_ms // WORD_MS]
                if known != said:
                    said = known
                    await _turn(socket, order, said, end=False, formatted=False)
                continue
            match _type(message):
                case "ForceEndpoint":
                    fault = self.faults.popleft() if self.faults else None
                    if fault is Fault.CLOSE:
                        await socket.close(1011, "Internal server error")
                        return
                    if said and fault is None:
                        said = self._texts.popleft()  # the last words are known a moment later than they are said
                        await _turn(socket, order, said, end=True, formatted=False)
                        if query.get("format_turns", "").lower() == "true":
                            await _turn(socket, order, said, end=True, formatted=True)
                        order += 1
                    sound_ms, said = 0, []
                case "Terminate":
                    self.ended[number] = "terminated"
                    await _tell(
                        socket, type="Termination", audio_duration_seconds=self.heard_ms[number] // 1_000, session_duration_seconds=1
                    )
                    await socket.close(1000)
                    return
                case "KeepAlive" | "UpdateConfiguration":
                    pass
                case _:
                    raise Refused(3006, "Invalid Message Type")


def _type(message: str) -> str:
    try:
        return str(json.loads(message)["type"])
    except (ValueError, KeyError, TypeError):
        raise Refused(3006, "Invalid JSON") from None


def _sound_ms(pcm: bytes) -> int:
    """Return how many ms of a piece are sound."""
    samples = np.abs(np.frombuffer(pcm, "<i2").astype("i4"))
    blocks = samples[: len(samples) // 160 * 160].reshape(-1, 160).mean(axis=1)
    return int((blocks > _LOUD).sum()) * 10


async def _turn(socket: ServerConnection, order: int, said: list[str], *, end: bool, formatted: bool) -> None:
    final = said if end else said[:-1]  # the newest word may still change
    text = " ".join(final)
    words = [
        {"text": word, "start": 200 * at, "end": 200 * at + 180, "confidence": 0.9, "word_is_final": at < len(final)}
        for at, word in enumerate(said)
    ]
    await _tell(
        socket,
        type="Turn",
        turn_order=order,
        turn_is_formatted=formatted,
        end_of_turn=end,
        transcript=f"{text[:1].upper()}{text[1:]}." if formatted else text,
        end_of_turn_confidence=1.0 if end else 0.1,
        words=words,
    )


async def _tell(socket: ServerConnection, **message: Any) -> None:
    await socket.send(json.dumps(message))
