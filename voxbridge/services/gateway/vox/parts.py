"""Parts of a gateway that all of its connections share, as a connection sees them."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from voxbridge.services.gateway.awareness.recorder import Recorder
from voxbridge.services.gateway.door.access import Access
from voxbridge.services.gateway.door.admission import Admission
from voxbridge.services.gateway.metrics import Metrics
from voxbridge.services.gateway.vox.microphones import Microphones
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import Resources
from voxbridge.shared.store.store import Store

_C = TypeVar("_C", contravariant=True)


class GatewayParts(Protocol[_C]):
    """The parts of a gateway that all connections, of type `_C`, share."""

    resources: Resources
    log: Log
    store: Store
    access: Access
    metrics: Metrics
    microphones: Microphones
    admission: Admission
    reports: Recorder

    def left(self, connection: _C) -> None:
        """Forget a connection that is over."""

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine that outlives its caller."""
