"""Sessions according to the log: the list, one session's transcript, its events.

Owns how the log is read for people. The order of the list is an index in Valkey; when Valkey lost it, it is built again
from the log. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.micro.request import ERROR_CODE_HEADER as SERVICE_ERROR

from voxbridge.services.gateway.core import resume_rules, transcript
from voxbridge.shared import events
from voxbridge.shared.audio.recordings import Waveform
from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.ids import check_session_id
from voxbridge.shared.log.reader import LAST_LIMIT, Log, Page, decode, position, type_of
from voxbridge.shared.log.silences import silences
from voxbridge.shared.store.store import Store

LIST_LIMIT: Final = 200
EVENTS_LIMIT: Final = 1_000
TRANSCRIPT_LIMIT: Final = 5_000
"""Entries of a transcript; a longer one is cut and marked `truncated`."""

SILENCES_READ: Final = 20_000
"""Events that are searched for silences, from the beginning of a session."""

_ENDS: Final = (bus_subjects.SESSION, "session.ended")
"""Topics of a session's end: the current one, and that of the first release."""

_SUMMARY: Final = (
    *(("voice", "c", end) for end in (*_ENDS, bus_subjects.SAID, "session.started", "turn.completed")),
    ("gateway", "i", "session.requested"),
    ("operator", "c", "session.erased"),
)
_BEGINNINGS: Final = frozenset(("session.requested", "session.erased"))
"""Events that a session has exactly one of."""

_PER_READ: Final = LAST_LIMIT // len(_SUMMARY)
_JOURNAL: Final = ".journal"
STATE: Final = "vx.svc.voice.state"
STATE_TIMEOUT_S: Final = 10.0

_log = logging.getLogger(__name__)


class _Told(msgspec.Struct, frozen=True):
    """An error in the answer of another service."""

    code: Code
    message: str
    retryable: bool
    field: str | None = None
    limit: int | float | str | None = None


