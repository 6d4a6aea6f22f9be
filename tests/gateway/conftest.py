"""A gateway on a free port over real servers, and a scripted voice service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx
import msgspec
import nats.micro
import pytest
from nats.aio.msg import Msg
from nats.micro.request import Request
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tests.eventually import BOUND_S, eventually, opens
from tests.gateway.stand_in import StandIn
from tests.ports import free_port
from voxbridge.services.gateway.service import Gateway
from voxbridge.services.tools.packs.device import endpoint
from voxbridge.services.voice.audio.waveforms import Waveforms
from voxbridge.services.voice.inspection import SUBJECT, Inspector
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.awareness.view import NOTHING
from voxbridge.shared.awareness_client import Known
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import awareness_subject
from voxbridge.shared.bus.connection import AUDIO_PENDING, connect_nats
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.secrets.provider_keys import Keys
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.service.process import connected
from voxbridge.shared.terminals import questions
from voxbridge.shared.terminals.model import LOCAL_HOST

ALIKE_S = 0.1
ROUNDS = 20


class Client:
    """A browser's side of a socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, message: dict[str, Any]) -> None:
        """Send a JSON message."""
        await self.socket.send(json.dumps(message))

    async def next(self) -> Any:
        """Return the next message: an object, or the bytes of a binary one."""
        received = await asyncio.wait_for(self.socket.recv(), BOUND_S)
        return received if isinstance(received, bytes) else json.loads(received)

    async def until(self, type: str) -> dict[str, Any]:
        """Return the next message of a type; others are skipped."""
        while True:
            message = await self.next()
            if isinstance(message, dict) and message["type"] == type:
                return message

    async def started(self, mode: str = "echo", **fields: Any) -> dict[str, Any]:
        """Start a session and wait for `setup_complete`."""
        await self.say({"type": "start", "mode": mode, **fields})
        return await self.until("setup_complete")

    async def resume(self, ready: dict[str, Any], last_seq: int, *, answer: str = "resumed") -> dict[str, Any]:
        """Resume the session of a `setup_complete`; the first message must be of the type `answer`."""
        await self.say({"type": "resume", "sessionId": ready["sessionId"], "resumeToken": ready["resumeToken"], "last_seq": last_seq})
        first: dict[str, Any] = await self.next()
        assert first["type"] == answer, first
        return first

    async def close_code(self) -> int:
        """Return the code with which the gateway closes; messages before it are skipped."""
        async with asyncio.timeout(BOUND_S):
            with suppress(ConnectionClosed):
                while True:
                    await self.socket.recv()
        assert self.socket.close_code is not None
        return self.socket.close_code


class Address:
    """Address of a gateway."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.base = f"http://127.0.0.1:{port}"

    @asynccontextmanager
    async def client(self, *, v1: bool = True, **options: Any) -> AsyncIterator[Client]:
        """Open a socket."""
        protocols = [Subprotocol("voxbridge.v1")] if v1 else None
        async with connect(f"ws://127.0.0.1:{self.port}/ws/vox", subprotocols=protocols, compression=None, **options) as socket:
            yield Client(socket)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET request for a path."""
        async with httpx.AsyncClient(base_url=self.base, trust_env=False, timeout=BOUND_S) as client:
            return await client.get(path, **options)


