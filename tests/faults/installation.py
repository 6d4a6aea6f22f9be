"""A whole installation for calls on Gemini Live: nats-server, Valkey, gateway, voice workers and executor, each a separate process, and the
stand-in for Google in this one. Any of them can be killed with SIGKILL and started again as by a supervisor. Its calls are replayed at the
end."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from redis.asyncio import Redis
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from tests import replayed
from tests.eventually import BOUND_S, eventually, opens
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Turn
from tests.faults.orders import BOOKINGS, CHARGES, effects
from tests.ports import free_port
from voxbridge.installation import streams
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events.voice import SessionOwned
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import STAND_BY, health_subject
from voxbridge.shared.store.store import Store

WORKERS: Final = ("voice-1", "voice-2")
SERVICES: Final = ("tools", *WORKERS, "gateway")
ROOT: Final = Path(__file__).parents[2]
KEY: Final = "AIza-of-the-installation-0123456789"


class Google(GeminiServer):
    """The stand-in; while `door` is not set, new connections wait."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.door = asyncio.Event()
        self.door.set()

    def says(self, *turns: Turn) -> None:
        """Set the next turns of the model, in place of those not yet said."""
        left = list(turns)
        self.reply = lambda _: left.pop(0) if left else Turn(says="Nobody asked.")

    async def _process_request(self, wire: ServerConnection, request: Request) -> Response | None:  # type: ignore[override]  # may wait
        await self.door.wait()
        return super()._process_request(wire, request)


class Running:
    """A process, and every line that it wrote."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.lines: list[str] = []
        self.process = process
        self._reading = asyncio.create_task(self._read())
        self._serves = asyncio.Event()
        self._stands_by = asyncio.Event()

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def serving(self) -> None:
        """Wait until its log says that it serves."""
        async with asyncio.timeout(BOUND_S):
            await self._serves.wait()
        assert self.alive, "\n".join(self.lines)

    async def standing_by(self) -> None:
        """Wait until its log says that it stands by: it has loaded everything, and waits for the command to begin."""
        async with asyncio.timeout(BOUND_S):
            await self._stands_by.wait()

    def begin(self) -> None:
        """Make a standby process begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.close()

    async def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self.alive:
            self.process.kill()
        await self.process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.lines.append(line.decode())
            if f" {self.name.partition('-')[0]} serves." in self.lines[-1]:
                self._serves.set()
            elif self.lines[-1].endswith(" stands by.\n"):
                self._stands_by.set()
        self._serves.set()  # releases waiters: the process has ended


class Servers:
    """nats-server and Valkey, and how they are reached: here as in `make up`."""

    def __init__(self, folder: Path) -> None:
        self.nats = NatsServer(folder / "nats")
        self.valkey = ValkeyServer(folder / "valkey")

    async def prepare(self) -> None:
        """Create the streams; called once the servers answer, and after each start of nats-server."""
        await streams.make_streams(Config(nats_url=self.nats.url))

    def env(self, service: str) -> dict[str, str]:
        """Return the settings with which a service reaches them."""
        return {"VOXBRIDGE_NATS_URL": self.nats.url_of(service), "VOXBRIDGE_REDIS_URL": self.valkey.url}

    async def connect(self) -> Client:
        """Return a connection that may read everything."""
        return await nats.connect(self.nats.url)

    def redis(self) -> Redis:
        """Return a client that may read the functions."""
        return Redis.from_url(self.valkey.url, decode_responses=True)


