"""Reading what a resume needs from the log: the session's last facts, its open calls, its transcript.

Owns the reads and what is asked side by side. Does not own the rules (`resume`, `calls`). No read grows with the length of a
session but a snapshot's, which reads what was said, page by page. Nothing is kept, and nothing is lost in a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from services.gateway import calls, resume, tokens
from shared import bus, events
from shared.errors import VoxbridgeError
from shared.log import Log, decode, position
from shared.store import Resumable, Store

CALL_AGE_S: Final = 3_600
"""A call of the page that was made longer ago is not open any more, whatever its function declares."""
CALL_SLACK_S: Final = 60
"""How much later than its limit a call may still be open: its session may have had no worker for a while."""

_log = logging.getLogger(__name__)


async def find(log: Log, store: Store, sid: str, token: str) -> resume.Known | None:
    """What is known of a session that goes on and has this token; nothing otherwise. Raises `UNAVAILABLE`."""
    requested = bus.event_subject(sid, "gateway", visible=False, type="session.requested")
    last, kept, owned = await asyncio.gather(
        log.last([requested, bus.stored_subject(sid, visibility="c")]), _kept(store, sid), _owned(store, sid)
    )
    request = next((one.event for one in last if isinstance(one.event, events.gateway.SessionRequested)), None)
    begins = 0
    if request is not None:
        kept = Resumable(resume_hash=request.resume_hash, mode=request.mode)
    elif kept is not None:
        first = (await log.page(sid, limit=1)).messages
        begins = position(first[0]) if first else 0
    admitted = tokens.fits(token, kept.resume_hash if kept is not None else "")
    if not admitted or kept is None or not last:
        return None
    return resume.known(last, mode=kept.mode, begins=begins, owned=owned)


async def open_calls(log: Log, store: Store, sid: str, *, now: int, limit_s: float) -> calls.Calls:
    """The calls of the page that are open. `now` in µs of the Unix clock; `limit_s` is what a function may take that declares no
    other limit."""
    since = now - int(await _call_age_s(store, limit_s) * 1_000_000)
    past = [one async for one in _since(log, sid, since, visibility="c", type="tool.>")]
    open = calls.fold(past)
    if not open:
        return open
    return calls.fold([*past, *[one async for one in _since(log, sid, since, writer="gateway", type="browser_call.answered")]])


async def snapshot(log: Log, sid: str, known: resume.Known) -> dict[str, Any]:
    """The snapshot of a session."""
    said = [one async for one in log.read_all(sid, writer="voice", visibility="c", type="*.said")]
    return resume.snapshot(said, known)


async def _since(log: Log, sid: str, since: int, *, writer: str = "*", visibility: str = "*", type: str) -> AsyncIterator[events.Recorded]:
    page = await log.page(sid, writer=writer, visibility=visibility, type=type, since=since)
    while True:
        for message in page.messages:
            yield decode(message)
        if not page.more:
            return
        page = await log.page(sid, writer=writer, visibility=visibility, type=type, after=position(page.messages[-1]))


async def _call_age_s(store: Store, limit_s: float) -> float:
    try:
        declared = [function.timeout_s for function in await store.functions() if function.kind == "browser"]
    except VoxbridgeError:
        return CALL_AGE_S
    return min(max(limit_s, *declared, 0) + CALL_SLACK_S, CALL_AGE_S)


async def _kept(store: Store, sid: str) -> Resumable | None:
    try:
        return await store.resumable(sid)
    except VoxbridgeError as error:
        _log.warning("session %s: %s Only the log can say whether it may be resumed.", sid, error.message)
        return None


async def _owned(store: Store, sid: str) -> bool | None:
    try:
        return (await store.held([sid]))[0]
    except VoxbridgeError as error:
        _log.warning("session %s: %s Whether a worker holds it is not known.", sid, error.message)
        return None
