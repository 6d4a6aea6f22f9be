"""What a function may ask for beside its arguments: who called, when, the store, the notes, and a way to state facts and progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a pack is loaded in an instant where none of these are needed
    from voxbridge.services.tools.projection import Notes
    from voxbridge.shared import events
    from voxbridge.shared.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Passed to a function that has a parameter annotated `Context`. `now` in µs of the Unix clock, when this attempt began."""

    account: str
    sid: str
    call_id: str
    attempt: int
    now: int
    store: Store
    notes: Notes
    emit: Callable[[events.Event], Awaitable[None]]
    """State a fact (an event of voxbridge/shared/events/tools.py): returns once the log has it; raises `CANCELLED` when the call is
    over."""

    progress: Callable[[float, str], Awaitable[None]]
    """Say where an async function stands, from 0 to 1, with a few words; raises as `emit` does."""
