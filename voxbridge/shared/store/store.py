"""Typed keys in Valkey: leases, the function catalogue, notes, and the index of sessions.

All of it is a cache of facts in the log, so losing Valkey costs a rebuild and no data. Every key begins with `vx:`; this module names the
keys, except those of providers (`voxbridge.shared.secrets.provider_keys`), of recordings (`voxbridge.shared.audio.recordings`) and of the
probe (`voxbridge.shared.service.health`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError, RedisError

from voxbridge.shared.agents.functions import Function as Function
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.store import scripts

LEASE_MS: Final = 3_000
ORPHAN_AGE_S: Final = 30
"""Seconds that a session which no worker has ever held may wait for its first one before it is an orphan."""

NOTES_LIMIT: Final = 1_000
"""Notes kept for one account; the oldest is dropped when one more is remembered."""

GATEWAY_MS: Final = 3_000
"""Milliseconds that a gateway counts as alive after its last report."""
KEPT_S: Final = 30 * 86_400
"""Seconds that a session can be resumed with the data kept here, when the log has already dropped its request."""

ERASED_S: Final = 86_400
"""Seconds during which an erased note is not taken again: longer than any reader of the log may need."""

SESSIONS_LIMIT: Final = 100_000
"""Sessions in the index; the oldest is dropped when one more is opened."""

SWEEP: Final = 512
"""Live sessions checked in one command: half a millisecond of Valkey's time, and none of the asking worker's."""

WORKERS_LIMIT: Final = 1_000
"""Voice workers that are remembered; the oldest is dropped when one more begins."""

CHILDREN_KEPT_S: Final = 86_400
"""Seconds for which an account's child sessions are counted after the last one was opened; none lasts as long."""

_CATALOGUE: Final = "vx:functions"
_NOTED: Final = "vx:notes:accounts"
"""Accounts that have had notes."""
_SESSIONS: Final = "vx:sessions"
_LIVE: Final = "vx:sessions:live"
_WHOLE: Final = "vx:sessions:whole"
_WORKERS: Final = "vx:workers"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A text that an account asked to remember; `ts` in µs of the Unix clock."""

    note_id: str
    text: str
    ts: int


class Resumable(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a session's request that a resume needs: the hash of its token, and its mode."""

    resume_hash: str
    mode: str


class Sweep(NamedTuple):
    """Result of one look at some of the live sessions."""

    seen: int
    """Number of sessions looked at; fewer than asked for at the end of the list."""

    free: dict[str, bool]
    """Sessions without a lease: true if a worker once held it, false if they have waited `ORPHAN_AGE_S` for their first one."""

    owners: list[str]
    """Workers that hold the other leases, as far as they are registered (`Store.worker_listens`)."""


