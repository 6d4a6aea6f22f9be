"""Voice workers on real servers, the models' stand-in, and the gateway's side of a session."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tests.eventually import BOUND_S, eventually
from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.voice.model_server import ModelServer
from voxbridge.services.models.weights import loader, manifest, shelf
from voxbridge.services.voice.audio.vad import SileroModel
from voxbridge.services.voice.service import VoiceService, build
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.bus.partials import Composer
from voxbridge.shared.clock import SystemClock, wall_ms32
from voxbridge.shared.config import Config
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.ids import new_process_id, new_session_id
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.service.process import connected
from voxbridge.shared.store.store import Store

BUSY_S = 15.0
"""Longest time in seconds of a short operation on a busy machine. `make bench` has the figures."""

FRAME = 8_000
"""Bytes of a microphone frame: 250 ms, so that a subscriber's queue holds all frames sent at once."""

E = TypeVar("E", bound=events.Event)


async def becomes(ask: Callable[[], Awaitable[bool]]) -> None:
    """Poll until a state is reached that gives no signal."""
    await eventually(ask)


async def left(store: Store, page: Page) -> None:
    """Wait until no worker holds the session and the index does not list it as live."""

    async def gone() -> bool:
        return not (await store.held([page.sid]))[0] and page.sid not in await store.live_sessions()

    await becomes(gone)


async def at_rest(worker: VoiceService) -> None:
    """Wait until a worker has no session and no task."""

    async def rests() -> bool:
        return not worker.stats()["sessions"] and not worker._tasks

    await becomes(rests)


class _Quiet:
    def begin(self, label: str, total: int) -> None:
        """Show nothing."""

    def advance(self, count: int) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""


@pytest.fixture
async def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GeminiServer]:
    """The stand-in for Gemini Live, with its address and a key in the environment."""
    async with GeminiServer(tmp_path, Options()) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
        monkeypatch.setenv("GEMINI_API_KEY", "a-key-for-tests")
        yield server


@pytest.fixture(scope="session")
def silero() -> SileroModel:
    """The real weights, downloaded if this machine has none."""
    folder = Config.from_env().models_dir
    path = folder / "silero-vad" / "silero_vad.onnx"
    if not path.is_file():
        known, place = manifest.load(), shelf.Shelf(folder)
        loader.Loader(place, loader.sources_for("auto", known, place), _Quiet()).get(known.model("silero-vad"))
    return SileroModel(path)