class Installation:
    """The running processes. Make it with `installed`."""

    def __init__(self, config: Config, google: Google, servers: Servers, env: Mapping[str, str]) -> None:
        self.config = config
        self.google = google
        self.servers = servers
        self.nats, self.valkey = servers.nats, servers.valkey
        self.lines: list[str] = []
        """Lines that ended processes wrote."""

        self._running: dict[str, Running] = {}
        self._waiting: dict[str, Running] = {}
        self._env = env

    async def start(self, *names: str) -> None:
        """Start these services at the same time, and wait until all serve."""
        for name in names:
            waiting = self._waiting.pop(name, None)
            if waiting is not None:
                waiting.begin()
            self._running[name] = waiting or await self._spawn(name)
        for name in names:
            await self._running[name].serving()
        await self._until_warm([self._running[name].process.pid for name in names if name in WORKERS])
        if "gateway" in names:
            await self._until_open()

    async def stand_by(self, name: str) -> None:
        """Load the next process of a service, as `voxbridge up` does."""
        self._waiting[name] = await self._spawn(name, STAND_BY)
        await self._waiting[name].standing_by()

    async def _spawn(self, name: str, *options: str) -> Running:
        service = name.partition("-")[0]
        env = {**self._env, **self.config.as_env(), **self.servers.env(service)}
        command = [sys.executable, "-m", f"voxbridge.services.{service}", *options]
        stdin = PIPE if options else DEVNULL
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdin=stdin, stdout=PIPE, stderr=STDOUT, limit=1 << 20)
        return Running(name, process)

    async def _until_warm(self, pids: Sequence[int]) -> None:
        """Wait until these voice workers have loaded everything, as a worker that takes a call over normally has."""
        connection = await self.servers.connect()
        try:
            async with asyncio.timeout(BOUND_S):
                for pid in pids:
                    while True:
                        with suppress(NatsError):
                            await connection.request(health_subject("voice", socket.gethostname(), pid), b"", timeout=1)
                            break
                        await asyncio.sleep(0.05)
        finally:
            await connection.close()

    async def heal(self) -> None:
        """Start whatever does not run."""
        for server in (self.nats, self.valkey):
            if server.pid is None:
                server.start()
        await self.servers.prepare()
        await self.start(*(name for name in SERVICES if name not in self._running or not self._running[name].alive))

    def pid(self, name: str) -> int:
        """Return the process id of a service."""
        return self._running[name].process.pid

    async def kill(self, name: str) -> None:
        """Send SIGKILL to a service."""
        running = self._running.pop(name)
        await running.kill()
        self.lines += running.lines

    async def owner(self, sid: str) -> str:
        """Return the name of the worker that owns a session."""
        async with self.log() as log:
            owned = [one.event async for one in log.read_all(sid, writer="voice", types=("session.owned",))]
        assert isinstance(owned[-1], SessionOwned)
        worker = owned[-1].worker
        return next(name for name in WORKERS if any(worker in line.split()[2:3] for line in self._running[name].lines))

    @asynccontextmanager
    async def log(self) -> AsyncIterator[Log]:
        """Open the event log over a connection of its own."""
        connection = await self.servers.connect()
        try:
            yield Log(connection)
        finally:
            await connection.close()

    async def events(self, sid: str) -> list[events.Recorded]:
        """Return the log of a session, once the executors have no pending call."""
        async with self.log() as log, asyncio.timeout(BOUND_S):

            async def nothing_pending() -> bool:
                info = await log.js.consumer_info(subjects.EVENT_STREAM, "tools")
                return not (info.num_ack_pending or info.num_pending)

            await eventually(nothing_pending)
            return [one async for one in log.read_all(sid)]

    async def logged(self, sid: str, writer: str, type: str, count: int) -> None:
        """Wait until the log of a session has so many events of this type."""
        async with self.log() as log, asyncio.timeout(BOUND_S):

            async def holds() -> bool:
                return len([one async for one in log.read_all(sid, writer=writer, types=(type,))]) >= count

            await eventually(holds)

    async def begun(self, folder: Path, count: int) -> None:
        """Wait until so many effects are recorded in a folder."""
        await eventually(lambda: sum(len(effects(folder, name)) for name in (BOOKINGS, CHARGES)) >= count)

    async def has_functions(self) -> None:
        """Wait until the functions are registered."""
        async with self.servers.redis() as redis, asyncio.timeout(BOUND_S):
            await eventually(Store(redis).functions)

    async def stop(self) -> None:
        """Kill all processes."""
        for name in list(self._running):
            await self.kill(name)
        for waiting in self._waiting.values():
            await waiting.kill()

    async def differences(self) -> str:
        """Return what in the replays of its sessions differs from its log, as text; empty where nothing does."""
        if self.nats.pid is None:
            self.nats.start()
        connection = await self.servers.connect()
        try:
            return await replayed.differences(connection, ("voice", "tools"))
        finally:
            await connection.close()

    def written(self) -> list[str]:
        """Return every line that every service has written."""
        return [*self.lines, *(line for running in self._running.values() for line in running.lines)]

    async def _until_open(self) -> None:
        await eventually(lambda: opens(self.config.port))


@asynccontextmanager
async def installed(
    folder: Path, servers: Servers | None = None, *, env: Mapping[str, str] | None = None, **settings: object
) -> AsyncIterator[Installation]:
    """Run the whole installation. `env` is added to the environment of the services, `settings` to their configuration."""
    servers = servers or Servers(folder)
    agents = folder / "agents"
    agents.mkdir()
    (agents / "triage.yaml").write_text("model: gemini\nprompt: You send people on.\nvoice: Aoede\nhandoffs: [advisor]\n")
    (agents / "advisor.yaml").write_text("model: gemini\nprompt: You advise.\nvoice: Charon\n")
    async with AsyncExitStack() as running:
        for server in (servers.nats, servers.valkey):
            running.enter_context(server)
        await servers.prepare()
        google = await running.enter_async_context(Google(folder))
        config = Config(
            port=free_port(),
            models_port=free_port(),
            models_dir=Config.from_env().models_dir,
            data_dir=folder / "data",
            agents_dir=agents,
            greeting="",
            tool_packs="tests.faults.orders",
        )
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")}
        known = {"GOOGLE_GEMINI_BASE_URL": google.url, "SSL_CERT_FILE": str(google.ca_file), "GEMINI_API_KEY": KEY}
        found = Installation(replace(config, **settings), google, servers, {**inherited, **known, **(env or {})})  # type: ignore[arg-type]
        running.push_async_callback(found.stop)
        await found.heal()
        await found.has_functions()
        yield found
        await found.stop()
        assert not (left := await found.differences()), left
