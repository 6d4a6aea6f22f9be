"""Sessions whose worker dies, is stopped, or is thought dead; and requests that no worker has answered yet."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import nats
import pytest
from redis.asyncio import Redis

from tests.eventually import BOUND_S
from tests.voice.conftest import BUSY_S, MakePage, Page, Workers, at_rest, becomes, left
from tests.voice.model_server import Fault, ModelServer
from tests.voice.replaying import replay, stored
from tests.voice.sounds import silence
from voxbridge.services.voice import service as service_module
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.ownership import leases, orphans, requests
from voxbridge.services.voice.service import CONSUMER
from voxbridge.services.voice.session import recovery
from voxbridge.services.voice.session import session as session_module
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.services.voice.session.session import Session
from voxbridge.shared.audio import frames
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.events import Recorded, gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(120)
_opened = inputs.Opened(
    worker="w", term=1, model="m", voice="", greeting="", functions=(), providers=("local",), idle_timeout_s=60, turn_timeout_s=30
)
OPENED = Taken(at=2, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(_opened)))


async def test_a_released_session_is_with_another_worker_at_once(workers: Workers, pages: MakePage, store: Store) -> None:
    held = [pages() for _ in range(5)]
    async with workers.process() as process:
        await asyncio.gather(*(one.open() for one in held))
        await asyncio.gather(*(one.until(ev.SessionStarted) for one in held))
        async with workers.running() as other:
            process.send_signal(signal.SIGTERM)
            restored: list[Any] = await asyncio.gather(*(one.until(ev.SessionRestored) for one in held))
            for page, one in zip(held, restored, strict=True):
                (released,) = page.told(ev.SessionReleased)
                assert (released.reason, released.term) == ("drain", 1)
                assert one.event.gap_ms < BUSY_S * 1_000
                assert one.event.lost == ()
            assert other.stats()["sessions"] == 5
            assert await asyncio.wait_for(process.wait(), BOUND_S) == 0
            await asyncio.gather(*(one.ends() for one in held))
            await asyncio.gather(*(left(store, one) for one in held))


async def test_what_a_lone_worker_released_is_taken_by_the_next_at_its_start(workers: Workers, page: Page, store: Store) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        process.send_signal(signal.SIGTERM)
        await page.until(ev.SessionReleased)
        assert await asyncio.wait_for(process.wait(), BOUND_S) == 0
    assert await store.held([page.sid]) == [False]
    assert await store.live_sessions() == [page.sid]
    async with workers.running():
        await page.until(ev.SessionRestored)
        await page.says(gateway.TextReceived(text="Still there?"))
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()


async def test_a_worker_that_stops_lets_a_turn_finish_that_soon_does(
    workers: Workers, page: Page, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MID_TURN_S", BOUND_S)  # on a busy machine the report below takes longer than the worker would wait
    async with workers.running() as worker:
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="Hello"))
        await page.when(lambda: any(prefix.flags & frames.LAST for prefix, _ in page.frames))
        await worker.drain()
        await page.says(gateway.PlaybackReported(generation=1, played_ms=200, state="finished"))
        await page.until(ev.SessionReleased)
    names = [one.type for one in page.heard if one.type in ("turn.completed", "session.released")]
    assert names == ["turn.completed", "session.released"]


async def test_a_terminated_worker_gives_up_a_long_turn_in_its_middle_and_another_goes_on(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("llm", [Fault.HANG], ["It is noon."])
    async with workers.process() as process, workers.running() as other:
        await page.open()
        owner = (await page.until(ev.SessionOwned)).event
        assert isinstance(owner, ev.SessionOwned)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await model_server.until_asked("llm")
        if owner.worker == other._place.worker:
            await other.drain()
        else:
            process.send_signal(signal.SIGTERM)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]
    assert [one.term for one in page.told(ev.SessionOwned)] == [1, 2]


async def test_a_worker_that_is_stopped_while_nats_is_away_is_gone_within_seven_seconds(
    own_nats: Callable[[], NatsServer], config: Config, store: Store
) -> None:
    server = own_nats()
    workers = Workers(replace(config, nats_url=server.url))
    client = await nats.connect(server.url, max_reconnect_attempts=0)
    await Log(client).ensure_streams(retention_days=1)
    page = Page(client, store)
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        await page.stop()
        await client.close()
        server.kill()
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(process.communicate(), BOUND_S)
        assert time.monotonic() - begun < BUSY_S, "7 s, and what a busy machine adds"
        assert process.returncode == 0, said.decode()
        assert b"Traceback" not in said


async def test_a_session_whose_lease_somebody_else_holds_is_given_up_and_nothing_more_is_written(
    workers: Workers, page: Page, store: Store
) -> None:
    async with workers.running() as worker:
        await page.open()
        await page.until(ev.SessionStarted)
        await store.redis.set(f"vx:lease:{{{page.sid}}}", "somebody-else", px=60_000)
        await at_rest(worker)
        position = await page.says(gateway.TextReceived(text="Hello?"))
        await page.says(gateway.SessionEndRequested(by="client", reason="client"))
        await asyncio.wait({asyncio.create_task(page.until(ev.UserSaid))}, timeout=0.3)
        log = await page.everything()
    assert all(one.writer == "gateway" for one in log if one.seq >= position)
    assert page.told(ev.SessionEnded) == []
    assert await store.held([page.sid]) == [True]


@pytest.mark.past_is_broken
async def test_an_owner_that_was_thought_dead_is_kept_out_by_the_log(workers: Workers, page: Page, store: Store) -> None:
    async with workers.running() as worker:
        await page.open()
        started = await page.until(ev.SessionStarted)
        number = len([one for one in await page.everything() if one.writer == "voice"])
        other = SessionWriter(page.log, page.sid, "voice", end=End(number, (await page.log.position(page.sid, "voice"))[0]))
        await other.append(ev.SessionEnded(reason="worker_lost"), ts=started.ts, cause=None)
        await page.says(gateway.TextReceived(text="Hello?"))
        await at_rest(worker)
        log = [one for one in await page.everything() if one.writer == "voice"]
    assert isinstance(log[-1].event, ev.SessionEnded)


async def test_a_request_whose_worker_died_before_it_owned_the_session_is_taken_by_the_next(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "TAKEN_S", 1)
    async with workers.running(max_sessions=1):
        pass  # creates the consumer
    await page.open()
    subscription = await page.log.js.pull_subscribe_bind(durable=CONSUMER, stream="EV")
    (message,) = await subscription.fetch(1, timeout=5)
    assert message.metadata.num_delivered == 1
    assert await store.acquire_lease(page.sid, "the dead one") == 1
    async with workers.running():
        owned = (await page.until(ev.SessionOwned)).event
        assert isinstance(owned, ev.SessionOwned)
        assert owned.term >= 2  # the search for orphans may have held it for a moment too
        await page.until(ev.SessionStarted)


async def test_a_lease_that_ran_out_during_a_stall_is_regained_however_many_look_at_it(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 600.0)
    async with workers.running() as worker:
        await page.open("echo")
        await page.until(ev.SessionStarted)
        renew, seen = worker._store.renew_leases, asyncio.Barrier(2)

        async def both_see_it(sids: Sequence[str], name: str) -> list[str]:
            lost = await renew(sids, name)
            await seen.wait()
            return lost

        await store.redis.delete(f"vx:lease:{{{page.sid}}}")
        monkeypatch.setattr(worker._store, "renew_leases", both_see_it)
        await asyncio.gather(worker._leases.renew(), worker._leases.renew())
        monkeypatch.undo()
        assert page.sid in worker._sessions
        await page.ends()


async def test_sessions_of_a_dead_worker_are_folded_one_at_a_time(
    workers: Workers, pages: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold, running, most = recovery._fold, list[str](), 0

    def watched(sid: str, log: list[Recorded]) -> PriorState:
        nonlocal most
        running.append(sid)
        most = max(most, len(running))
        time.sleep(0.05)
        try:
            return fold(sid, log)
        finally:
            running.remove(sid)

    monkeypatch.setattr(recovery, "_fold", watched)
    calls = [pages() for _ in range(4)]
    async with workers.process() as process:
        await asyncio.gather(*(one.open("echo") for one in calls))
        await asyncio.gather(*(one.until(ev.SessionStarted) for one in calls))
        async with workers.running():
            process.kill()
            await asyncio.gather(*(one.until(ev.SessionRestored) for one in calls))
            await asyncio.gather(*(one.ends() for one in calls))
    assert most == 1


async def test_a_session_that_was_lost_while_it_was_opened_is_opened_again(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow, lost = Session._follow, list[str]()

    async def lose(session: Session, after: Any) -> None:
        if not lost:
            lost.append(session.sid)
            session.give_up(Conflict("Another worker holds the lease."))
        await follow(session, after)

    monkeypatch.setattr(Session, "_follow", lose)
    monkeypatch.setattr(service_module, "TAKEN_S", 600)  # prevents redelivery of the request
    async with workers.running():
        await page.open("echo")
        await page.until(ev.SessionStarted)
        await page.speaks(silence(250))
        await page.when(lambda: page.frames)
        await page.ends()


async def test_a_request_whose_worker_died_after_it_owned_the_session_is_carried_on(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "TAKEN_S", 1)
    monkeypatch.setattr(orphans, "GRACE_S", 60.0)  # the request comes first
    async with workers.running(max_sessions=1):
        pass
    await page.open()
    subscription = await page.log.js.pull_subscribe_bind(durable=CONSUMER, stream="EV")
    await subscription.fetch(1, timeout=5)
    # The state after a worker that dies between its first events and the acknowledgement.
    dead = SessionWriter(page.log, page.sid, "voice")
    await dead.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=page.position), OPENED)), ts=2, cause=None)
    await dead.append(ev.SessionOwned(worker="w", term=1), ts=2, cause="voice#1")
    async with workers.running():
        await page.until(ev.SessionRestored)
        log = await page.everything()
        await page.ends()
    assert [type(one.event).__name__ for one in log if one.writer == "voice"][1:3] == ["SessionOwned", "SessionStarted"]
    assert [one.term for one in page.told(ev.SessionOwned)] == [1, 2]


@pytest.mark.past_is_broken
async def test_the_events_that_a_crash_kept_from_the_log_are_written_by_the_successor(workers: Workers, page: Page, store: Store) -> None:
    await page.open()
    end = await page.says(gateway.SessionEndRequested(by="client", reason="client"))
    dead = SessionWriter(page.log, page.sid, "voice")
    await dead.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=page.position), OPENED, Taken(at=3, seq=end))), ts=3, cause=None)
    await store.acquire_lease(page.sid, "the dead one")
    await store.release_lease(page.sid, "the dead one")
    async with workers.running():
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.reason == "client"
        await left(store, page)
        log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)


@pytest.mark.past_is_broken
async def test_a_session_whose_past_cannot_be_read_is_ended_all_the_same(workers: Workers, page: Page, store: Store) -> None:
    await page.open()
    dead = SessionWriter(page.log, page.sid, "voice")
    await dead.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=999_999),)), ts=2, cause=None)
    await store.acquire_lease(page.sid, "the dead one")
    await store.release_lease(page.sid, "the dead one")
    async with workers.running(max_sessions=1):
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.error is not None
        assert ended.error.code == "INTERNAL"
        await left(store, page)


async def test_a_session_that_nobody_can_go_on_with_is_ended_after_three_tries(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        process.send_signal(signal.SIGTERM)
        await page.until(ev.SessionReleased)
        assert await asyncio.wait_for(process.wait(), BOUND_S) == 0
    tries = 0

    async def broken(*_: Any) -> None:
        nonlocal tries
        tries += 1
        raise ZeroDivisionError

    monkeypatch.setattr(Session, "restore", broken)
    async with workers.running() as worker:
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.reason == "worker_lost"
        assert ended.error is not None
        assert ended.error.code == "INTERRUPTED"
        await left(store, page)
        assert worker.stats()["sessions"] == 0
    assert tries == orphans.TRIES


async def test_a_takeover_into_which_somebody_else_wrote_is_begun_again(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        process.send_signal(signal.SIGTERM)
        await page.until(ev.SessionReleased)
        assert await asyncio.wait_for(process.wait(), BOUND_S) == 0
    restore, tries = Session.restore, 0

    async def late(self: Session, past: PriorState, gap_ms: int) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:  # the dead worker's pending append arrives now
            number, last = past.folded.number, past.folded.last_seq
            taken = Taken(at=past.alive_at + 1, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(inputs.TimerFired("nothing"))))
            dead = SessionWriter(page.log, page.sid, "voice", end=End(number, last))
            await dead.append(VoiceJournal(first=past.folded.taken, inputs=(taken,)), ts=past.alive_at + 1, cause=None)
        await restore(self, past, gap_ms)

    monkeypatch.setattr(Session, "restore", late)
    async with workers.running():
        await page.until(ev.SessionRestored)
        await page.ends()
        log = await page.everything()
    assert tries == 2
    assert page.told(ev.SessionOwned)[0].term == 1
    assert len(page.told(ev.SessionOwned)) == 2
    assert replay(page.sid, log)[1] == stored(log)


async def test_a_lost_valkey_ends_no_call_and_its_leases_are_taken_again(
    own_valkey: Callable[[], ValkeyServer], config: Config, nats_url: str
) -> None:
    server = own_valkey()
    workers = Workers(replace(config, redis_url=server.url))
    client = await nats.connect(nats_url)
    await Log(client).ensure_streams(retention_days=1)
    async with Redis.from_url(server.url, decode_responses=True) as redis:
        store = Store(redis)
        page = Page(client, store)
        async with workers.running() as worker, workers.running() as other:
            await page.open()
            await page.until(ev.SessionStarted)
            server.kill()
            await page.says(gateway.TextReceived(text="Hello?"))
            await page.until(ev.TurnCompleted)
            server.start()
            await redis.flushall()
            await store.session_opened(page.sid, 1)  # the rebuilt index has an old session without a lease

            async def held() -> bool:
                try:
                    return (await store.held([page.sid]))[0]
                except VoxbridgeError:
                    return False

            await becomes(held)
            await page.says(gateway.TextReceived(text="Still there?"))
            await page.until(ev.TurnCompleted, 2)
            assert page.told(ev.SessionEnded) == []
            assert worker.stats()["sessions"] + other.stats()["sessions"] == 1
            await page.ends()
        await page.stop()
    await client.close()


@pytest.mark.parametrize(("code", "after_s"), [(Code.UNAVAILABLE, requests.REFUSE_S), (Code.NOT_FOUND, requests.REFUSE_SOON_S)])
async def test_a_session_that_cannot_be_opened_is_refused_with_the_reason_before_its_client_gives_up(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch, code: Code, after_s: float
) -> None:
    async def broken(_: Store) -> list[Any]:
        raise VoxbridgeError(code, "The catalogue cannot be read.")

    monkeypatch.setattr(Store, "functions", broken)
    async with workers.running() as worker:
        await page.open(age_s=after_s - 0.7)
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.reason == "refused"
        assert ended.error is not None
        assert ended.error.message == "The catalogue cannot be read."
        assert 0 <= ended.duration_ms < requests.STALE_S * 1_000
        await left(store, page)
        assert worker.stats()["sessions"] == 0


async def test_a_takeover_that_fails_on_the_way_holds_nothing_and_is_tried_again(
    workers: Workers, page: Page, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Session] = []
    closed = asyncio.Event()
    follow, close = Session._follow, Session.close

    async def once(self: Session, after: Mapping[str, int]) -> None:
        if not failed:
            failed.append(self)
            raise Unavailable("The bus takes no subscription.")
        await follow(self, after)

    async def whole(self: Session) -> None:
        await close(self)
        if self in failed:
            closed.set()

    async with workers.process() as process:
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        model_server.script("tts", *[[3_000]] * 4)
        model_server.script("llm", *[["Once upon a time there was a king."]] * 4)  # each successor may ask again
        async with workers.running():
            await page.says(gateway.TextReceived(text="A story."))
            await page.when(lambda: page.sent_ms(1) >= 300)
            monkeypatch.setattr(Session, "_follow", once)
            monkeypatch.setattr(Session, "close", whole)
            process.send_signal(signal.SIGKILL)
            await page.until(ev.SessionRestored)
            await page.when(lambda: any(one.generation > 1 and "king" in one.text for one in page.partials))
            await asyncio.wait_for(closed.wait(), BOUND_S)
            await page.ends()
