"""The gateway as a service: its listening socket, its connections, and what they share.

Owns the set of connections, the periodic tick and the drain. Owns no session state: a crash here costs the clients only their sockets, and
they connect again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.types import Scope

from voxbridge.services.gateway.awareness.recorder import Recorder
from voxbridge.services.gateway.calls.calls import Calls, Limits
from voxbridge.services.gateway.calls.runs import Runs
from voxbridge.services.gateway.core.state import Live
from voxbridge.services.gateway.door.access import Access, Arrival
from voxbridge.services.gateway.door.admission import Admission
from voxbridge.services.gateway.door.asgi import Application
from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.services.gateway.door.connection_limits import Lobby, raise_descriptors
from voxbridge.services.gateway.door.http_front import Front
from voxbridge.services.gateway.door.origin_guard import Guard
from voxbridge.services.gateway.door.transport import FIRST_LIMIT, Outlet, Socket
from voxbridge.services.gateway.metrics import Metrics
from voxbridge.services.gateway.platform.platform import Platform
from voxbridge.services.gateway.rest.app import application
from voxbridge.services.gateway.rest.children import Children
from voxbridge.services.gateway.rest.readiness import Readiness
from voxbridge.services.gateway.rest.sessions import Sessions
from voxbridge.services.gateway.terminals.sockets import Terminals
from voxbridge.services.gateway.vox.manner import Manner, VoxManner
from voxbridge.services.gateway.vox.microphones import Microphones
from voxbridge.services.gateway.vox.shell import Vox
from voxbridge.shared.cancellation import ended
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.secrets.provider_keys import SealedKeys
from voxbridge.shared.service.http_server import HttpServer
from voxbridge.shared.service.process import Resources, Service
from voxbridge.shared.step.effects import Tasks
from voxbridge.shared.store.store import LEASE_MS, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK_S: Final = 0.5
RENEWED_MS: Final = 2_000
"""Milliseconds after which a worker has missed a lease renewal: its session is shown as restoring before another worker takes it over."""
ALIVE_S: Final = 1.0
"""Seconds between two heartbeats of the gateway; it counts as gone after three times that."""
DRAIN_S: Final = 2.0
"""Seconds that the log may take for the last events of a gateway that stops."""
PING_S: Final = 20.0
_KEEP_ALIVE_S: Final = 30
_GRACE_S: Final = 1

_log = logging.getLogger(__name__)


class Gateway(Service):
    """A gateway process."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.log = resources.log
        self.store = Store(resources.redis)
        self.keys = SealedKeys.of(resources.config, resources.redis)
        self.access = Access(resources.config, self.store, resources.clock)
        self.metrics = Metrics()
        self.admission = Admission(resources.config)
        self.metrics.admission = self.admission
        self.calls = Calls(self.log, resources.clock.now_us, Limits(self.admission.room_left, self.admission.account))
        self.reports = Recorder(self.log, resources.clock.now_us, self.admission.room_left)
        self.runs = Runs(self.log, resources.clock.now_us, resources.process_id)
        self.budget = Budget()
        self.unread = Budget()
        self.lobby = Lobby(resources.config, room=raise_descriptors())
        self.microphones = Microphones(resources.audio_nc, self.metrics)
        self.readiness = Readiness(resources, self.log, self.admission)
        self.sessions = Sessions(self.log, self.store, resources.clock)
        self.children = Children(self)
        self.platform = Platform(resources, self.admission, self.readiness.voices, self.background)
        self.terminals = Terminals(resources, self.unread)
        self.connections: set[Vox] = set()
        self.draining = False
        self._trouble = -LEASE_MS / 1_000
        """Time of the last failed heartbeat in Valkey, on the loop's clock."""
        self._numbered = 0
        self._over = False
        self._tasks = Tasks[None]("the gateway")
        config = resources.config
        self._server = _Server(
            uvicorn.Config(
                Application(Guard(config), self, application(self)),
                host=config.host,
                port=config.port,
                loop="none",
                http=partial(Front, self.lobby, self.unread),  # type: ignore[arg-type]  # uvicorn only calls it
                ws=Socket,
                ws_max_size=FIRST_LIMIT,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )

    async def serve(self) -> None:
        """Listen until drained."""
        config = self.resources.config
        await self.log.ensure_streams(retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
        ticking = [asyncio.create_task(work) for work in self._works()]
        self.background(self.sessions.ensure_index())
        await self.children.answer(self.resources.micro)
        try:
            await self._server.serve()
        finally:
            self._over = True
            await ended(*ticking)
            await _guarded(self.store.gateway_gone(self.resources.process_id))
            await self.readiness.close()
            await self.calls.close()
            await _guarded(self.platform.close())

    def _works(self) -> tuple[Coroutine[Any, Any, None], ...]:
        return self._tick(), self._say_alive(), self.admission.watch(self.log), self.platform.follow(), self.platform.count()

    async def drain(self) -> None:
        """Tell every client to connect again, wait for the log, and stop listening."""
        self.draining = True
        leaving = list(self.connections)
        for connection in leaving:
            connection.shut_down()
        self.terminals.shut_down()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(connection.flushed() for connection in leaving))
        self._server.stop()

    def health(self) -> Mapping[str, bool]:
        """Return whether the gateway listens."""
        return {"listening": self._server.started}

    def stats(self) -> Mapping[str, float]:
        """Return the figures for `$SRV.STATS`."""
        return {"sockets": len(self.connections), "frames_in": self.metrics.frames_in, "frames_out": self.metrics.frames_out}

    async def serve_socket(self, socket: Socket, came: Arrival, *, v1: bool) -> None:
        """Serve one accepted socket until it closes."""
        await self._serve(socket, VoxManner(self.access, self.admission, came, v1=v1), self._next_name())

    async def enter(self, scope: Scope, *, v1: bool) -> Callable[[Outlet], Awaitable[None]]:
        """Judge a handshake at `/session`, or a request to `/api/chat`; return what serves its socket. Raises what refuses it."""
        name = self._next_name()
        manner = await self.platform.enter(scope, v1=v1)

        async def serve(socket: Outlet) -> None:
            await self._serve(socket, manner, name)

        return serve

    async def enter_terminals(self, scope: Scope) -> Callable[[Socket], Awaitable[None]]:
        """Judge a handshake at `/ws/terminals` by its ticket; return what serves its socket. Raises the error that refuses it."""
        return await self.terminals.enter(scope)

    def _next_name(self) -> str:
        self._numbered += 1
        return f"{self.resources.process_id}-{self._numbered}"

    async def _serve(self, socket: Outlet, manner: Manner, name: str) -> None:
        connection = Vox(self, socket, sid=new_session_id(), name=name, manner=manner)
        self.connections.add(connection)
        self.metrics.sockets += 1
        socket.attach(connection, self.budget)
        try:
            await connection.closed
        finally:
            self.metrics.sockets -= 1

    def left(self, connection: Vox) -> None:
        """Forget a connection that is over."""
        self.connections.discard(connection)

    async def idle(self) -> None:
        """Wait until all background work is done: closed connections are cleaned up, and the log has their last events."""
        await self._tasks.background_idle()

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine that outlives its caller. An outage is logged."""
        self._tasks.background(_guarded(work))

    async def _tick(self) -> None:
        while not self._over:  # a request to Valkey can swallow a cancellation
            await asyncio.sleep(TICK_S)
            await self._look_after()

    async def _say_alive(self) -> None:
        """Send heartbeats. A killed gateway cannot record that its sockets closed; its silence tells the sessions."""
        loop = asyncio.get_running_loop()
        heard = True
        while not self._over:
            try:
                await self.store.gateway_lives(self.resources.process_id)
                heard = True
            except VoxbridgeError as error:
                if heard:
                    _log.warning("%s Nobody hears that this gateway lives.", error.message)
                heard = False
                self._trouble = loop.time()
            await asyncio.sleep(ALIVE_S)

    async def _look_after(self) -> None:
        connections = list(self.connections)
        live = [connection for connection in connections if isinstance(connection.core.phase, Live)]
        self.metrics.sessions = sum(connection.core.attached for connection in connections)
        owned: dict[str, bool] = {}
        # Leases cannot be renewed while Valkey refuses writes: a missing lease says nothing about its worker until it had time to renew.
        troubled = asyncio.get_running_loop().time() - self._trouble < LEASE_MS / 1_000
        try:
            renewed = await self.store.renewed([connection.sid for connection in live], within_ms=RENEWED_MS)
            owned = {connection.sid: lives for connection, lives in zip(live, renewed, strict=True) if lives or not troubled}
        except VoxbridgeError as error:
            _log.warning("%s Who holds which session is not known.", error.message)
        now_ms = self.resources.clock.now_us() // 1_000
        for connection in connections:
            connection.tick(now_ms, owned=owned.get(connection.sid))


class _Server(HttpServer):
    """The HTTP server, without signal handlers: `voxbridge.shared.service.process` owns the signals of the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _guarded(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except VoxbridgeError as error:
        _log.warning("%s", error.message)


async def build(resources: Resources) -> Gateway:
    """Build the gateway."""
    return Gateway(resources)
