"""Making every copy of an ended session unreadable, for good: `voxbridge erase` (docs/privacy.md).

Owns the order. The keys in Valkey go first, which makes the recording unreadable at once. Then the events and the blocks of the recording
are each overwritten in the files of the log; the events that identify the session go after its others, and a tombstone takes their place. A
process that makes the notes again from the log meanwhile cannot bring them back: Valkey refuses them, and they are deleted once more when
the log holds none. Interrupted halfway, it leaves a session that is still listed; a second run continues. Does not own exported files, nor
copies of the data folder.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from nats.errors import Error as NatsError
from nats.js.errors import APIError, NotFoundError
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from voxbridge.sessions import screens
from voxbridge.sessions.eventlog import opened
from voxbridge.shared import events
from voxbridge.shared.audio import recordings
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.events import gateway, operator, terminals, tools, voice
from voxbridge.shared.log.once import publish_once
from voxbridge.shared.log.reader import Log, decode, is_imported, position
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.store.store import Store

UNTOUCHED_S: Final = 3_600
"""Seconds without events after which a session that never ended may be erased; a function that began longer ago no longer prevents it."""

EVENTS_LIMIT: Final = 1_000_000
ROUNDS: Final = 3
"""Passes that look for what was written meanwhile."""

REWRITE_S: Final = 60.0
_API_S: Final = 10.0
_POLL_S: Final = 0.02
_NO_MESSAGE: Final = (10037, 10043, 10057)
"""The server's codes for a message that is not there: it expired meanwhile."""

_FINISHED: Final = (
    tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted
    | tools.TaskCompleted | tools.TaskFailed | tools.TaskCancelled | tools.TaskInterrupted
)  # fmt: skip
T = TypeVar("T")
Progress = Callable[[int, int], None]


class Erased(NamedTuple):
    """Counts of what was made unreadable. `left` names what this command could not reach, in words."""

    sid: str
    events: int
    blocks: int
    notes: int
    left: tuple[str, ...]


@dataclass(slots=True)
class _Held:
    """Content of a session in the log."""

    positions: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    """Positions of the events that identify the session; they go last."""

    tombstone: events.Recorded | None = None
    began: int = 0
    mode: str = ""
    ended: bool = False
    newest: int = 0
    oldest: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    """Calls and tasks that began and have not ended, with the time they began."""


@asynccontextmanager
async def stores(config: Config, *, user: str = ADMIN) -> AsyncIterator[tuple[Log, Redis]]:
    """Open the event log and Valkey: those of the running product, of the servers that are named, or both at rest. `user` as for `opened`.
    Raises `UNAVAILABLE`."""
    async with opened(config, user=user) as found:
        url, secret, server = found.redis_url, found.redis_password_file, None
        if not url and found.live:
            raise Unavailable("Where Valkey is is not known: set VOXBRIDGE_REDIS_URL beside VOXBRIDGE_NATS_URL.")
        if not url:
            server = ValkeyServer(config.data_dir / "valkey", min_free_bytes=0).start()
            url = server.url
        try:
            redis = await connect_redis(url, timeout_s=_API_S, password_file=secret)
            try:
                yield found.log, redis
            finally:
                await redis.aclose()
        finally:
            if server is not None:
                server.stop()


async def erase(log: Log, redis: Redis, sid: str, *, by: str, now: int, progress: Progress = lambda _done, _of: None) -> Erased:
    """Erase a session, or an account's own log, with the sessions that its functions asked for; `now` in µs. If it was erased before, erase
    what was written since.

    Raises `NOT_FOUND`, `CONFLICT` for a session that is live, has a function running or is being written to all the time, and `UNAVAILABLE`
    when a store does not answer.
    """
    store = Store(redis)
    await _check(await _look(log, sid, empty=bool(await _screen(log, sid))), store, sid, now)
    children = await _children(log, sid)
    for child in children:
        await _check(await _look(log, child), store, child, now)
    # They go first: when this is interrupted, their parent still names them.
    done = [await _erase(log, redis, one, by=by, now=now, progress=progress) for one in (*children, sid)]
    count, blocks, notes = (sum(counts) for counts in zip(*((one.events, one.blocks, one.notes) for one in done), strict=True))
    return Erased(sid, count, blocks, notes, tuple(dict.fromkeys(left for one in done for left in one.left)))


async def _children(log: Log, sid: str) -> list[str]:
    """Return the sessions that functions of this one asked for, as far as the log has anything of them."""
    opened = log.read_all(sid, writer="tools", visibility="i", topic="child.opened")
    named = dict.fromkeys([one.event.child async for one in opened if isinstance(one.event, tools.ChildOpened)])
    return [child for child in named if (await log.page(child, limit=1)).messages]


