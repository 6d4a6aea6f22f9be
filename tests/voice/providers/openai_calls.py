"""A call over OpenAI Realtime without a session around it: a running connection, its reports, and the server's side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from tests.eventually import BOUND_S
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer, Session
from tests.fakes.openai.realtime_turns import frames, tone
from voxbridge.services.voice.core.provider_events import ProviderInput
from voxbridge.services.voice.providers.realtime.base import Connection, ConnectionLost, Setup
from voxbridge.services.voice.providers.realtime.openai.model import OpenAIRealtime
from voxbridge.shared.agents.functions import Function

T = TypeVar("T", bound=ProviderInput)
TIME = Function(name="time", description="The time.", parameters={"type": "object", "properties": {"place": {"type": "string"}}})
SETUP = Setup(model="gpt-realtime-2.1", voice="marin", language="de-AT", instructions="Be kind.", functions=(TIME,))
SILENCE = bytes(32 * 600)
SPEECH = tone(300)


class Heard:
    """A listener that keeps everything, in order."""

    effect = 7
    audio_ms = 1_234

    def __init__(self) -> None:
        self.all: list[ProviderInput | bytes] = []
        self._changed = asyncio.Event()

    def take(self, input: ProviderInput) -> None:
        self.all.append(input)
        self._changed.set()

    def play(self, pcm: bytes) -> None:
        self.all.append(pcm)
        self._changed.set()

    def keep_handle(self, handle: str) -> str:
        raise AssertionError(handle)

    def of(self, kind: type[T]) -> list[T]:
        return [one for one in self.all if isinstance(one, kind)]

    @property
    def pcm(self) -> bytes:
        return b"".join(one for one in self.all if isinstance(one, bytes))

    async def until(self, kind: type[T], count: int = 1) -> T:
        async with asyncio.timeout(BOUND_S):
            while len(self.of(kind)) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.of(kind)[count - 1]

    async def until_played(self, size: int) -> None:
        async with asyncio.timeout(BOUND_S):
            while len(self.pcm) < size:
                self._changed.clear()
                await self._changed.wait()


class Call:
    """A running connection, its reports, and the server's side."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.session = session
        self.heard = Heard()
        self.running = asyncio.create_task(connection.run(self.heard))

    async def speak(self, *pieces: bytes) -> None:
        for frame in frames(b"".join(pieces)):
            self.connection.send_audio(memoryview(frame))

    async def lost(self) -> ConnectionLost:
        """Wait for the end of the connection. Return its error."""
        async with asyncio.timeout(BOUND_S):
            with pytest.raises(ConnectionLost) as caught:
                await self.running
        return caught.value


async def the_key(provider: str) -> str:
    assert provider == "openai"
    return KEY


@asynccontextmanager
async def calling(server: OpenAIRealtimeServer, model: OpenAIRealtime, setup: Setup = SETUP) -> AsyncIterator[Call]:
    connection = await model.connect(setup)
    call = Call(connection, await server.session(len(server.sessions) or 1))
    try:
        yield call
    finally:
        call.running.cancel()
        await asyncio.gather(call.running, return_exceptions=True)
        await connection.close()
