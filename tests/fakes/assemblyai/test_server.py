"""The stand-in, driven by the vendor's own SDK: what the SDK reads and writes is what the adapter reads and writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from assemblyai.streaming.v3 import (
    AsyncStreamingClient,
    BeginEvent,
    StreamingClientOptions,
    StreamingError,
    StreamingEvents,
    StreamingParameters,
    TerminationEvent,
    TurnEvent,
)

from tests.eventually import BOUND_S
from tests.fakes.assemblyai.server import KEY, AssemblyAIServer
from tests.voice.sounds import speech

pytestmark = pytest.mark.filterwarnings("ignore:ConnectionClosed.code is deprecated:DeprecationWarning")  # the SDK reads it


@pytest.fixture
async def server() -> AsyncIterator[AssemblyAIServer]:
    async with AssemblyAIServer() as found:
        yield found


async def talked(server: AssemblyAIServer, pieces: list[bytes], *, key: str = KEY, model: Any = "universal-streaming-english") -> list[Any]:
    """Send pieces with the SDK, force the end of the turn, terminate, and return what the SDK told."""
    told: list[Any] = []
    over = asyncio.Event()
    client = AsyncStreamingClient(StreamingClientOptions(api_key=key, api_host=server.url))

    async def on(_: Any, event: Any) -> None:
        told.append(event)
        if isinstance(event, StreamingError | TerminationEvent):
            over.set()

    for kind in (StreamingEvents.Begin, StreamingEvents.Turn, StreamingEvents.Termination, StreamingEvents.Error):
        client.on(kind, on)
    await client.connect(StreamingParameters(sample_rate=16_000, speech_model=model, format_turns=True))  # type: ignore[call-arg]  # its defaults are no types
    try:
        for piece in pieces:
            await client.stream(piece)
        await client.force_endpoint()
        await client.disconnect(terminate=True)
        await asyncio.wait_for(over.wait(), BOUND_S)
    finally:
        await client.disconnect()
    return told


async def test_the_sdk_hears_words_the_end_of_a_turn_and_the_end(server: AssemblyAIServer) -> None:
    server.script("what time is it")
    begun, *turns, ended = await talked(server, [speech(1_000)])
    assert isinstance(begun, BeginEvent)
    assert isinstance(ended, TerminationEvent)
    assert all(isinstance(turn, TurnEvent) for turn in turns)
    assert [(turn.transcript, turn.end_of_turn, turn.turn_is_formatted) for turn in turns[-2:]] == [
        ("what time is it", True, False),
        ("What time is it.", True, True),
    ]
    assert not turns[0].end_of_turn
    assert not turns[0].words[-1].word_is_final
    assert server.ended == ["terminated"]


@pytest.mark.parametrize("piece", [speech(49), speech(1_001)])
async def test_a_piece_that_is_too_short_or_too_long_is_refused_as_the_sdk_expects(server: AssemblyAIServer, piece: bytes) -> None:
    error = (await talked(server, [piece]))[-1]
    assert isinstance(error, StreamingError)
    assert error.code == 3007


async def test_a_key_that_is_wrong_is_refused_as_the_sdk_expects(server: AssemblyAIServer) -> None:
    error = (await talked(server, [], key="another"))[-1]
    assert isinstance(error, StreamingError)
    assert error.code == 1008
