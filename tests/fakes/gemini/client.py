"""The google-genai SDK's side of a conversation with the fake Gemini, for tests: helpers that send, and that read messages."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import numpy as np
from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession

from tests.eventually import BOUND_S
from tests.fakes.gemini.server import GeminiServer

MODEL = "gemini-2.5-flash-native-audio-latest"


def connect(*, model: str = MODEL, key: str = "key-1", version: str = "v1beta", **config: Any) -> AbstractAsyncContextManager[AsyncSession]:
    """Open a session with the server that the environment names; `config` are fields of `LiveConnectConfig`."""
    client = genai.Client(api_key=key, http_options=types.HttpOptions(api_version=version))
    usual: dict[str, Any] = {"response_modalities": ["AUDIO"], "input_audio_transcription": {}, "output_audio_transcription": {}}
    return client.aio.live.connect(model=model, config=types.LiveConnectConfig(**{**usual, **config}))


async def rest(session: AsyncSession) -> list[types.LiveServerMessage]:
    """Return the messages up to the end of the turn."""
    async with asyncio.timeout(BOUND_S):
        return [message async for message in session.receive()]


async def one(session: AsyncSession) -> types.LiveServerMessage:
    """Return the next message."""
    async with asyncio.timeout(BOUND_S):
        return await anext(session.receive())


async def until(session: AsyncSession, wanted: Callable[[types.LiveServerMessage], Any]) -> types.LiveServerMessage:
    """Return the next message that matches; others are skipped."""
    while True:
        message = await one(session)
        if wanted(message):
            return message


def contents(messages: list[types.LiveServerMessage]) -> list[types.LiveServerContent]:
    """Return the server contents of the messages."""
    return [message.server_content for message in messages if message.server_content is not None]


def said(messages: list[types.LiveServerMessage]) -> str:
    """Return the transcript of the model."""
    found = [content.output_transcription for content in contents(messages) if content.output_transcription]
    return "".join(one.text or "" for one in found)


def heard(messages: list[types.LiveServerMessage]) -> str:
    """Return the transcript of the user."""
    found = [content.input_transcription for content in contents(messages) if content.input_transcription]
    return "".join(one.text or "" for one in found)


def sound(messages: list[types.LiveServerMessage]) -> bytes:
    """Return the audio of the model."""
    return b"".join(message.data or b"" for message in messages)


def kinds(messages: list[types.LiveServerMessage]) -> list[str]:
    """Return the kind of each message, without repetitions."""
    names: list[str] = []
    for message in messages:
        fields = message.server_content if message.server_content is not None else message
        name = next(name for name, value in fields if value is not None and name != "usage_metadata")
        names += [name] if names[-1:] != [name] else []
    return names


def voice(ms: int) -> bytes:
    """Return a tone of this length that counts as speech."""
    wave = np.sin(np.arange(16 * ms) * (2 * math.pi * 150 / 16_000)) * 6_000
    return bytes(wave.astype("<i2").tobytes())


def silence(ms: int) -> bytes:
    """Return silence of this length."""
    return bytes(32 * ms)


async def send(session: AsyncSession, pcm: bytes, piece_ms: int = 20) -> None:
    """Send audio in pieces."""
    step = 32 * piece_ms
    for at in range(0, len(pcm), step):
        await session.send_realtime_input(audio=types.Blob(data=pcm[at : at + step], mime_type="audio/pcm;rate=16000"))


async def refused(opening: AbstractAsyncContextManager[AsyncSession], act: Callable[[AsyncSession], Awaitable[None]] | None = None) -> Any:
    """Return the error with which a session ends, after it was opened or after `act`."""
    try:
        async with asyncio.timeout(BOUND_S), opening as session:
            if act is not None:
                await act(session)
            while True:
                await session._receive()
    except errors.APIError as error:
        return error


async def answer(session: AsyncSession, id: str | None, time: str, **fields: Any) -> None:
    """Answer a call of `get_time`."""
    response = types.FunctionResponse(id=id, name="get_time", response={"time": time}, **fields)
    await session.send_tool_response(function_responses=[response])


async def handle_of(gemini: GeminiServer) -> str:
    """Return the handle of a conversation of one turn."""
    async with connect(session_resumption={}) as session:
        await session.send_realtime_input(text="hi")
        await until(session, lambda message: message.session_resumption_update)
    return gemini.sessions[-1].handles[-1]
