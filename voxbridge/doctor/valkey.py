"""Checks of Valkey: the time of its answers, its memory, its persistence, and leases against live sessions.

Owns the requests to Valkey. Changes nothing there except one key that lives for a second. Losing Valkey costs a rebuild, so little here is
fatal.
"""

from __future__ import annotations

from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from voxbridge.doctor.finding import Finding, Level, fail, ok, warn
from voxbridge.doctor.place import Place
from voxbridge.shared.config import Config
from voxbridge.shared.service.health import valkey_condition
from voxbridge.shared.store.store import Store
from voxbridge.shared.wait_for_server import host_and_port

AREA: Final = "valkey"
_LEVELS: Final[dict[str, Level]] = {"ok": "OK", "degraded": "WARN", "down": "FAIL"}


async def look(config: Config, redis: Redis, place: Place, *, now_us: int) -> list[Finding]:
    """Return all findings about Valkey."""
    condition = await valkey_condition(redis)
    if condition.state == "down":  # this process sends all its requests at once as it begins, so the delay may be its own
        condition = await valkey_condition(redis)
    if condition.state != "ok":
        says, _, do = condition.detail.partition(". ")
        return [Finding(area=AREA, name="Valkey", level=_LEVELS[condition.state], says=f"{says}.", do=do)]
    try:
        info: dict[str, Any] = await redis.info()
        used = int(info.get("used_memory", 0)) >> 20
        answers = ok(AREA, "Valkey", f"answers at {host_and_port(config.redis_url)}, {used} MiB")
        return [answers, _keeps(info), *await _sessions(Store(redis), now_us)]
    except RedisError as error:
        return [fail(AREA, "Valkey", f"It does not answer in full: {error}.", f"{place.log('valkey')}.")]


def _keeps(info: dict[str, Any]) -> Finding:
    if not int(info.get("aof_enabled", 0)):
        return warn(AREA, "persistence", "It keeps nothing over a restart.", "Set `appendonly yes`; else notes and leases are read again.")
    if info.get("aof_last_write_status", "ok") != "ok":
        return fail(AREA, "persistence", "Its last write to disk failed.", "Free some space; it recovers by itself.")
    return ok(AREA, "persistence", "an append-only file, and its last write went well")


async def _sessions(store: Store, now_us: int) -> list[Finding]:
    live, orphans = await store.live_sessions(), await store.orphans(now_us)
    held = sum(await store.held(live))
    found: list[Finding] = []
    if not await store.index_is_whole():
        do = "It is built from the log when a gateway starts or is asked for sessions; `GET /api/sessions` does."
        found.append(warn("sessions", "index", "Valkey forgot the list of sessions.", do))
    if orphans:
        says = f"{len(orphans)} of {len(live)} live sessions have no worker: {', '.join(sid[:8] for sid in orphans[:3])}"
        do = "A voice worker takes them over within 5 s. If they stay, see whether voice runs and has room (VOXBRIDGE_MAX_SESSIONS)."
        found.append(warn("sessions", "owners", says, do))
    else:
        found.append(ok("sessions", "owners", f"{len(live)} live, {held} held by a worker, none forsaken"))
    return found
