"""The reads from the log that a resume needs: the session's last facts, its open calls, its transcript.

Owns the reads and which of them run concurrently. Does not own the rules (`resume_rules`, `browser_calls`). Only the snapshot's read grows
with the length of the session, and it is paged. Nothing is kept, and nothing is lost in a crash.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from voxbridge.services.gateway.core import browser_calls, page_functions, resume_rules
from voxbridge.services.gateway.door import tokens
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log, decode, position
from voxbridge.shared.store.store import Resumable, Store

CALL_AGE_S: Final = page_functions.TIMEOUT_MS[1] // 1_000 + 60
"""Seconds after which a call of the page counts as closed: the longest timeout that a page may declare, and a minute in which the session
may have had no worker."""

_CLOCKS_US: Final = 60_000_000
"""Microseconds by which the clocks of two machines may differ."""

_log = logging.getLogger(__name__)


async def find(log: Log, store: Store, sid: str, token: str) -> resume_rules.Known | None:
    """Return the state of a session that has not ended and has this token; None otherwise. Raises `UNAVAILABLE`."""
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
    """Return the session's request, the last event on each of its visible subjects, and the last voice event of each type on
    `subjects.SESSION`. In log order; empty for an unknown session. Raises `UNAVAILABLE`."""
    requested = subjects.event_subject(sid, "gateway", visible=False, event_type="session.requested")
    last = await log.last([requested, subjects.stored_subject(sid, visibility="c")])
    by_type = {one.type: one for one in last}
    voice = [one async for one in log.read_all(sid, writer="voice", visibility="c", topic=subjects.SESSION)] if last else []
    by_type |= {one.type: one for one in voice}
    if last and "session.started" not in by_type:  # the log of a long session may have dropped it; `agent.said` names the last speaker
        by_type |= {one.type: one for one in [one async for one in log.read_all(sid, writer="voice", visibility="c", topic=subjects.SAID)]}
    return sorted(by_type.values(), key=lambda one: one.seq)


async def open_calls(log: Log, sid: str, *, now: int) -> browser_calls.Calls:
    """Return the page's open calls. `now` is in µs of the Unix clock."""
    since = now - CALL_AGE_S * 1_000_000
    past = [
        *await _since(log, sid, since, writer="voice", visibility="c", topic=subjects.SESSION),
        *await _since(log, sid, since, writer="voice", visibility="c", topic="tool.>"),  # subject used by the first release
        *await _since(log, sid, since, writer="tools", visibility="c"),
    ]
    calls = browser_calls.fold(past)
    if not calls.open:
        return calls
    first = min(one.ts for one in past if isinstance(one.event, events.voice.ToolCalled))
    return browser_calls.fold([*past, *await _since(log, sid, max(since, first - _CLOCKS_US), writer="gateway")])


async def snapshot(log: Log, sid: str, known: resume_rules.Known) -> dict[str, Any]:
    """Return the snapshot of a session."""
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