async def _erase(log: Log, redis: Redis, sid: str, *, by: str, now: int, progress: Progress) -> Erased:
    stream = subjects.stream_of(sid)
    screen = await _screen(log, sid)
    if screen:
        await screens.forget(log, subjects.account_of(sid))
    held = await _look(log, sid, empty=bool(screen))
    store = Store(redis)
    await _check(held, store, sid, now)
    await _redis(redis.delete(recordings.name(sid)))
    known = set(held.notes)
    await store.erase(sid)
    notes = await store.forget_notes(sorted(known))
    left = await _rewrite(redis)
    for audio, subject in subjects.kept_audio(sid) if stream == subjects.EVENT_STREAM else ():
        with suppress(NotFoundError):
            await _answered(log.js.purge_stream(audio, subject=subject))
    blocks = await _recorded(log, sid)
    count = len(screen)
    for _ in range(ROUNDS):
        total = count + len(held.positions) + len(held.last)
        await _overwrite(log, stream, held.positions, partial(_advance, progress, count, total))
        if held.tombstone is None:
            began = held.oldest if subjects.account_of(sid) or subjects.life_of(sid) else held.began
            await _say(log, sid, operator.SessionErased(by=by, began=began, mode=held.mode, events=total), now)
        await _overwrite(log, stream, held.last)
        count = total
        progress(count, count)
        await _overwrite(log, subjects.RECORD_STREAM, blocks)
        await _overwrite(log, subjects.ACCOUNT_STREAM, await _kept(log, sid))
        await _overwrite(log, subjects.AWARENESS_STREAM, await _screen(log, sid))
        held, more = await _look(log, sid, empty=bool(screen)), await _recorded(log, sid)
        known.update(held.notes)
        if not held.positions and not held.last and not more and not await _kept(log, sid) and not await _screen(log, sid):
            break
        blocks += more
    else:
        raise Conflict("Something goes on writing into the session: not all of it is erased. Ask again.")
    again = await _forget_notes(store, sid, known)
    return Erased(sid, count, len(set(blocks)), notes + again, left if not again else await _rewrite(redis))


async def _forget_notes(store: Store, sid: str, known: set[tuple[str, str]]) -> int:
    """Delete the notes once more, now that no process can read them from the log; return how many had come back. Raises `UNAVAILABLE`."""
    count = 0
    for _ in range(ROUNDS):
        count += await store.forget_notes(sorted({*known, *await store.notes_from([sid])}))
        if not await store.notes_from([sid]):
            return count
    raise Unavailable("A note of the session comes back to Valkey. Ask again.")


async def _screen(log: Log, sid: str) -> list[int]:
    """Return where the log of an account's screen keeps anything; nothing for a session."""
    account = subjects.account_of(sid)
    return await screens.left(log, account) if account else []


async def _look(log: Log, sid: str, *, empty: bool = False) -> _Held:
    held = _Held()
    after, more = 0, True
    while more:
        page = await log.page(sid, after=after)
        for message in page.messages:
            after = position(message)
            _add(held, decode(message), ours=not is_imported(message))
        if len(held.positions) > EVENTS_LIMIT:
            raise VoxbridgeError(Code.TOO_LARGE, f"The session has more than {EVENTS_LIMIT:,} events.", limit=EVENTS_LIMIT)
        more = page.more and bool(page.messages)
    if not after and not empty:
        raise VoxbridgeError(Code.NOT_FOUND, "There is no session with this id.", field="session_id")
    return held


def _add(held: _Held, recorded: events.Recorded, *, ours: bool) -> None:
    event = recorded.event
    held.newest = max(held.newest, recorded.ts)
    held.oldest = held.oldest or recorded.ts
    match event:
        case operator.SessionErased():
            held.tombstone = recorded
            return
        case gateway.SessionRequested(mode=mode):
            held.began, held.mode = recorded.ts, mode
            held.last.append(recorded.seq)
            return
        case voice.SessionEnded():
            held.ended = True
            held.last.append(recorded.seq)
            return
        case terminals.TerminalClosed():
            held.ended = True
        case tools.NoteRemembered(account=account, note_id=note_id) if ours:  # the note of an imported copy belongs to the original session
            held.notes.append((account, note_id))
        case tools.ToolStarted(call_id=id) | tools.TaskStarted(task_id=id):
            held.running[id] = recorded.ts
        case tools.RunStepCompleted(run_id=run, step=step, attempt=attempt) | tools.RunStepFailed(run_id=run, step=step, attempt=attempt):
            held.running.pop(f"{run}.{step}.{attempt}", None)  # its call's end is told to the run alone
        case _ if isinstance(event, _FINISHED):
            ended = getattr(event, "call_id", "") or getattr(event, "task_id", "")
            held.running.pop(ended, None)
            held.running.pop(ended.removeprefix("task-"), None)  # an approved call began after it was answered, and ends as its task
    held.positions.append(recorded.seq)


