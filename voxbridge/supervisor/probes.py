"""Readiness probes of services: over HTTP for a service with a port, over NATS for one without.

Owns the connections that the probes use. Does not own what follows from an answer. A crash here loses nothing.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress

import httpx
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.connection import close_nats, connect_nats
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.service.process import health_subject
from voxbridge.supervisor.children import Probe

TIMEOUT_S = 1.0
_PENDING = 64 * 1024


class Probes:
    """Factory of probes; it closes the connections that they used."""

    def __init__(self, nats_url: str) -> None:
        self._nats_url = nats_url
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, limits=httpx.Limits(max_connections=4))
        self._nats: Client | None = None
        self._connecting = asyncio.Lock()

    def http(self, url: str) -> Probe:
        """Return a probe that is ready when a GET is answered with 200 and, if the answer is JSON with a `ready`, that is true."""

        async def ready() -> bool:
            try:
                answer = await self._http.get(url)
                found = answer.json() if answer.status_code == httpx.codes.OK else {"ready": False}
            except (httpx.HTTPError, ValueError):
                return False
            return bool(found.get("ready", True)) if isinstance(found, dict) else True

        return ready

    def bus(self, service: str, pid: Callable[[], int] = lambda: 0) -> Probe:
        """Return a probe that is ready when `vx.svc.<service>.health` says so; with `pid`, when the local process of this number says so of
        itself."""

        async def ready() -> bool:
            own = pid()
            subject = health_subject(service, socket.gethostname(), own) if own else health_subject(service)
            try:
                nc = await self._connected()
                answer = await nc.request(subject, b"", timeout=TIMEOUT_S)
                return bool(json.loads(answer.data)["ready"])
            except (NatsError, Unavailable, OSError, TimeoutError, ValueError, KeyError, TypeError):
                return False

        return ready

    async def a_voice_worker_died(self) -> None:
        """Tell the other workers to check at once which one died. Without this they notice a little later."""
        with suppress(NatsError, Unavailable, OSError, TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await subjects.publish(await self._connected(), subjects.GONE, b"")

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._nats is None:
                self._nats = await connect_nats(self._nats_url, "voxbridge-up", pending=_PENDING, timeout_s=TIMEOUT_S)
            return self._nats

    async def close(self) -> None:
        """Close the connections."""
        if self._nats is not None:
            await close_nats(self._nats)
        with suppress(httpx.HTTPError):
            await self._http.aclose()
