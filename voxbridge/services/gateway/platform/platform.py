"""The platform's part of a gateway: its parts, wired, and the handshake at `/session`.

Owns the wiring. A crash here loses the sockets; keys and approvals are in the log, and places in Valkey are free again after some seconds.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from starlette.types import Scope

from voxbridge.services.gateway.door.admission import Admission
from voxbridge.services.gateway.platform.accounts import Accounts
from voxbridge.services.gateway.platform.admittance import Admittance
from voxbridge.services.gateway.platform.calls import KeyCalls
from voxbridge.services.gateway.platform.manner import Desk, SessionManner
from voxbridge.services.gateway.platform.registry import Registry
from voxbridge.services.gateway.platform.voices import Voices
from voxbridge.shared.service.process import Resources
from voxbridge.shared.store.usage import UsageStore


class Platform:
    """The platform's part of one gateway. `voices` asks for those of the installation; `background` runs what outlives its caller."""

    def __init__(
        self,
        resources: Resources,
        admission: Admission,
        voices: Callable[[], Awaitable[Sequence[Mapping[str, str]]]],
        background: Callable[[Coroutine[Any, Any, Any]], None],
    ) -> None:
        clock, log = resources.clock, resources.log
        self.registry = Registry(log)
        self.usage = UsageStore(resources.redis)
        self.accounts = Accounts(log, self.registry, clock.now_us)
        self.calls = KeyCalls(log, self.usage, self.accounts, background)
        self.admittance = Admittance(self.registry, self.usage, lambda: clock.now_us() // 1_000_000)
        self._desk = Desk(
            registry=self.registry,
            usage=self.usage,
            admittance=self.admittance,
            admission=admission,
            calls=self.calls,
            voices=Voices(voices),
            nc=log.nc,
            now_ms=lambda: clock.now_us() // 1_000,
        )

    async def enter(self, scope: Scope, *, v1: bool) -> SessionManner:
        """Judge a handshake; return the manner of its socket. Raises the error that refuses it."""
        place = secrets.token_hex(8)
        given = await self.admittance.admit(scope, place, resumes=v1)
        self.calls.entered(place, given.key)
        return SessionManner(self._desk, given, place, v1=v1)

    async def judge(self, scope: Scope) -> None:
        """Judge a handshake that no socket follows. Raises the error that refuses it."""
        place = secrets.token_hex(8)
        given = await self.admittance.admit(scope, place, resumes=False)
        self.calls.entered(place, given.key)
        self.calls.left(place)

    async def follow(self) -> None:
        """Follow keys and approvals, until cancelled."""
        await self.registry.follow()

    async def count(self) -> None:
        """Count the use of keys, until cancelled."""
        await self.calls.count()

    async def close(self) -> None:
        """Count once more."""
        await self.calls.close()
