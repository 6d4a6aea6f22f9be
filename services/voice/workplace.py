"""What the sessions of a process share, and what they are offered when they begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.voice.handles import Handles
from services.voice.models import Models
from services.voice.tenure import Tenure
from services.voice.vendors import Vendors
from shared.agents import Cast
from shared.clock import Clock
from shared.config import Config
from shared.fast_client import FastClient
from shared.log import Log
from shared.store import Function


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
