"""A page written from the protocol alone holds a spoken conversation with each provider's stand-in: a tool, `cancel`, `reset`."""

# ruff: noqa: E402 - the suite's assertions have to be rewritten before it is imported

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from nats.aio.client import Client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

pytest.register_assert_rewrite("tests.voice.providers.provider_suite", "tests.voice.providers.page_suite")

from tests.eventually import BOUND_S, eventually, opens
from tests.fakes.anthropic import server as anthropic_server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.openai.realtime import KEY as OPENAI_KEY
from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.ports import free_port
from tests.voice.conftest import Workers
from tests.voice.model_server import ModelServer
from tests.voice.providers.page_suite import Reply
from tests.voice.providers.provider_suite import STORY, Provider
from tests.voice.providers.test_provider_suite import GEMINI_KEY, Cascade, Claude, Gemini, Models, OpenAI
from tests.voice.sounds import silence, speech
from voxbridge.services.gateway.service import Gateway
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.platform.checking import SUBJECT
from voxbridge.shared.platform.keys import Wishes
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.service.process import connected
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(120)
SHOP: Final = "https://shop.example"
WORDS: Final = silence(400) + speech(1_500) + silence(700)
CONFIGURE: Final = {
    "type": "configure",
    "instructions": "You are a helpful weather assistant.",
    "greeting": "Hey! Ask me about the weather.",
    "voice": "jess",
    "tools": [
        {
            "name": "get_weather",
            "description": "Get current weather for a city",
            "parameters": {"city": {"type": "string", "description": "City name"}},
            "handler": "async (args, ctx) => ({ weather: 'sunny', city: args.city })",
        }
    ],
}


class SeedPage:
    """A page that knows the messages of the protocol, and nothing else of the platform."""

    def __init__(self, socket: ClientConnection) -> None:
        self.told: list[dict[str, Any]] = []
        self.sound: list[bytes] = []
        self._socket = socket
        self._came = asyncio.Condition()

    async def run(self) -> None:
        """Receive until the socket closes."""
        with suppress(ConnectionClosed):
            async for received in self._socket:
                async with self._came:
                    if isinstance(received, bytes):
                        self.sound.append(received)
                    else:
                        self.told.append(json.loads(received))
                    self._came.notify_all()

    async def say(self, message: dict[str, Any]) -> None:
        """Send a JSON message."""
        await self._socket.send(json.dumps(message))

    async def speak(self, pcm: bytes) -> None:
        """Send microphone audio, four times as fast as it is spoken."""
        for start in range(0, len(pcm), 3_200):
            await self._socket.send(pcm[start : start + 3_200])
            await asyncio.sleep(0.025)

    async def until(self, name: str, count: int = 1) -> dict[str, Any]:
        """Return the n-th message of a type."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.told if one["type"] == name]

        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    async def hears(self, after: int) -> None:
        """Wait for sound beyond so many messages of it."""
        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: len(self.sound) > after)

    def order(self) -> list[str]:
        """Return the types of the messages so far, without unfinished words and notices."""
        return [one["type"] for one in self.told if one["type"] not in ("transcript", "notice")]


class Executor:
    """The executor of handlers: answers each call of a session."""

    def __init__(self, connection: Client) -> None:
        self.called: list[ev.ToolCalled] = []
        self._log = Log(connection)

    async def serve(self, sid: str) -> Feed:
        """Answer the calls of a session."""
        feed = Feed(self._log, sid, self._take, writer="voice", types=("tool.called",))
        await feed.start()
        return feed

    async def _take(self, recorded: events.Recorded) -> None:
        called = recorded.event
        assert isinstance(called, ev.ToolCalled)
        self.called.append(called)
        writer = SessionWriter(self._log, recorded.sid, "tools", stem=called.call_id, fenced=False)
        result = {"success": True, "weather": "sunny", **called.arguments}
        done = events.tools.ToolCompleted(call_id=called.call_id, name=called.name, result=result, ms=5)
        await writer.append(done, ts=SystemClock().now_us(), cause=None)


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    async with Models() as server:
        yield server


@pytest.fixture(params=["local", "gemini", "openai", "claude"])
async def provider(
    request: pytest.FixtureRequest, model_server: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Provider]:
    match request.param:
        case "gemini":
            async with GeminiServer(tmp_path, Options()) as google:
                monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", google.url)
                monkeypatch.setenv("SSL_CERT_FILE", str(google.ca_file))
                monkeypatch.setenv("GEMINI_API_KEY", GEMINI_KEY)
                yield Gemini(google)
        case "openai":
            async with OpenAIRealtimeServer() as openai:
                monkeypatch.setenv("OPENAI_BASE_URL", openai.url)
                monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
                yield OpenAI(openai)
        case "claude":
            async with AnthropicServer() as anthropic:
                monkeypatch.setenv("ANTHROPIC_BASE_URL", anthropic.url)
                monkeypatch.setenv("ANTHROPIC_API_KEY", anthropic_server.KEY)
                yield Claude(model_server, anthropic)
        case _:
            yield Cascade(model_server)


@asynccontextmanager
async def gateway_of(workers: Workers, folder: Path) -> AsyncIterator[Gateway]:
    """Run a gateway beside the workers."""
    config = replace(workers.config, port=free_port(), data_dir=folder / "data")
    Vault(vault_key_file(config)).publish(config.vault_public_key_path)
    async with connected(config, "gateway", "gateway-test", SystemClock()) as resources:
        gateway = Gateway(resources)
        serving = asyncio.create_task(gateway.serve())
        try:
            await eventually(lambda: opens(config.port))
            await eventually(lambda: gateway.platform.registry.whole)
            yield gateway
        finally:
            await gateway.drain()
            await asyncio.wait_for(serving, BOUND_S)


@asynccontextmanager
async def page_at(gateway: Gateway, text: str) -> AsyncIterator[SeedPage]:
    """Open a page's socket."""
    address = f"ws://127.0.0.1:{gateway.resources.config.port}/session?key={text}"
    async with connect(address, origin=Origin(SHOP), compression=None) as socket:
        page = SeedPage(socket)
        running = asyncio.create_task(page.run())
        yield page
        running.cancel()
        await asyncio.wait({running})