async def _check(held: _Held, store: Store, sid: str, now: int) -> None:
    if (await store.held([sid]))[0]:
        raise Conflict("The session is live: a worker holds it. End it first; one that just ended is free a moment later.")
    since = now - UNTOUCHED_S * 1_000_000
    if subjects.account_of(sid):
        pass  # an account has no end
    elif subjects.life_of(sid) and not held.ended and held.tombstone is None:
        raise Conflict("The terminal is open: close it first, which ends what runs in it.")
    elif not (held.ended or held.tombstone is not None or held.newest < since):
        raise Conflict(f"The session has not ended: end it first, or wait until nothing has come of it for {UNTOUCHED_S // 60} minutes.")
    if any(began >= since for began in held.running.values()):
        what = "account" if subjects.account_of(sid) else "session"
        raise Conflict(f"A function of the {what} still runs, and would write its result: try again when it is done.")


async def _kept(log: Log, sid: str) -> list[int]:
    """Return where the logs of accounts keep what was remembered in a session."""
    try:
        await _answered(log.js.stream_info(subjects.ACCOUNT_STREAM))
    except NotFoundError:  # a log of an earlier release
        return []
    notes = log.read_all(subjects.ACCOUNTS, writer=subjects.FACTS, types=("note.remembered", "note.forgotten"))
    told = tools.NoteRemembered | tools.NoteForgotten
    return [one.seq async for one in notes if isinstance(one.event, told) and one.event.note_id.startswith(f"{sid}.")]


async def _recorded(log: Log, sid: str) -> list[int]:
    found: list[int] = []
    after, more = 0, True
    while more:
        page = await log.frames(subjects.RECORD_STREAM, f"{subjects.recorded(sid).rpartition('.')[0]}.*", after=after, limit=64)
        found += [position(message) for message in page.messages]
        after, more = (found[-1] if found else 0), page.more and bool(page.messages)
    return found


async def _overwrite(log: Log, stream: str, positions: Sequence[int], progress: Callable[[int], None] = lambda _done: None) -> None:
    """Delete messages so that random bytes replace each of them in the stream's file: a purge would leave the bytes there."""
    for done, seq in enumerate(positions, 1):  # one at a time: the server does no more, and appends of live sessions come in between
        await _delete(log, stream, seq)
        progress(done)


async def _delete(log: Log, stream: str, seq: int) -> None:
    try:
        await _answered(log.js.delete_msg(stream, seq))
    except APIError as error:
        if error.err_code not in _NO_MESSAGE:
            raise Unavailable(f"The event log did not delete a message: {error.description}.") from error


def _advance(progress: Progress, before: int, of: int, done: int) -> None:
    progress(before + done, of)


async def _say(log: Log, sid: str, event: operator.SessionErased, now: int) -> None:
    event_id = f"{sid}.operator.1"
    payload = events.encode(event, event_id=event_id, sid=sid, ts=now, cause=None)
    subject = subjects.event_subject(sid, "operator", visible=True, event_type="session.erased")
    await _answered(publish_once(log, sid, subject, payload, event_id, timeout_s=_API_S))


async def _rewrite(redis: Redis) -> tuple[str, ...]:
    """Have Valkey rewrite its file, so that it does not hold what was deleted; return what prevented that, in words."""
    end = time.monotonic() + REWRITE_S
    started = False
    try:
        while time.monotonic() < end:
            about = await _redis(redis.info("persistence"))
            if not about["aof_enabled"]:
                return () if not started else ("Valkey's append-only file, which was turned off meanwhile",)
            busy = about["aof_rewrite_in_progress"] or about["aof_rewrite_scheduled"]
            if not busy and started:
                return () if about["aof_last_bgrewrite_status"] == "ok" else ("Valkey's append-only file: its rewrite failed",)
            if not busy:
                with suppress(ResponseError):  # another rewrite has just begun
                    await redis.bgrewriteaof()
                    started = True
            await asyncio.sleep(_POLL_S)
    except RedisError as error:
        return (f"Valkey's append-only file: it could not be written anew ({type(error).__name__})",)
    return (f"Valkey's append-only file: it was not written anew within {REWRITE_S:.0f} s",)


async def _redis(command: Awaitable[T]) -> T:
    try:
        return await command
    except RedisError as error:
        raise Unavailable(f"Valkey does not answer: {type(error).__name__}.") from error


async def _answered(request: Awaitable[T]) -> T:
    try:
        return await request
    except (TimeoutError, NatsError) as error:
        raise (error if isinstance(error, APIError) else Unavailable(f"The event log does not answer: {error or 'in time'}.")) from error