class Page:
    """A session as the gateway sees it: it starts, speaks and types, and receives the voice service's events."""

    def __init__(self, connection: Client, store: Store) -> None:
        self.sid = new_session_id()
        self.log = Log(connection)
        self.heard: list[events.Recorded] = []
        self.frames: list[tuple[frames.Prefix, bytes]] = []
        self.states: list[str] = []
        self.partials: list[moments.PartialTranscript] = []
        self.pieces: list[moments.PartialTranscript] = []
        """The moments as published, before they are composed to `partials`."""

        self._composer = Composer()
        self.position = 0
        self._connection = connection
        self._store = store
        self._clock = SystemClock()
        self._came = asyncio.Condition()
        self._writer = SessionWriter(self.log, self.sid, "gateway", stem="c1", fenced=False)
        self._feed = Feed(self.log, self.sid, self._event, writer="voice")
        self._sequence = 0
        self._plays = True

    async def open(
        self,
        mode: gateway.Mode = "local",
        *,
        plays: bool = True,
        age_s: float = 0,
        live: bool = True,
        browser: tuple[str, ...] = (),
        **options: Any,
    ) -> Page:
        """Request a session with these `options`. `plays`: each reply is reported at once as heard to its end. `browser` names functions of
        the catalogue that this page answers."""
        self._plays = plays
        await self._feed.start()
        await self._connection.subscribe(subjects.audio_out(self.sid), cb=self._audio)
        await self._connection.subscribe(subjects.moments(self.sid), cb=self._moment)
        client = gateway.ClientCapabilities(protocol="voxbridge.v1", browser=browser)
        now = self._clock.now_us() - round(age_s * 1_000_000)
        request = gateway.SessionRequested(mode=mode, client=client, **options)
        self.position = await self._writer.append(request, ts=now, cause=None)
        if live:
            await self._store.session_opened(self.sid, now)
        return self

    async def says(self, event: events.Event) -> int:
        """Append an event as the gateway."""
        return await self._writer.append(event, ts=self._clock.now_us(), cause=None)

    async def ends(self) -> events.Recorded:
        """End the session and wait until it has ended."""
        await self.says(gateway.SessionEndRequested(by="client", reason="client"))
        return await self.until(events.voice.SessionEnded)

    async def speaks(self, pcm: bytes) -> None:
        """Send microphone audio as fast as it is taken."""
        for start in range(0, len(pcm), FRAME):
            frame = frames.pack(frames.PCM16, 0, self._sequence, wall_ms32(), pcm[start : start + FRAME])
            self._sequence += 1
            await self._connection.publish(subjects.audio_in(self.sid), frame)
        await self._connection.flush()

    async def talks(self, pcm: bytes) -> None:
        """Send microphone audio in real time, so that it is as old as it is long."""
        loop, second = asyncio.get_running_loop(), 2 * frames.INPUT_RATE
        begun = loop.time()
        for start in range(0, len(pcm), second // 5):
            await self.speaks(pcm[start : start + second // 5])
            await asyncio.sleep(begun + (start + second // 5) / second - loop.time())

    async def until(self, kind: type[E], count: int = 1, **fields: Any) -> events.Recorded:
        """Wait for the n-th event of this type with these fields, and return it."""
        await self.when(lambda: self._found(kind, count, fields))
        found = self._found(kind, count, fields)
        assert found is not None
        return found

    async def event(self, kind: type[E], count: int = 1, **fields: Any) -> E:
        """Return the same without its envelope."""
        found = (await self.until(kind, count, **fields)).event
        assert isinstance(found, kind)
        return found

    async def when(self, ask: Callable[[], Any]) -> None:
        """Wait until `ask` holds; it is checked after each event or frame."""
        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: bool(ask()))

    def told(self, *kinds: type[events.Event]) -> list[Any]:
        """Return the events of these types so far."""
        return [one.event for one in self.heard if isinstance(one.event, kinds)]

    async def everything(self) -> list[events.Recorded]:
        """Return the log of the session."""
        return [one async for one in self.log.read_all(self.sid)]

    async def executes(self, called: ev.ToolCalled, result: dict[str, Any]) -> int:
        """Answer a call as the tool executor."""
        writer = SessionWriter(self.log, self.sid, "tools", stem=called.call_id, fenced=False)
        done = events.tools.ToolCompleted(call_id=called.call_id, name=called.name, result=result, ms=5)
        return await writer.append(done, ts=self._clock.now_us(), cause=None)

    async def writes_as_tools(self, event: events.Event) -> int:
        """Append an event as the tool executor."""
        writer = SessionWriter(self.log, self.sid, "tools", stem=f"t{len(self.heard)}", fenced=False)
        return await writer.append(event, ts=self._clock.now_us(), cause=None)

    def sent_ms(self, generation: int) -> int:
        """Return the received audio of a generation in ms."""
        return sum(len(pcm) for one, pcm in self.frames if one.generation == generation) * 1_000 // (2 * frames.OUTPUT_RATE)

    def flushed(self, generation: int) -> bool:
        """Return whether a flush of this generation was received."""
        return any(prefix.kind == frames.FLUSH and prefix.generation == generation for prefix, _ in self.frames)

    def ended(self, generation: int) -> bool:
        """Return whether the last frame of a generation was received."""
        return any(prefix.flags & frames.LAST and prefix.generation == generation for prefix, _ in self.frames)

    async def stop(self) -> None:
        """Stop receiving."""
        await self._feed.stop()

    def _found(self, kind: type[E], count: int, fields: dict[str, Any]) -> events.Recorded | None:
        fitting = [one for one in self.heard if isinstance(one.event, kind) and all(getattr(one.event, k) == v for k, v in fields.items())]
        return fitting[count - 1] if len(fitting) >= count else None

    async def _event(self, recorded: events.Recorded) -> None:
        async with self._came:
            self.heard.append(recorded)
            self._came.notify_all()

    async def _audio(self, message: Msg) -> None:
        prefix = frames.parse(message.data)
        async with self._came:
            self.frames.append((prefix, message.data[frames.PREFIX_SIZE :]))
            self._came.notify_all()
        if self._plays and prefix.flags & frames.LAST:
            heard = self.sent_ms(prefix.generation)
            await self.says(gateway.PlaybackReported(generation=prefix.generation, played_ms=heard, state="finished"))

    async def _moment(self, message: Msg) -> None:
        moment = moments.decode(message.data)
        async with self._came:
            if isinstance(moment, moments.StateChanged):
                self.states.append(moment.state)
            elif isinstance(moment, moments.PartialTranscript):
                self.pieces.append(moment)
                text = self._composer.take(moment)
                if text is not None:
                    self.partials.append(text)
            self._came.notify_all()


class Workers:
    """Starter of voice workers on the servers and models of the test."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[VoiceService]:
        """Run a worker in this process."""
        async with connected(replace(self.config, **settings), "voice", new_process_id("voice"), SystemClock()) as resources:
            service = await build(resources)
            assert isinstance(service, VoiceService)
            serving = asyncio.create_task(service.serve())
            await resources.events_nc.flush()  # all subscriptions of this worker are active now
            try:
                yield service
            finally:
                await service.drain()
                await asyncio.wait({serving}, timeout=5)
                serving.cancel()
                await asyncio.wait({serving})

    @asynccontextmanager
    async def process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a worker in a separate process, and wait until it serves."""
        env = {**os.environ, **self.config.as_env()}
        root = Path(__file__).parents[2]
        running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "voxbridge.services.voice", cwd=root, env=env, stderr=asyncio.subprocess.PIPE, limit=1 << 20
        )
        assert running.stderr is not None
        try:
            async with asyncio.timeout(BOUND_S):
                while b"voice serves" not in await running.stderr.readline():
                    assert running.returncode is None
            yield running
        finally:
            if running.returncode is None:
                running.kill()
            await running.communicate()


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def config(nats_url: str, redis_url: str, model_server: ModelServer, silero: SileroModel) -> Config:
    url = model_server.url
    models_dir = Config.from_env().models_dir
    return Config(
        nats_url=nats_url, redis_url=redis_url, models_url=url, stt_url=url, llm_url=url, tts_url=url, greeting="", models_dir=models_dir
    )


@pytest.fixture
def workers(config: Config) -> Workers:
    return Workers(config)


@pytest.fixture
async def connection(config: Config) -> AsyncIterator[Client]:
    client = await nats.connect(config.nats_url)
    await Log(client).ensure_streams(retention_days=1)
    yield client
    await client.close()


@pytest.fixture
async def store(config: Config) -> AsyncIterator[Store]:
    async with Redis.from_url(config.redis_url, decode_responses=True) as redis:
        yield Store(redis)


@pytest.fixture
async def pages(connection: Client, store: Store) -> AsyncIterator[Callable[[], Page]]:
    """Make sessions that are not requested yet."""
    async with AsyncExitStack() as open_things:

        def make() -> Page:
            page = Page(connection, store)
            open_things.push_async_callback(page.stop)
            return page

        yield make


@pytest.fixture
def page(pages: Callable[[], Page]) -> Page:
    return pages()


MakePage = Callable[[], Page]
