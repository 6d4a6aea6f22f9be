"""The voice service: takes sessions that were requested, owns them by a lease, and runs them until they end.

A requested session waits in a durable consumer until a worker with room takes it. Owning means two things: the lease in
Valkey says who is alive, and the fence on the log says who may write. When this process is killed its sessions end with
`session.ended{worker_lost}`, written by the next worker that sees the lease gone. When it is drained it ends its sessions
itself. A lost Valkey does not end a call: leases are kept in mind until it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.client import JetStreamContext

from services.voice import core, inputs, prompt
from services.voice.models import Models
from services.voice.session import Session, Workplace
from services.voice.vad import SileroModel
from services.voice.warmth import Warmth
from shared import bus, log
from shared.errors import VoxbridgeError
from shared.service import Resources, Service
from shared.step import Append, fold
from shared.store import Store
from shared.writer import SessionWriter

CONSUMER: Final = "voice"
REQUESTS: Final = "vx.s.*.ev.gateway.i.session.requested"
STALE_S: Final = 30
"""A request older than this is not taken any more: its client has been told that nobody came."""

RENEW_S: Final = 1.0
FETCH: Final = 32
_FETCH_TIMEOUT_S: Final = 1.0
_BACK_OFF_S: Final = 0.5

_log = logging.getLogger(__name__)


class VoiceService(Service):
    """All sessions of one process."""

    def __init__(self, resources: Resources, place: Workplace, store: Store) -> None:
        self._resources = resources
        self._place = place
        self._store = store
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._warmth = Warmth(place.models, store, place.config.llm_model, prompt.instructions(""))
        self._draining = asyncio.Event()
        self._leases_held = True

    async def serve(self) -> None:
        """Take requests and keep the leases until drained."""
        subscription = await self._place.log.js.pull_subscribe_bind(durable=CONSUMER, stream=bus.EVENT_STREAM)
        keeping = asyncio.create_task(self._keep_leases())
        taking = asyncio.create_task(self._take_requests(subscription))
        warming = asyncio.create_task(self._warmth.keep())
        await self._draining.wait()
        taking.cancel()
        warming.cancel()
        for session in list(self._sessions.values()):
            session.take(inputs.Drained())
        keeping.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._place.models.close()

    async def drain(self) -> None:
        """End every session and take no more."""
        self._draining.set()

    def health(self) -> Mapping[str, bool]:
        """Whether this process takes sessions and can keep their leases."""
        return {"leases": self._leases_held, "room": len(self._sessions) < self._place.config.max_sessions}

    def stats(self) -> Mapping[str, float]:
        """Sessions held and how many more there is room for."""
        held = len(self._sessions)
        return {"sessions": held, "room": self._place.config.max_sessions - held}

    async def _take_requests(self, subscription: JetStreamContext.PullSubscription) -> None:
        while True:
            room = self._place.config.max_sessions - len(self._sessions)
            if room <= 0:
                await asyncio.sleep(_BACK_OFF_S)
                continue
            try:
                for message in await subscription.fetch(min(FETCH, room), timeout=_FETCH_TIMEOUT_S):
                    await message.ack()
                    self._spawn(message)
            except TimeoutError:
                continue
            except NatsError as error:
                _log.warning("requests cannot be read: %s; trying again", error)
                await asyncio.sleep(_BACK_OFF_S)

    def _spawn(self, message: Msg) -> None:
        task = asyncio.create_task(self._open(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, message: Msg) -> None:
        try:
            requested = log.decode_delivered(message)
            age_s = (self._place.clock.now_us() - requested.ts) / 1_000_000
            if age_s > STALE_S:
                _log.warning("session %s was requested %.0f s ago and is not taken", requested.sid, age_s)
                return
            term = await self._store.acquire_lease(requested.sid, self._place.worker)
            if term is None:
                return
            session = Session(self._place, requested.sid, term, ended=self._ended)
            self._sessions[requested.sid] = session
            functions = tuple(await self._store.functions())
            await session.open(requested, functions)
            if session.state.request is not None and session.state.request.mode == "local":
                await self._warmth.warm_session(session.state.instructions, functions)
        except VoxbridgeError as error:
            _log.error("a session could not be opened: %s", error.message)

    def _ended(self, session: Session) -> None:
        if self._sessions.pop(session.sid, None) is not None:
            task = asyncio.create_task(self._leave(session))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _leave(self, session: Session) -> None:
        await session.close()
        if session.state.phase == "ended":
            await self._forget(session.sid)

    async def _forget(self, sid: str) -> None:
        try:
            await self._store.session_closed(sid)
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                for sid in await self._store.renew_leases(list(self._sessions), self._place.worker):
                    await self._regain(sid)
                await self._end_orphans()
                self._leases_held = True
            except VoxbridgeError as error:
                # The fence on the log still keeps others out, so the calls go on.
                self._leases_held = False
                _log.warning("leases cannot be renewed: %s", error.message)

    async def _regain(self, sid: str) -> None:
        """A lease ran out or was forgotten: take it again, unless somebody else did."""
        session = self._sessions.get(sid)
        if session is None:
            return
        term = await self._store.acquire_lease(sid, self._place.worker, floor=session.term)
        if term is not None:
            session.term = term

    async def _end_orphans(self) -> None:
        """End the sessions whose worker died: nobody holds their lease, and the index says that they live."""
        for sid in await self._store.orphans(self._place.clock.now_us()):
            if sid in self._sessions:
                continue
            term = await self._store.acquire_lease(sid, self._place.worker)
            if term is not None:
                await self._end_orphan(sid)
                await self._forget(sid)

    async def _end_orphan(self, sid: str) -> None:
        recorded = [one async for one in self._place.log.read_all(sid)]
        folded = fold(core.step, core.initial(sid), inputs.Input, "voice", recorded)
        if folded.state.phase != "open":
            return
        writer = SessionWriter(self._place.log, sid, "voice", number=folded.number, last_seq=folded.last_seq)
        now = self._place.clock.now_us()
        _, outputs = core.step(folded.state, inputs.Orphaned(self._place.worker), now)
        for output in outputs:
            if isinstance(output, Append):
                writer.submit(output.event, ts=now, cause=None)
        await writer.flushed()
        _log.warning("session %s had lost its worker and was ended", sid)


async def build(resources: Resources) -> Service:
    """Wire the voice service."""
    config = resources.config
    await resources.log.ensure_streams(retention_days=config.event_retention_days)
    await resources.log.js.add_consumer(
        bus.EVENT_STREAM,
        ConsumerConfig(
            durable_name=CONSUMER,
            filter_subject=REQUESTS,
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.ALL,
            ack_wait=10,
            max_ack_pending=1_024,
        ),
    )
    place = Workplace(
        config=config,
        clock=resources.clock,
        log=resources.log,
        audio_nc=resources.audio_nc,
        models=Models(config),
        vad=SileroModel(config.models_dir.expanduser() / "silero-vad" / "silero_vad.onnx"),
        worker=resources.process_id,
    )
    return VoiceService(resources, place, Store(resources.redis))
