"""Reading what a resume needs from the log: the session's last facts, its open calls, its transcript.

Owns the reads and what is asked side by side. Does not own the rules (`resume`, `calls`). No read grows with what was said in a session
but a snapshot's, which is read page by page. Nothing is kept, and nothing is lost in a crash.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from voxbridge.services.gateway.core import browser_calls, page_functions, resume_rules
from voxbridge.services.gateway.vox import tokens
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log, decode, position
from voxbridge.shared.store.store import Resumable, Store

CALL_AGE_S: Final = page_functions.TIMEOUT_MS[1] // 1_000 + 60
"""A call of the page that was made longer ago is not open any more: the longest time-out that a page may declare, and a minute in which
the session may have had no worker."""

_CLOCKS_US: Final = 60_000_000
"""How far the clocks of two machines may lie apart."""

_log = logging.getLogger(__name__)


async def find(log: Log, store: Store, sid: str, token: str) -> resume_rules.Known | None:
    """What is known of a session that goes on and has this token; nothing otherwise. Raises `UNAVAILABLE`."""
    last, kept, owned = await asyncio.gather(facts(log, sid), _kept(store, sid), _owned(store, sid))
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
    return resume_rules.known(last, mode=kept.mode, begins=begins, owned=owned)


async def facts(log: Log, sid: str) -> list[events.Recorded]:
    """The request of a session, the last event on each of its visible subjects, and what it is and does (`bus.SESSION`), of each type the
    last. In log order; nothing of a session that there is not. Raises `UNAVAILABLE`."""
    requested = subjects.event_subject(sid, "gateway", visible=False, type="session.requested")
    last = await log.last([requested, subjects.stored_subject(sid, visibility="c")])
    by_type = {one.type: one for one in last}
    voice = [one async for one in log.read_all(sid, writer="voice", visibility="c", topic=subjects.SESSION)] if last else []
    by_type |= {one.type: one for one in voice}
    if last and "session.started" not in by_type:  # a long session's log may have let it go, and still knows who spoke last
        by_type |= {one.type: one for one in [one async for one in log.read_all(sid, writer="voice", visibility="c", topic=subjects.SAID)]}
    return sorted(by_type.values(), key=lambda one: one.seq)


async def open_calls(log: Log, sid: str, *, now: int) -> browser_calls.Calls:
    """The calls of the page that are open. `now` in µs of the Unix clock."""
    since = now - CALL_AGE_S * 1_000_000
    past = [
        *await _since(log, sid, since, writer="voice", visibility="c", topic=subjects.SESSION),
        *await _since(log, sid, since, writer="voice", visibility="c", topic="tool.>"),  # as the first release stored them
        *await _since(log, sid, since, writer="tools", visibility="c"),
    ]
    open = browser_calls.fold(past)
    if not open:
        return open
    first = min(one.ts for one in past if isinstance(one.event, events.voice.ToolCalled))
    return browser_calls.fold([*past, *await _since(log, sid, max(since, first - _CLOCKS_US), writer="gateway")])


async def snapshot(log: Log, sid: str, known: resume_rules.Known) -> dict[str, Any]:
    """The snapshot of a session."""
    said = [one async for one in log.read_all(sid, writer="voice", visibility="c", types=resume_rules.SAID)]
    return resume_rules.snapshot(said, known)


async def _since(log: Log, sid: str, since: int, *, writer: str, visibility: str = "*", topic: str = ">") -> list[events.Recorded]:
    found: list[events.Recorded] = []
    page = await log.page(sid, writer=writer, visibility=visibility, topic=topic, since=since)
    while True:
        found += [decode(message) for message in page.messages]
        if not page.more:
            return found
        page = await log.page(sid, writer=writer, visibility=visibility, topic=topic, after=position(page.messages[-1]))


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
