"""Helpers for tests of several workers, and of calls that move between them."""

from __future__ import annotations

import pytest

from tests.voice.conftest import Page, becomes
from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.service import VoiceService
from voxbridge.sessions import move
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log.reader import Log


def owner(page: Page, *among: VoiceService) -> VoiceService:
    """Return the worker that holds the session of a page."""
    (found,) = [one for one in among if page.sid in one._sessions]
    return found


def name(worker: VoiceService) -> str:
    """Return the name of a worker."""
    return worker._place.worker


async def serves(worker: VoiceService) -> None:
    """Wait until a worker has subscribed to everything, and has looked for orphans."""

    async def looked() -> bool:
        return worker._orphans._looked

    await becomes(looked)


async def refused(log: Log, sid: str, to: str = "") -> VoxbridgeError:
    """Return the error with which a move is refused."""
    with pytest.raises(VoxbridgeError) as caught:
        await move.move(log, sid, to)
    return caught.value


def pause_ms(page: Page) -> int:
    """Return the ms between release and restoration in the log."""
    (released,) = [one.ts for one in page.heard if isinstance(one.event, ev.SessionReleased)]
    (restored,) = [one.ts for one in page.heard if isinstance(one.event, ev.SessionRestored)]
    return (restored - released) // 1_000


def state_of(page: Page, *among: VoiceService) -> State:
    """Return the state of the session of a page."""
    return owner(page, *among)._sessions[page.sid].state
