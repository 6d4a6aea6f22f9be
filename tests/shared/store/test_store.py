"""The keys in Valkey, on every backend: leases, the index, the catalogue, notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from redis.asyncio import Redis

from tests.shared.backends import Server
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Unavailable
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.store import store as store_module
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.store.store import GATEWAY_MS, KEPT_S, LEASE_MS, NOTES_LIMIT, Function, Note, Resumable, Store


@pytest.fixture(params=[True, False], ids=["decoding", "bytes"])
async def store(store_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    redis = Redis.from_url(store_url, decode_responses=bool(request.param))
    await redis.flushall()
    yield Store(redis)
    await redis.aclose()


async def lapse(store: Store, sid: str) -> None:
    """Make the lease of a session expire now."""
    assert await store.redis.pexpire(f"vx:lease:{{{sid}}}", 0)


async def test_a_lease_is_held_by_one_worker_and_its_term_grows_with_each_holder(store: Store) -> None:
    sid = new_session_id()
    assert await store.acquire_lease(sid, "a") == 1
    assert await store.acquire_lease(sid, "b") is None
    assert await store.acquire_lease(sid, "a") is None
    await lapse(store, sid)
    assert await store.acquire_lease(sid, "b") == 2
    await store.release_lease(sid, "a")
    assert await store.acquire_lease(sid, "a") is None
    await store.release_lease(sid, "b")
    assert await store.acquire_lease(sid, "a") == 3


async def test_a_lease_that_is_handed_over_is_one_workers_alone_until_it_runs_out(store: Store) -> None:
    sid = new_session_id()
    assert await store.acquire_lease(sid, "a") == 1
    assert not await store.hand_over_lease(sid, "b", "c"), "it is not b's"
    assert await store.hand_over_lease(sid, "a", "b")
    assert await store.acquire_lease(sid, "c") is None
    assert await store.handed_lease(sid, "c") is None
    assert await store.renew_leases([sid], "a") == [sid]
    assert 0 < await store.redis.pttl(f"vx:lease:{{{sid}}}") <= LEASE_MS
    assert await store.handed_lease(sid, "b") == 2
    await lapse(store, sid)
    assert await store.handed_lease(sid, "b") is None
    assert not await store.hand_over_lease(sid, "b", "c")
    assert await store.acquire_lease(sid, "c") == 3


async def test_a_term_is_above_the_last_one_in_the_log_even_if_the_store_forgot_it(store: Store) -> None:
    sid = new_session_id()
    assert await store.acquire_lease(sid, "a", floor=41) == 42
    await store.release_lease(sid, "a")
    assert await store.acquire_lease(sid, "a", floor=7) == 43
    await store.redis.flushall()
    assert await store.acquire_lease(sid, "b", floor=43) == 44


async def test_a_lease_lasts_as_long_as_it_says_and_a_renewal_makes_it_last_again(store: Store) -> None:
    sid = new_session_id()
    await store.acquire_lease(sid, "a")
    key = f"vx:lease:{{{sid}}}"
    assert 0 < await store.redis.pttl(key) <= LEASE_MS
    await store.redis.pexpire(key, 500)
    assert await store.renew_leases([sid], "a") == []
    assert 500 < await store.redis.pttl(key) <= LEASE_MS


async def test_of_two_workers_that_ask_at_once_one_gets_the_lease(store: Store) -> None:
    sid = new_session_id()
    terms = await asyncio.gather(*(store.acquire_lease(sid, f"w{n}") for n in range(20)))
    assert sorted(term for term in terms if term is not None) == [1]


async def test_a_renewal_names_the_leases_that_were_lost(store: Store) -> None:
    sids = [new_session_id() for _ in range(50)]
    for sid in sids:
        await store.acquire_lease(sid, "a")
    for sid in sids[10:13]:
        await lapse(store, sid)
    await store.acquire_lease(sids[11], "b")
    assert await store.renew_leases(sids, "a") == sids[10:13]
    assert await store.renew_leases([], "a") == []
    # The scripts are loaded again after the server has lost them.
    await store.redis.script_flush()
    assert await store.renew_leases(sids, "a") == sids[10:13]
    await store.redis.script_flush()
    assert await store.acquire_lease(sids[10], "a") == 2


async def test_the_index_pages_from_the_newest_and_knows_the_live_ones(store: Store) -> None:
    sids = [new_session_id() for _ in range(25)]
    for number, sid in enumerate(sids):
        await store.session_opened(sid, 1_700_000_000_000_000 + number)
    pages: list[tuple[str, int]] = []
    before: int | None = None
    while page := await store.recent_sessions(limit=10, before=before):
        assert len(page) <= 10
        pages += page
        before = page[-1][1]
    assert pages == [(sid, 1_700_000_000_000_000 + number) for number, sid in reversed(list(enumerate(sids)))]
    for sid in sids[:20]:
        await store.session_closed(sid)
    assert sorted(await store.live_sessions()) == sorted(sids[20:])
    assert len(await store.recent_sessions(limit=100)) == 25


async def test_the_index_keeps_the_newest_sessions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "SESSIONS_LIMIT", 5)
    sids = [new_session_id() for _ in range(7)]
    for number, sid in enumerate(sids):
        await store.session_opened(sid, number)
    assert [sid for sid, _ in await store.recent_sessions(limit=100)] == sids[:1:-1]
    assert sorted(await store.live_sessions()) == sorted(sids[2:])


async def test_a_live_session_without_a_lease_is_an_orphan(store: Store) -> None:
    held, orphan, ended = (new_session_id() for _ in range(3))
    for sid in (held, orphan, ended):
        await store.session_opened(sid, 1_000)
    await store.acquire_lease(held, "a")
    await store.session_closed(ended)
    assert await store.orphans(60_000_000_000) == [orphan]
    assert await store.orphans(store_module.ORPHAN_AGE_S * 1_000_000 + 1_000) == [orphan]
    assert await store.orphans(store_module.ORPHAN_AGE_S * 1_000_000 + 999) == []
    await lapse(store, held)
    assert await store.orphans(2_000) == [held], "whoever was once held has lost its worker, however young it is"
    assert sorted(await store.orphans(60_000_000_000)) == sorted([held, orphan])
    assert (await store.sweep(60_000_000_000)).free == {held: True, orphan: False}


async def test_live_sessions_are_looked_at_in_parts_and_only_what_is_free_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "SWEEP", 4)
    sids = [new_session_id() for _ in range(10)]
    for number, sid in enumerate(sids):
        await store.session_opened(sid, number)
        await store.acquire_lease(sid, "voice-a" if number % 2 else "voice-b")
    await store.worker_listens("voice-a", 1)
    await lapse(store, sids[5])
    parts = [await store.sweep(1_000, first=first) for first in (0, 4, 8)]
    assert [part.seen for part in parts] == [4, 4, 2]
    assert [part.free for part in parts] == [{}, {sids[5]: True}, {}]
    assert {owner for part in parts for owner in part.owners} == {"voice-a"}, "the other one cannot be asked whether it is there"
    assert await store.orphans(1_000) == [sids[5]]
    assert await store.held_by("voice-b") == sids[::2]


async def test_a_lease_is_regained_by_who_had_it_and_by_nobody_else(store: Store) -> None:
    sid = new_session_id()
    assert await store.acquire_lease(sid, "a") == 1
    await lapse(store, sid)
    assert await store.regain_lease(sid, "a", floor=1) == 2
    assert await store.regain_lease(sid, "a", floor=2) == 2, "asked twice it is its own all the same"
    assert await store.regain_lease(sid, "b") is None


async def test_the_newest_workers_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "WORKERS_LIMIT", 3)
    sid = new_session_id()
    await store.session_opened(sid, 1)
    for number in range(5):
        await store.worker_listens(f"voice-{number}", number)
    assert await store.redis.zcard("vx:workers") == 3
    await store.acquire_lease(sid, "voice-4")
    assert (await store.sweep(2)).owners == ["voice-4"]


async def test_a_lease_that_was_not_renewed_in_time_is_told_from_one_that_was(store: Store) -> None:
    fresh, late, gone = (new_session_id() for _ in range(3))
    for sid in (fresh, late, gone):
        await store.acquire_lease(sid, "a")
    left_ms = store_module.LEASE_MS - 1_000
    await store.redis.pexpire(f"vx:lease:{{{late}}}", left_ms)
    await lapse(store, gone)
    assert await store.renewed([fresh, late, gone], within_ms=1_000) == [True, False, False]
    assert await store.renewed([late], within_ms=2_900) == [True]
    assert await store.renewed([], within_ms=1) == []


async def test_the_catalogue_is_replaced_as_a_whole(store: Store) -> None:
    assert await store.functions() == ()
    first = Function(name="now", description="The time.", parameters={"type": "object"})
    second = Function(name="timer", description="Grüße.", parameters={"type": "object", "properties": {}}, kind="async", timeout_s=5)
    await store.publish_functions([first, second])
    assert await store.functions() == store.latest_functions() == (first, second)
    assert await store.functions() is store.latest_functions()
    await store.publish_functions([second])
    assert store.latest_functions() == (first, second)
    assert await store.functions() == (second,)


async def test_notes_come_newest_first_and_are_remembered_once(store: Store) -> None:
    notes = [Note(note_id=str(n), text=f"Grüße {n}", ts=1_700_000_000_000_000 + n) for n in range(3)]
    for note in notes:
        await store.add_note("acme", note)
    await store.add_note("acme", Note(note_id="1", text="other", ts=1_800_000_000_000_000))
    assert await store.notes("acme") == notes[::-1]
    assert await store.notes("other") == []


async def test_at_the_limit_of_notes_the_oldest_goes(store: Store) -> None:
    pipeline = store.redis.pipeline()
    for n in range(NOTES_LIMIT):
        pipeline.zadd("vx:notes:{a}", {str(n): n})
        pipeline.hset("vx:notes:{a}:text", str(n), "t")
    await pipeline.execute()
    assert len(await store.notes("a")) == NOTES_LIMIT
    await store.add_note("a", Note(note_id="new", text="t", ts=NOTES_LIMIT))
    kept = await store.notes("a")
    assert (len(kept), kept[0].note_id, kept[-1].note_id) == (NOTES_LIMIT, "new", "1")
    assert await store.redis.hlen("vx:notes:{a}:text") == NOTES_LIMIT


async def test_without_a_server_every_call_ends_with_a_typed_error(own_server: Callable[[str], Server]) -> None:
    server = own_server("valkey")
    redis = Redis.from_url(server.url, socket_timeout=1)
    store = Store(redis)
    sid = new_session_id()
    await store.acquire_lease(sid, "a")
    server.kill()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.acquire_lease(sid, "a"),
        lambda: store.renew_leases([sid], "a"),
        lambda: store.release_lease(sid, "a"),
        lambda: store.session_opened(sid, 1),
        lambda: store.session_closed(sid),
        store.live_sessions,
        lambda: store.orphans(1),
        lambda: store.sweep(1),
        lambda: store.held_by("a"),
        lambda: store.worker_listens("a", 1),
        lambda: store.regain_lease(sid, "a"),
        lambda: store.seize_lease(sid, "a", "b"),
        lambda: store.renewed([sid], within_ms=1),
        lambda: store.recent_sessions(limit=1),
        lambda: store.publish_functions([]),
        store.functions,
        lambda: store.add_note("a", Note(note_id="n", text="t", ts=1)),
        lambda: store.notes("a"),
    ]
    for call in calls:
        with pytest.raises(Unavailable) as caught:
            await call()
        assert caught.value.code is Code.UNAVAILABLE
        assert caught.value.retryable
    server.start()
    assert await store.acquire_lease(new_session_id(), "a") == 1
    await redis.aclose()


async def test_a_gateway_lives_for_three_seconds_after_it_last_said_so(store: Store) -> None:
    assert not await store.gateway_alive("gateway-a")
    await store.gateway_lives("gateway-a")
    assert await store.gateway_alive("gateway-a")
    assert 0 < await store.redis.pttl("vx:gateway:gateway-a") <= GATEWAY_MS
    assert await store.gateways_alive(["gateway-a", "gateway-b"]) == [True, False]
    assert await store.gateways_alive([]) == []
    await store.gateway_gone("gateway-a")
    assert not await store.gateway_alive("gateway-a")


async def test_what_a_resume_needs_is_kept_until_the_session_is_over(store: Store) -> None:
    sid, other = new_session_id(), new_session_id()
    kept = Resumable(resume_hash="ab" * 32, mode="local")
    await store.keep_resumable(sid, kept)
    assert await store.resumable(sid) == kept
    assert await store.resumable(other) is None
    assert 0 < await store.redis.ttl(f"vx:resumable:{{{sid}}}") <= KEPT_S
    await store.session_closed(sid)
    assert await store.resumable(sid) is None


async def test_a_full_valkey_renews_what_it_holds_and_says_of_the_rest_that_it_is_full(own_valkey: Callable[[], ValkeyServer]) -> None:
    async with Redis.from_url(own_valkey().url) as redis:
        store = Store(redis)
        await store.gateway_lives("gateway-a")
        assert await store.acquire_lease("a", "voice-1") == 1
        await redis.pexpire("vx:gateway:gateway-a", 500)
        await redis.config_set("maxmemory", "1")
        await store.gateway_lives("gateway-a")
        assert await redis.pttl("vx:gateway:gateway-a") > 500
        assert await store.renew_leases(["a"], "voice-1") == []
        for refused in (store.gateway_lives("gateway-b"), store.acquire_lease("b", "voice-1"), store.session_opened("b", 1)):
            with pytest.raises(Unavailable, match="full"):
                await refused


async def test_renewals_that_fail_give_their_connections_back(own_valkey: Callable[[], ValkeyServer]) -> None:
    server = own_valkey()
    redis = await connect_redis(server.url)
    store = Store(redis)
    assert await store.acquire_lease("a", "voice-1") == 1
    server.kill()
    refusals = await asyncio.gather(*(store.renew_leases(["a"], "voice-1") for _ in range(130)), return_exceptions=True)
    assert all(isinstance(refusal, Unavailable) for refusal in refusals)
    server.start()
    assert await store.acquire_lease("b", "voice-1") is not None
    assert await store.renew_leases(["b"], "voice-1") == []
    await redis.aclose()