async def test_a_page_holds_a_spoken_conversation(
    provider: Provider, workers: Workers, connection: Client, store: Store, tmp_path: Path
) -> None:
    await store.publish_functions([])

    async def can_run(message: Any) -> None:
        await message.respond(b"{}")

    await connection.subscribe(SUBJECT, cb=can_run)
    realtime = provider.mode in ("gemini", "openai")
    executor = Executor(connection)
    async with AsyncExitStack() as running:
        await running.enter_async_context(workers.running(**provider.settings))
        gateway = await running.enter_async_context(gateway_of(workers, tmp_path))
        _, text = await gateway.platform.accounts.make(
            Wishes(account="shop", origins=(SHOP,), mode=provider.mode, environment="test")  # type: ignore[arg-type]
        )
        page = await running.enter_async_context(page_at(gateway, text))
        if realtime:
            provider.script(Reply(says="Hey! Ask me about the weather."))
        await page.say(CONFIGURE)
        assert await page.until("ready") == {"type": "ready", "sampleRate": 16_000, "ttsSampleRate": 24_000}
        (session,) = gateway.connections
        feed = await executor.serve(session.sid)
        running.push_async_callback(feed.stop)
        assert (await page.until("greeting"))["text"] == CONFIGURE["greeting"]
        await page.until("tts_done")
        assert page.sound

        provider.script(
            Reply(hears="What is the weather in Oslo?", calls=(("get_weather", {"city": "Oslo"}),), after="It is sunny in Oslo.")
        )
        await page.speak(WORDS)
        assert (await page.until("turn"))["text"] == "What is the weather in Oslo?"
        said = await page.until("chat", 1)
        assert said == {"type": "chat", "text": "It is sunny in Oslo.", "steps": ["Using get_weather"]}
        await page.until("tts_done", 2)
        order = page.order()
        assert order.index("thinking") < order.index("chat") < len(order) - 1 - order[::-1].index("tts_done")
        if provider.mode != "openai":  # which writes down what it heard after it has answered it
            assert order.index("turn") < order.index("chat")
        assert [(one.name, one.kind, one.arguments) for one in executor.called] == [("get_weather", "customer", {"city": "Oslo"})]

        before = len(page.sound)
        provider.script(Reply(hears="Tell me a story.", says=STORY, lasts_ms=5_000, holds=True))
        await page.speak(WORDS)
        await page.until("turn", 2)
        await page.hears(before)
        stopped = sum(one["type"] == "cancelled" for one in page.told)
        await page.say({"type": "cancel"})
        await page.until("cancelled", stopped + 1)

        await page.say({"type": "reset"})
        assert await page.until("reset") == {"type": "reset"}
        silent = len(page.sound)
        provider.script(Reply(hears="Good morning.", says="Good morning to you."))
        await page.speak(WORDS)
        assert (await page.until("turn", 3))["text"] == "Good morning."
        await page.hears(silent)
        await eventually(lambda: "Good morning to you." in [one.get("text") for one in page.told if one["type"] == "chat"])
        assert "Oslo" not in provider.knows(), "the history is empty"
        assert page.order().count("ready") == 1
        assert "error" not in page.order()
