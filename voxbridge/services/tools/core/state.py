"""State of the calls and tasks of one session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from voxbridge.services.tools.core.inputs import Alarm, Mode


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An open call. Times in µs of the Unix clock; `wake_at` is its deadline, or the time of its alarm."""

    seq: int
    name: str
    arguments: dict[str, Any]
    called_at: int
    deadline_ms: int
    phase: Literal["waiting", "running", "scheduled"] = "waiting"
    mode: Mode = "call"
    idempotent: bool = False
    timeout_ms: int = 0
    attempt: int = 0
    started_at: int = 0
    wake_at: int = 0
    account: str = ""
    cancelled: str = ""
    alarm: Alarm | None = None


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Open calls by id, the log positions of ended calls by id, and cancellations that came before their call."""

    open: Mapping[str, Call] = {}
    ended: Mapping[str, int] = {}
    withdrawn: Mapping[str, str] = {}