class Store:
    """The keys of Voxbridge over one connection pool."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self._catalogue: tuple[bytes, tuple[Function, ...]] = (b"", ())
        self._acquire = redis.register_script(scripts.ACQUIRE)
        self._regain = redis.register_script(scripts.REGAIN)
        self._renew = redis.register_script(scripts.RENEW)
        self._release = redis.register_script(scripts.RELEASE)
        self._hand_over = redis.register_script(scripts.HAND_OVER)
        self._handed = redis.register_script(scripts.HANDED)
        self._add_note = redis.register_script(scripts.ADD_NOTE)
        self._sweep = redis.register_script(scripts.SWEEP)
        self._held_by = redis.register_script(scripts.HELD_BY)

    async def acquire_lease(self, sid: str, worker: str, *, floor: int = 0) -> int | None:
        """Take the lease of a session; return its new term, or None while a worker holds it.

        `floor` is the last term in the log, so that the term grows even if Valkey forgot it.
        """
        term = int(await self._run(self._acquire(keys=[_lease(sid), _term(sid)], args=[worker, LEASE_MS, floor])))
        return term or None

    async def regain_lease(self, sid: str, worker: str, *, floor: int = 0) -> int | None:
        """Take a lease again that expired or was forgotten; return its term, or None if another worker took it meanwhile. Also for one that
        was regained already."""
        return int(await self._run(self._regain(keys=[_lease(sid), _term(sid)], args=[worker, LEASE_MS, floor]))) or None

    async def renew_leases(self, sids: Sequence[str], worker: str) -> list[str]:
        """Renew the leases of all `sids` in one pipeline; return those that are no longer ours."""
        if not sids:
            return []
        async with self.redis.pipeline(transaction=False) as pipeline:
            for sid in sids:
                await self._renew(keys=[_lease(sid)], args=[worker, LEASE_MS], client=pipeline)
            return [sid for sid, held in zip(sids, await self._run(pipeline.execute()), strict=True) if not held]

    async def release_lease(self, sid: str, worker: str) -> None:
        """Give up the lease, if it is ours."""
        await self._run(self._release(keys=[_lease(sid)], args=[worker]))

    async def hand_over_lease(self, sid: str, worker: str, to: str) -> bool:
        """Give a lease of `worker` to `to`, under a new term; return whether `worker` held it. The lease expires like any other, so that
        any worker may take it if `to` does not take it up."""
        return bool(await self._run(self._hand_over(keys=[_lease(sid), _term(sid)], args=[worker, to, LEASE_MS])))

    async def seize_lease(self, sid: str, dead: str, worker: str) -> int | None:
        """Take the lease of a session from a worker that is known to be dead, if that worker still holds it; return the new term, or
        None."""
        return int(await self._run(self._hand_over(keys=[_lease(sid), _term(sid)], args=[dead, worker, LEASE_MS]))) or None

    async def handed_lease(self, sid: str, worker: str) -> int | None:
        """Take up and renew a lease that another worker handed over; return its term, or None when it has expired."""
        return int(await self._run(self._handed(keys=[_lease(sid), _term(sid)], args=[worker, LEASE_MS]))) or None

    async def held(self, sids: Sequence[str]) -> list[bool]:
        """Return for each session whether a worker holds its lease now; one command."""
        if not sids:
            return []
        return [value is not None for value in await self._run(self.redis.mget([_lease(sid) for sid in sids]))]

    async def renewed(self, sids: Sequence[str], *, within_ms: int) -> list[bool]:
        """Return for each session whether a worker renewed its lease in the last `within_ms`; one round trip."""
        if not sids:
            return []
        async with self.redis.pipeline(transaction=False) as pipeline:
            for sid in sids:
                pipeline.pttl(_lease(sid))
            return [left > LEASE_MS - within_ms for left in await self._run(pipeline.execute())]

    async def session_opened(self, sid: str, ts: int) -> None:
        """Put a session into the index, as live. `ts` in µs."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            pipeline.zadd(_SESSIONS, {sid: ts})
            pipeline.zadd(_LIVE, {sid: ts})
            pipeline.zremrangebyrank(_SESSIONS, 0, -(SESSIONS_LIMIT + 1))
            pipeline.zremrangebyrank(_LIVE, 0, -(SESSIONS_LIMIT + 1))
            await self._run(pipeline.execute())

    async def session_closed(self, sid: str) -> None:
        """Remove a session from the live ones; it cannot be resumed any more."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            pipeline.zrem(_LIVE, sid)
            pipeline.delete(_resumable(sid))
            await self._run(pipeline.execute())

    async def keep_resumable(self, sid: str, kept: Resumable) -> None:
        """Keep data of the session's request, for sessions that outlive the log's retention."""
        await self._run(self.redis.set(_resumable(sid), msgspec.json.encode(kept), ex=KEPT_S))

    async def resumable(self, sid: str) -> Resumable | None:
        """Return the data kept of a session's request."""
        found = await self._run(self.redis.get(_resumable(sid)))
        return msgspec.json.decode(found, type=Resumable) if found else None

    async def gateway_lives(self, pid: str) -> None:
        """Report that a gateway process is alive; it counts as alive for `GATEWAY_MS`."""
        # A full Valkey still renews existing keys, and takes no new ones.
        if not await self._run(self.redis.pexpire(_gateway(pid), GATEWAY_MS)):
            await self._run(self.redis.set(_gateway(pid), b"1", px=GATEWAY_MS))

    async def gateway_gone(self, pid: str) -> None:
        """Report that a gateway process has ended."""
        await self._run(self.redis.delete(_gateway(pid)))

    async def gateway_alive(self, pid: str) -> bool:
        """Return whether a gateway process is alive."""
        return bool(await self._run(self.redis.exists(_gateway(pid))))

    async def gateways_alive(self, pids: Sequence[str]) -> list[bool]:
        """Return for each gateway process whether it is alive; one command."""
        if not pids:
            return []
        return [value is not None for value in await self._run(self.redis.mget([_gateway(pid) for pid in pids]))]

    async def index_is_whole(self) -> bool:
        """Return whether the index was built from the log since Valkey last lost it."""
        return bool(await self._run(self.redis.exists(_WHOLE)))

    async def add_to_index(self, started: Mapping[str, int], live: Mapping[str, int]) -> None:
        """Put sessions read from the log into the index: `sid: started in µs`, and of those the ones that have not ended."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            if started:
                pipeline.zadd(_SESSIONS, dict(started))
            if live:
                pipeline.zadd(_LIVE, dict(live))
            await self._run(pipeline.execute())

    async def index_built(self) -> None:
        """Record that the index is complete."""
        await self._run(self.redis.set(_WHOLE, b"1"))

    async def live_sessions(self) -> list[str]:
        """Return the sessions that have not ended."""
        return [_text(sid) for sid in await self._run(self.redis.zrange(_LIVE, 0, -1))]

    async def sweep(self, now: int, *, first: int = 0) -> Sweep:
        """Look at `SWEEP` of the live sessions, oldest first, starting at index `first`. `now` in µs."""
        oldest = now - ORPHAN_AGE_S * 1_000_000
        seen, free, owners = await self._run(self._sweep(keys=[_LIVE, _WORKERS], args=[first, SWEEP, oldest]))
        return Sweep(
            seen, {_text(sid): bool(ever) for sid, ever in zip(free[::2], free[1::2], strict=True)}, [_text(one) for one in owners]
        )

    async def orphans(self, now: int) -> list[str]:
        """Return live sessions whose lease a worker once held and none holds now, or that have waited `ORPHAN_AGE_S` for one. `now` in
        µs."""
        found: list[str] = []
        first, seen = 0, SWEEP
        while seen == SWEEP:
            part = await self.sweep(now, first=first)
            found += part.free
            seen, first = part.seen, first + SWEEP
        return found

    async def held_by(self, worker: str) -> list[str]:
        """Return the live sessions whose lease a worker holds, oldest first."""
        found: list[str] = []
        first, seen = 0, SWEEP
        while seen == SWEEP:
            seen, some = await self._run(self._held_by(keys=[_LIVE], args=[first, SWEEP, worker]))
            found += [_text(sid) for sid in some]
            first += SWEEP
        return found

    async def worker_listens(self, worker: str, ts: int) -> None:
        """Register a voice worker that other workers can probe. `ts` in µs."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            pipeline.zadd(_WORKERS, {worker: ts})
            pipeline.zremrangebyrank(_WORKERS, 0, -(WORKERS_LIMIT + 1))
            await self._run(pipeline.execute())

    async def recent_sessions(self, *, limit: int, before: int | None = None) -> list[tuple[str, int]]:
        """Return `(sid, started in µs)`, newest first, of sessions that started before `before`."""
        top = f"({before}" if before is not None else "+inf"
        found = await self._run(self.redis.zrange(_SESSIONS, top, "-inf", desc=True, byscore=True, offset=0, num=limit, withscores=True))
        return [(_text(sid), int(score)) for sid, score in found]

    async def keep_handle(self, sid: str, kept: str, ttl_s: int) -> None:
        """Keep the handle that resumes a session of a realtime model, for `ttl_s`."""
        await self._run(self.redis.set(_handle(sid), kept, ex=ttl_s))

    async def handle(self, sid: str) -> str | None:
        """Return what `keep_handle` kept; None if it expired or Valkey lost it."""
        found = await self._run(self.redis.get(_handle(sid)))
        return None if found is None else _text(found)

    async def forget_handle(self, sid: str) -> None:
        """Delete the handle, because the session is over."""
        await self._run(self.redis.delete(_handle(sid)))

    async def publish_functions(self, functions: Sequence[Function]) -> None:
        """Replace the catalogue."""
        await self._run(self.redis.set(_CATALOGUE, msgspec.json.encode(list(functions))))

    async def functions(self) -> tuple[Function, ...]:
        """Return the catalogue; empty before the tool executor first started. It is the same object until the catalogue changes, so that
        sessions share it."""
        found = await self._run(self.redis.get(_CATALOGUE)) or b""
        if found != self._catalogue[0]:
            self._catalogue = (found, msgspec.json.decode(found, type=tuple[Function, ...]) if found else ())
        return self._catalogue[1]

    def latest_functions(self) -> tuple[Function, ...]:
        """Return the catalogue as it was when it was last asked for, without I/O."""
        return self._catalogue[1]

    async def add_note(self, account: str, note: Note) -> bool:
        """Keep a note; return whether it was taken. Adding the same `note_id` again changes nothing, and an erased note is not taken."""
        key = _notes(account)
        keys = [key, f"{key}:text", f"{key}:erased"]
        await self._run(self.redis.sadd(_NOTED, account))
        return bool(await self._run(self._add_note(keys=keys, args=[note.note_id, note.text, note.ts, NOTES_LIMIT])))

    async def forget_notes(self, notes: Sequence[tuple[str, str]]) -> int:
        """Delete notes, given as `(account, note_id)`; return how many of them existed. For `ERASED_S` they are not taken again, even by a
        process that read them from the log before."""
        if not notes:
            return 0
        async with self.redis.pipeline(transaction=False) as pipeline:
            for account, note_id in notes:
                key = _notes(account)
                pipeline.sadd(f"{key}:erased", note_id)
                pipeline.expire(f"{key}:erased", ERASED_S)
                pipeline.hdel(f"{key}:text", note_id)
                pipeline.zrem(key, note_id)
            answers = await self._run(pipeline.execute())
        for account in {account for account, _ in notes}:
            if not await self._run(self.redis.exists(_notes(account))):
                await self._run(self.redis.srem(_NOTED, account))
        return sum(answers[2::4])

    async def erase(self, sid: str) -> None:
        """Delete all keys of a session except its place in the index. `forget_notes` deletes its notes, and
        `voxbridge.shared.audio.recordings` owns the key of its recording."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            for key in (_lease(sid), _term(sid), _resumable(sid), _handle(sid)):
                pipeline.delete(key)  # one by one: a user that may delete one of them need not have rights to the others
            pipeline.zrem(_LIVE, sid)
            await self._run(pipeline.execute())

    async def notes_from(self, sids: Collection[str]) -> list[tuple[str, str]]:
        """Return the notes that came from these sessions, as `(account, note_id)`, by their ids; reads the ids of all notes. Only the
        administrator and the owner of Valkey may: it reads the names of all keys."""
        accounts: set[str] = set()
        cursor = 0
        while True:
            cursor, keys = await self._run(self.redis.scan(cursor, match="vx:notes:*", count=1_000))
            accounts |= {key.removeprefix("vx:notes:{").removesuffix("}") for key in map(_text, keys) if key.endswith("}")}
            if not cursor:
                return await self._notes_of(accounts, sids)

    async def noted_from(self, sids: Collection[str]) -> list[tuple[str, str]]:
        """Return the notes that came from these sessions, as `notes_from`, of the accounts that were given a note by this release."""
        return await self._notes_of({_text(account) for account in await self._run(self.redis.smembers(_NOTED))}, sids)

    async def _notes_of(self, accounts: Collection[str], sids: Collection[str]) -> list[tuple[str, str]]:
        found = []
        for account in accounts:
            ids = [_text(note_id) for note_id in await self._run(self.redis.zrange(_notes(account), 0, -1))]
            found += [(account, note_id) for note_id in ids if note_id.partition(".")[0] in sids]
        return sorted(set(found))

    async def count_call(self, token_id: str, *, keep_s: int) -> int:
        """Count a call that an access token starts; return the total. The count is forgotten after `keep_s`."""
        key = f"vx:token:{token_id}"
        async with self.redis.pipeline(transaction=True) as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, keep_s)
            return int((await self._run(pipeline.execute()))[0])

    async def count_child(self, account: str, sid: str, ts: int) -> list[tuple[str, int]]:
        """Count a child session among those of its account. Return those counted before it, with the times of that (µs), oldest first."""
        key = f"vx:gateway:children:{account}"
        async with self.redis.pipeline(transaction=True) as pipeline:
            pipeline.zadd(key, {sid: ts}, nx=True)
            pipeline.expire(key, CHILDREN_KEPT_S)
            pipeline.zrange(key, 0, -1, withscores=True)
            found = [(_text(one), int(at)) for one, at in (await self._run(pipeline.execute()))[-1]]
        return found[: [one for one, _ in found].index(sid)]

    async def forget_child(self, account: str, sid: str) -> None:
        """Count a child session no longer."""
        await self._run(self.redis.zrem(f"vx:gateway:children:{account}", sid))

    async def notes(self, account: str) -> list[Note]:
        """Return the notes of an account, newest first."""
        key = _notes(account)
        order = await self._run(self.redis.zrange(key, 0, -1, desc=True, withscores=True))
        texts = await self._run(self.redis.hgetall(f"{key}:text"))
        return [Note(note_id=_text(note_id), text=_text(texts[note_id]), ts=int(ts)) for note_id, ts in order if note_id in texts]

    async def _run(self, command: Any) -> Any:
        try:
            return await command
        except OutOfMemoryError as error:
            raise Unavailable("Valkey is full and takes no key.", retry_after_ms=1_000) from error
        except RedisError as error:
            raise Unavailable(f"Valkey does not answer: {error}.", retry_after_ms=1_000) from error


def _text(value: bytes | str) -> str:
    # Depends on the client's `decode_responses`.
    return value.decode() if isinstance(value, bytes) else value


def _lease(sid: str) -> str:
    return f"vx:lease:{{{sid}}}"


def _term(sid: str) -> str:
    return f"vx:term:{{{sid}}}"


def _gateway(pid: str) -> str:
    return f"vx:gateway:{pid}"


def _handle(sid: str) -> str:
    return f"vx:handle:{{{sid}}}"


def _resumable(sid: str) -> str:
    return f"vx:resumable:{{{sid}}}"


def _notes(account: str) -> str:
    return f"vx:notes:{{{account}}}"