class Sessions:
    """The sessions of the installation."""

    def __init__(self, log: Log, store: Store, clock: Clock) -> None:
        self._log = log
        self._store = store
        self._clock = clock
        self._building = asyncio.Lock()
        self._began: dict[str, int] = {}

    async def page(self, *, limit: int, before_ms: int | None) -> dict[str, Any]:
        """Return up to `limit` sessions, newest first, that started before `before_ms`; more when several began in the same ms."""
        await self.ensure_index()
        found = await self._store.recent_sessions(limit=limit, before=None if before_ms is None else before_ms * 1_000)
        more = len(found) == limit
        if more:
            # `before` is in ms, so all sessions of one ms are on the same page.
            last_ms = found[-1][1] // 1_000
            rest = await self._store.recent_sessions(limit=LIST_LIMIT, before=found[-1][1])
            found += [(sid, ts) for sid, ts in rest if ts // 1_000 == last_ms]
        summaries = await self.summaries([sid for sid, _ in found])
        page: dict[str, Any] = {"sessions": [summaries[sid] for sid, _ in found if sid in summaries]}
        if more:
            page["next_before"] = found[-1][1] // 1_000
        return page

    async def detail(self, sid: str) -> dict[str, Any]:
        """Return one session with its transcript. Raises `NOT_FOUND`."""
        summary = (await self.summaries([check_session_id(sid)])).get(sid)
        if summary is None:
            raise no_session()
        said: list[dict[str, Any]] = []
        async for recorded in self._log.read_all(sid, writer="voice", visibility="c", types=resume_rules.SAID):
            entry = transcript.entry(recorded, said[-1] if said else None)
            if entry is not None:
                if said and entry["seq"] == said[-1]["seq"]:
                    said.pop()
                if len(said) == TRANSCRIPT_LIMIT:
                    summary["truncated"] = True
                    break
                said.append(entry)
        children = self._log.read_all(sid, writer="tools", visibility="i", topic="child.opened")
        asked = dict.fromkeys([one.event.child async for one in children if isinstance(one.event, events.tools.ChildOpened)])
        found = await self.summaries(list(asked))
        return {**summary, **({"children": [found[one] for one in asked if one in found]} if found else {}), "transcript": said}

    async def events(self, sid: str, *, after: int, limit: int, journals: bool = True) -> bytes:
        """Return a page of a session's events as JSON, with or without the journals. Raises `NOT_FOUND` for an unknown session."""
        found = await self._log.page(check_session_id(sid), after=after, limit=limit)
        if not found.messages and not await self.summaries([sid]):
            raise no_session()
        # In a thread, so that encoding a thousand events does not delay the audio of live sessions.
        return await asyncio.to_thread(_page, found, after, journals)

    async def silences(self, sid: str) -> dict[str, Any]:
        """Return the stretches in which the user waited and nothing was heard, with their causes. Raises `NOT_FOUND`."""
        await self.began_us(sid)
        log: list[events.Recorded] = []
        async for found in self._log.pages(sid):  # journals, most of a log, are left out before they are decoded
            log += [decode(message) for message in found.messages if not type_of(message).endswith(_JOURNAL)]
            if len(log) >= SILENCES_READ:
                log = log[:SILENCES_READ]
                break
        whole = len(log) < SILENCES_READ
        live = bool(log) and whole and not any(isinstance(one.event, events.voice.SessionEnded) for one in log[-50:])
        told = silences(log, self._clock.now_us() if live else None)
        return {"silences": msgspec.to_builtins(told), "live": live}

    async def account(self, sid: str) -> str | None:
        """Return the account that a session was requested for; None when it is unknown, erased, or dropped from the log.

        Read from the log each time: an erased session belongs to no account from that moment on.
        """
        found = await self._log.last([_request(sid)])
        event = found[0].event if found else None
        return event.account if isinstance(event, events.gateway.SessionRequested) else None

    async def began_us(self, sid: str) -> int:
        """Return when a session was requested, in µs. Raises `NOT_FOUND`."""
        if sid not in self._began:
            found = await self._log.last([_request(sid)])
            if not found:
                raise _erased() if sid in await self.summaries([sid]) else no_session()
            if len(self._began) >= LIST_LIMIT:
                self._began.pop(next(iter(self._began)))
            self._began[sid] = found[0].ts
        return self._began[sid]

    async def state(self, sid: str, *, at: int | None, seq: int | None) -> bytes:
        """Return the state of a session as JSON, folded from the log by the voice service. Raises the error it answers, or `UNAVAILABLE`
        without an answer."""
        await self.began_us(sid)
        question: dict[str, Any] = {"sid": sid, "seq": seq} if seq is not None else {"sid": sid, "at": at}
        try:
            reply = await self._log.nc.request(STATE, msgspec.json.encode(question), timeout=STATE_TIMEOUT_S)
        except NoRespondersError as error:
            raise Unavailable("No voice worker is there to fold the session's state.", retry_after_ms=1_000) from error
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The voice service did not fold the session's state in time.", retry_after_ms=1_000) from error
        if (reply.headers or {}).get(SERVICE_ERROR):
            raise told(reply.data)
        return reply.data

    async def waveform(self, asked: Waveform) -> bytes:
        """Return the peaks of a session's audio as JSON, drawn by the voice service: only it opens recordings. Raises the error it answers,
        or `UNAVAILABLE` without an answer."""
        try:
            reply = await self._log.nc.request(bus_subjects.WAVEFORM, msgspec.json.encode(asked), timeout=STATE_TIMEOUT_S)
        except NoRespondersError as error:
            raise Unavailable("No voice worker is there to draw the session's audio.", retry_after_ms=1_000) from error
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The voice service did not draw the session's audio in time.", retry_after_ms=1_000) from error
        if (reply.headers or {}).get(SERVICE_ERROR):
            raise told(reply.data)
        return reply.data

    async def is_live(self, sid: str) -> bool:
        """Tell whether a session has not ended; false for an unknown one."""
        found = (await self.summaries([sid])).get(sid)
        return found is not None and found["state"] != "ended"

    async def summaries(self, sids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return each session's summary from its last events. Sessions whose events are gone are left out."""
        found: dict[str, dict[str, Any]] = {}
        for first in range(0, len(sids), _PER_READ):
            subjects = [bus_subjects.stored_subject(sid, *kind) for sid in sids[first : first + _PER_READ] for kind in _SUMMARY]
            by_session: dict[str, dict[str, events.Recorded]] = {}
            for recorded in await self._log.last(subjects):
                by_session.setdefault(recorded.sid, {})[recorded.type] = recorded
            found |= {sid: _summary(sid, facts) for sid, facts in by_session.items() if not facts.keys().isdisjoint(_BEGINNINGS)}
        return found

    async def _erased(self) -> dict[str, int]:
        found: dict[str, int] = {}
        async for one in self._log.read_all("*", writer="operator", visibility="c", topic="session.erased"):
            if isinstance(one.event, events.operator.SessionErased):
                found[one.sid] = one.event.began
        return found

    async def live(self) -> int:
        """Return the number of sessions that have not ended."""
        return len(await self._store.live_sessions())

    async def ensure_index(self) -> None:
        """Build the index from the log if Valkey does not have it."""
        if await self._store.index_is_whole():
            return
        async with self._building:
            if await self._store.index_is_whole():
                return
            count, after, more = 0, 0, True
            while more:
                requests, more = await self._log.requested_after(after)
                if requests:
                    after = requests[-1].seq
                    started = {one.sid: one.ts for one in requests}
                    ends = [bus_subjects.stored_subject(sid, "voice", "c", end) for sid in started for end in _ENDS]
                    over = {one.sid for one in await self._log.last(ends) if isinstance(one.event, events.voice.SessionEnded)}
                    await self._store.add_to_index(started, {sid: ts for sid, ts in started.items() if sid not in over})
                    count += len(requests)
            await self._store.add_to_index(await self._erased(), {})
            await self._store.index_built()
            _log.info("The index of sessions was built from the log: %d sessions.", count)


def _request(sid: str) -> str:
    return bus_subjects.event_subject(check_session_id(sid), "gateway", visible=False, event_type="session.requested")


def _summary(sid: str, facts: dict[str, events.Recorded]) -> dict[str, Any]:
    erased = facts.get("session.erased")
    if erased is not None and isinstance(erased.event, events.operator.SessionErased):
        began_ms, ended_ms = erased.event.began // 1_000, erased.ts // 1_000
        return {
            "id": sid,
            "mode": erased.event.mode,
            "started_at_ms": began_ms,
            "state": "ended",
            "turns": 0,
            "ended_at_ms": ended_ms,
            "ended_reason": "erased",
        }
    requested = facts["session.requested"]
    summary: dict[str, Any] = {"id": sid, "mode": "local", "started_at_ms": requested.ts // 1_000, "state": "connecting", "turns": 0}
    if isinstance(requested.event, events.gateway.SessionRequested):
        summary["mode"] = requested.event.mode
        summary["account"] = requested.event.account
        if requested.event.agent:
            summary["agent"] = requested.event.agent
        if requested.event.child is not None:
            summary["parent"] = requested.event.child.parent
    if any(one.writer == "voice" for one in facts.values()):
        summary["state"] = "live"
    summary["turns"] = max(events.voice.turns_by(one.event) for one in facts.values())
    ended = facts.get("session.ended")
    if ended is not None:
        summary["state"] = "ended"
        summary["ended_at_ms"] = ended.ts // 1_000
        if isinstance(ended.event, events.voice.SessionEnded):
            summary["ended_reason"] = ended.event.reason
    return summary


def _plain(recorded: events.Recorded) -> dict[str, Any]:
    """Convert an event to JSON types. Inputs in a journal are shown decoded, bytes as base64."""
    return {
        "seq": recorded.seq,
        "id": recorded.id,
        "type": recorded.type,
        "v": recorded.v,
        "writer": recorded.writer,
        "visibility": "c" if recorded.visible else "i",
        "ts": recorded.ts,
        "cause": recorded.cause,
        "data": msgspec.to_builtins(msgspec.msgpack.decode(msgspec.msgpack.encode(recorded.event)), str_keys=True),
    }


def _page(found: Page, after: int, journals: bool) -> bytes:
    shown = [message for message in found.messages if journals or not type_of(message).endswith(_JOURNAL)]
    page: dict[str, Any] = {"events": [_plain(decode(message)) for message in shown], "more": found.more}
    if found.more:
        page["next_after"] = position(found.messages[-1]) if found.messages else after
    return msgspec.json.encode(page)


def told(answer: bytes) -> VoxbridgeError:
    """Return the error that another service answered with."""
    told = msgspec.json.decode(answer, type=_Told)
    return VoxbridgeError(told.code, told.message, field=told.field, retryable=told.retryable, limit=told.limit)


def _erased() -> VoxbridgeError:
    return VoxbridgeError(Code.NOT_FOUND, "This session was erased.", field="session_id")


def no_session() -> VoxbridgeError:
    """Return the error for a session that does not exist or may not be revealed."""
    return VoxbridgeError(Code.NOT_FOUND, "There is no session with this id.", field="session_id")
