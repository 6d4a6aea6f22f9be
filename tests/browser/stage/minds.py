"""The models of a conversation that goes from text to voice and back: the installation's, Gemini's, OpenAI's, Claude's, each as a stand-in.

A provider whose model speaks itself has two services at one address, one that writes and one that speaks: `front` has them there.
"""

# ruff: noqa: E402 - the suite's assertions have to be rewritten before it is imported

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest

pytest.register_assert_rewrite("tests.voice.providers.provider_suite", "tests.voice.providers.page_suite")

from tests.browser.stage.thread import in_thread
from tests.fakes import tls
from tests.fakes.anthropic import server as anthropic_server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini import text as gemini_text
from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.text import GeminiTextServer
from tests.fakes.openai import http as openai_http
from tests.fakes.openai.http_rules import CHAT
from tests.fakes.openai.realtime import KEY as OPENAI_KEY
from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.voice.providers.page_suite import Reply
from tests.voice.providers.provider_suite import Provider
from tests.voice.providers.test_provider_suite import GEMINI_KEY, Cascade, Claude, Gemini, Models, OpenAI


class Mind:
    """Models of a conversation: `voice` has the script of those that hear and speak."""

    def __init__(self, voice: Provider, models: Models, environment: dict[str, str]) -> None:
        self.voice = voice
        self.environment = {"VOXBRIDGE_GREETING": "", **environment}
        self.models = models

    @property
    def mode(self) -> str:
        """Mode of its sessions."""
        return str(self.voice.mode)

    def writes(self, text: str, **calls: dict[str, Any]) -> None:
        """Script the answer to what is typed next: calls by their names, then words."""
        self.voice.script(Reply(calls=tuple(calls.items()), after=text) if calls else Reply(says=text))

    def hears(self, words: str, *, says: str) -> None:
        """Script what is heard next, and the answer. The installation's models transcribe it as often as they like."""
        self.models.usual["stt"] = [words]
        self.voice.script(Reply(hears="" if isinstance(self.voice, Cascade) else words, says=says))

    def was_told(self) -> str:
        """Return the conversation as the model that writes was given it last."""
        return self.voice.knows()


class GeminiMind(Mind):
    """Gemini: a language model that writes, and Gemini Live."""

    def __init__(self, live: GeminiServer, text: GeminiTextServer, models: Models, url: str) -> None:
        environment = {"GOOGLE_GEMINI_BASE_URL": url, "SSL_CERT_FILE": str(live.ca_file), "GEMINI_API_KEY": GEMINI_KEY}
        super().__init__(Gemini(live), models, environment)
        self._text = text

    def writes(self, text: str, **calls: dict[str, Any]) -> None:
        if calls:
            self._text.script([gemini_text.Call(name, given) for name, given in calls.items()])
        self._text.script([text])

    def was_told(self) -> str:
        return json.dumps(self._text.bodies[-1]["contents"])


class OpenAIMind(Mind):
    """OpenAI: a language model that writes, and OpenAI Realtime."""

    def __init__(self, realtime: OpenAIRealtimeServer, text: openai_http.OpenAIServer, models: Models, url: str) -> None:
        super().__init__(OpenAI(realtime), models, {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": OPENAI_KEY})
        self._text = text

    def writes(self, text: str, **calls: dict[str, Any]) -> None:
        if calls:
            self._text.script(CHAT, [openai_http.Use(name, given) for name, given in calls.items()])
        self._text.script(CHAT, [text])

    def was_told(self) -> str:
        return json.dumps(self._text.asked(CHAT)[-1]["messages"])


class _Address(Protocol):
    url: str


@asynccontextmanager
async def front(
    speaks: str, writes: _Address, *, paths: tuple[str, ...], context: ssl.SSLContext | None = None, ca_file: Path | None = None
) -> AsyncIterator[str]:
    """Listen at one address for both services of a provider: what is asked at one of the `paths` is for the one that speaks."""
    connections = set[asyncio.Task[None]]()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                head = await reader.readuntil(b"\r\n\r\n")
                spoken = head.split(b" ", 2)[1].decode().startswith(paths)
                target = urlsplit(speaks if spoken else writes.url)
                trusting = ssl.create_default_context(cafile=ca_file) if target.scheme == "https" else None
                there, sender = await asyncio.open_connection(target.hostname, target.port, ssl=trusting)
                sender.write(head)
                await asyncio.wait(
                    {asyncio.create_task(_piped(reader, sender)), asyncio.create_task(_piped(there, writer))},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                sender.close()
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield f"{'https' if context is not None else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def _serving(name: str, folder: Path) -> AsyncIterator[Mind]:
    async with Models() as models:
        if name == "gemini":
            authority = tls.issue(folder)
            async with (
                GeminiServer(folder, Options(), authority=authority) as live,
                GeminiTextServer(key=GEMINI_KEY) as text,
                front(live.url, text, paths=("/ws/", "//ws/"), context=authority[1], ca_file=authority[0]) as url,
            ):
                yield GeminiMind(live, text, models, url)
        elif name == "openai":
            async with (
                OpenAIRealtimeServer() as realtime,
                openai_http.OpenAIServer(key=OPENAI_KEY) as chat,
                front(realtime.url, chat, paths=("/v1/realtime",)) as url,
            ):
                yield OpenAIMind(realtime, chat, models, url)
        elif name == "claude":
            async with AnthropicServer() as anthropic:
                environment = {"ANTHROPIC_BASE_URL": anthropic.url, "ANTHROPIC_API_KEY": anthropic_server.KEY}
                yield Mind(Claude(models, anthropic), models, environment)
        else:
            yield Mind(Cascade(models), models, {})


@contextmanager
def mind(name: str, folder: Path) -> Iterator[Mind]:
    """Run the stand-ins of a mode in a thread of their own."""
    with in_thread(_serving(name, folder)) as found:
        yield found
