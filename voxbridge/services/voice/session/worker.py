"""What the sessions of a process share, and what they are offered when they begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.services.voice.providers.realtime.handles import Handles
from voxbridge.services.voice.providers.realtime.registry import Vendors
from voxbridge.services.voice.session.stall_guard import Tenure
from voxbridge.shared.agents.model import Cast
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.clock import Clock
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What all sessions of a process share."""

    config: Config
    clock: Clock
    log: Log
    audio_nc: FastClient
    models: Models
    vad: Any
    worker: str
    tenure: Tenure = field(default_factory=Tenure)
    vendors: Vendors | None = None
    handles: Handles | None = None


class Offer(NamedTuple):
    """What the installation offers to a session that begins."""

    functions: tuple[Function, ...] = ()
    providers: tuple[str, ...] = ("local", "echo")
    cast: Cast | None = None
    record: bool = False