class Running(Address):
    """A gateway that runs in this process."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        super().__init__(port)
        self.gateway = gateway


def publish(config: Config) -> None:
    """Make the vault key, and its public half for the gateway, as `voxbridge up` does."""
    Vault(vault_key_file(config)).publish(config.vault_public_key_path)


def keys_of_voice(running: Running) -> Keys:
    """Return the keys as a voice worker of the same installation has them."""
    resources = running.gateway.resources
    return Keys.of(resources.config, resources.redis)


@asynccontextmanager
async def drawing(running: Running) -> AsyncIterator[Waveforms]:
    """Run the part of the voice service that draws waveforms."""
    resources = running.gateway.resources
    nc = await connect_nats(resources.config.nats_url, "voice-draws", pending=AUDIO_PENDING)
    try:
        drawn = Waveforms(Log(nc), DataKeys.of(resources.config, resources.redis))
        micro = await nats.micro.add_service(nc, name="voxbridge-voice", version="0.0.0")
        await micro.add_endpoint(name="waveform", subject=subjects.WAVEFORM, handler=drawn.serve)
        await nc.flush()
        yield drawn
        await micro.stop()
    finally:
        await nc.close()


class Serve(Protocol):
    """Starts a gateway over the servers at these URLs; `settings` are fields of its configuration."""

    def __call__(self, nats_url: str, redis_url: str, **settings: Any) -> Awaitable[Running]: ...


@pytest.fixture
async def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """Start gateways over the servers at these URLs, without keys in the environment; drained after the test."""
    for name in [one for names in PROVIDERS.values() for one in names]:
        monkeypatch.delenv(name, raising=False)
    async with AsyncExitStack() as stack:

        async def start(nats_url: str, redis_url: str, **settings: Any) -> Running:
            port = free_port()
            given: dict[str, Any] = {"port": port, "models_port": free_port(), "data_dir": tmp_path / "data"} | settings
            config = Config(nats_url=nats_url, redis_url=redis_url, **given)
            publish(config)
            resources = await stack.enter_async_context(connected(config, "gateway", "gateway-test", SystemClock()))
            gateway = Gateway(resources)
            serving = asyncio.create_task(gateway.serve())

            async def stop() -> None:
                await gateway.drain()
                await asyncio.wait_for(serving, BOUND_S)

            stack.push_async_callback(stop)
            running = Running(gateway, port)
            await listening(running)
            return running

        yield start


@pytest.fixture
async def running(serve: Serve, nats_url: str, redis_url: str) -> Running:
    """A gateway over the servers of the test run."""
    return await serve(nats_url, redis_url)


@pytest.fixture
async def complete(running: Running, nats_url: str) -> AsyncIterator[Running]:
    """A gateway to which all other services seem to run: the test answers for the services' health and the list of models."""
    nc = await connect_nats(nats_url, "services-test", pending=AUDIO_PENDING)
    server = await asyncio.start_server(_models, "127.0.0.1", running.gateway.resources.config.models_port)
    try:
        for name in ("voice", "tools"):
            await nc.subscribe(f"vx.svc.{name}.health", cb=_healthy)
        await nc.subscribe("vx.svc.tools.list", cb=_no_functions)
        await nc.subscribe("vx.svc.tools.thermal", cb=_sensors)
        await nc.subscribe("vx.svc.tools.tasks", cb=_no_tasks)
        await nc.subscribe(awareness_subject("view"), cb=_nothing_known)
        await nc.subscribe(questions.question_subject(LOCAL_HOST, "*"), cb=_no_terminals)
        inspector = Inspector(Log(nc))

        async def inspect(message: Msg) -> None:
            await inspector.serve(Request(message))

        await nc.subscribe(SUBJECT, cb=inspect)
        await nc.flush()
        async with drawing(running):
            yield running
    finally:
        server.close()
        await nc.close()


async def _healthy(message: Msg) -> None:
    await message.respond(b'{"ready": true, "dependencies": {"nats": true}}')


async def _no_tasks(message: Msg) -> None:
    await message.respond(b'{"tasks": [], "incomplete": false}')


async def _no_functions(message: Msg) -> None:
    await message.respond(b"[]")


async def _no_terminals(message: Msg) -> None:
    kind = next(one for one in questions.QUESTIONS if message.subject.endswith(f".{one.verb}"))
    msgspec.json.decode(message.data, type=kind)
    if kind.answer is questions.Cards:
        await message.respond(msgspec.json.encode(questions.Cards(host=LOCAL_HOST, terminals=(), isolation="None.")))
    elif kind.answer is questions.Offers:
        await message.respond(msgspec.json.encode(questions.Offers(offers=())))
    else:
        error = VoxbridgeError(Code.NOT_FOUND, "There is no such terminal.", field="terminal")
        await Request(message).respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))


async def _nothing_known(message: Msg) -> None:
    await message.respond(msgspec.json.encode(Known(view=NOTHING, off=(), counts={}, errors=0)))


async def _sensors(message: Msg) -> None:
    await endpoint.answer(Request(message))


async def _models(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.readuntil(b"\r\n\r\n")
    if b"/readyz " in request:
        body = b'{"ready": true, "models": {"qwen": {"state": "ready"}, "piper-joe": {"state": "ready"}}}'
    else:
        body = json.dumps({"data": [{"id": "whisper-base", "role": "stt"}, {"id": "piper-joe", "role": "tts"}]}).encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    await writer.drain()
    writer.close()


@pytest.fixture
async def voice(running: Running, nats_url: str) -> AsyncIterator[StandIn]:
    """The voice service of the gateway under test."""
    nc = await connect_nats(nats_url, "voice-test", pending=AUDIO_PENDING)
    try:
        async with StandIn(nc, running.gateway.store) as stand_in:
            yield stand_in
    finally:
        await nc.close()


def alike(took: Mapping[str, Sequence[float]]) -> bool:
    """Return whether refusals of different kinds took equally long; fail when they still did not after `ROUNDS` of them.

    Compares the shortest time of each kind, of at least three, because the machine may be busy."""
    rounds = min(map(len, took.values()))
    if rounds < 3:
        return False
    shortest = [min(times) for times in took.values()]
    assert rounds < ROUNDS, took
    return max(shortest) - min(shortest) < ALIKE_S


async def listening(running: Running) -> None:
    """Wait until the gateway accepts connections."""
    await eventually(lambda: opens(running.port))
