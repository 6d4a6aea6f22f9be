"""The parts of a gateway process that REST uses. Names what the routes need without importing the process that serves them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.types import Scope

from voxbridge.services.gateway.awareness.recorder import Recorder
from voxbridge.services.gateway.calls.calls import Calls
from voxbridge.services.gateway.calls.runs import Runs
from voxbridge.services.gateway.door.access import Access
from voxbridge.services.gateway.door.transport import Outlet
from voxbridge.services.gateway.metrics import Metrics
from voxbridge.services.gateway.platform.platform import Platform
from voxbridge.services.gateway.rest.readiness import Readiness
from voxbridge.services.gateway.rest.sessions import Sessions
from voxbridge.shared.log.reader import Log
from voxbridge.shared.secrets.provider_keys import SealedKeys
from voxbridge.shared.service.process import Resources
from voxbridge.shared.store.store import Store


class Context(Protocol):
    """Connections and helpers of one gateway process."""

    access: Access
    calls: Calls
    keys: SealedKeys
    log: Log
    metrics: Metrics
    platform: Platform
    readiness: Readiness
    reports: Recorder
    resources: Resources
    runs: Runs
    sessions: Sessions
    store: Store

    async def enter(self, scope: Scope, *, v1: bool) -> Callable[[Outlet], Awaitable[None]]:
        """Judge a handshake by its key; return what serves its socket. Raises the error that refuses it."""
