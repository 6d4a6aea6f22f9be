"""The voice service: takes requested sessions, owns each of them by a lease, and runs it until it ends.

A request waits in a durable consumer until a worker with room takes it (`requests`). Ownership has two parts: the lease in Valkey tells
which worker is alive, and the fence on the log tells which worker may write. When this process is killed, other workers take its sessions
over (`orphans`). When it is drained, it releases them between two turns and announces that. Losing Valkey does not end a call: the worker
remembers its leases until Valkey is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from voxbridge.services.voice import inspection
from voxbridge.services.voice.audio.recorder import Recorders
from voxbridge.services.voice.audio.vad import SileroModel
from voxbridge.services.voice.audio.waveforms import Waveforms
from voxbridge.services.voice.core import agents
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.ownership.leases import Leases
from voxbridge.services.voice.ownership.load import Load
from voxbridge.services.voice.ownership.migration import MOVE, RELEASED, ROOM, Migrations
from voxbridge.services.voice.ownership.orphans import Orphans
from voxbridge.services.voice.ownership.peers import Peers
from voxbridge.services.voice.ownership.requests import Requests
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.services.voice.providers.cascade.warmup import Warmup
from voxbridge.services.voice.providers.realtime.handles import Handles
from voxbridge.services.voice.providers.realtime.registry import Vendors
from voxbridge.services.voice.session.account_facts import AccountFacts
from voxbridge.services.voice.session.macros import Macros
from voxbridge.services.voice.session.offers import Facts, Offers
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.services.voice.session.screens import Screens
from voxbridge.services.voice.session.session import Session
from voxbridge.services.voice.session.unheard import Unheard
from voxbridge.services.voice.session.worker import Offer, Workplace
from voxbridge.services.voice.speakable import loader
from voxbridge.shared import events
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus import subjects
from voxbridge.shared.cancellation import ended
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.ids import check_session_id
from voxbridge.shared.log import streams
from voxbridge.shared.secrets.provider_keys import Keys
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.service.process import Resources, Service
from voxbridge.shared.store.store import Store

CONSUMER: Final = subjects.VOICE_CONSUMER
TAKEN_S: Final = streams.VOICE_ACK_WAIT_S
GIVEN_UP_GAP_S: Final = 0.1
"""Seconds between the releases of two sessions: about the time that another worker needs to take one over."""

GIVEN_UP_S: Final = 2.0
"""Seconds within which all sessions are released, however many there are."""

KEPT_AGAIN_S: Final = 3.0
"""Seconds that the bus, back after an outage, may take until it keeps audio again; after that calls go on without."""

_log = logging.getLogger(__name__)


class VoiceService(Service):
    """All sessions of one process."""

    def __init__(self, place: Workplace, store: Store, keys: Keys | None = None, data_keys: DataKeys | None = None) -> None:
        self._place = place
        self._store = store
        self._keys = keys
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._warming: dict[str, asyncio.Task[None]] = {}
        self._warmup = Warmup(place.models, store, place.config.llm_model, prompt.instructions(""), idle=self._idle)
        self._orphans = Orphans(place, store, self)
        self._peers = Peers(place.log.nc, place.worker, self._orphans.owners, self._orphans.left_by, self._orphans.look_soon)
        self.migrations = Migrations(place.log.nc, store, place.worker, self)
        self._load = Load()
        self._recorders = Recorders(place.log, data_keys)
        facts = Facts(*(kind(place.log, self._sessions) for kind in (Macros, Unheard, Screens)))  # type: ignore[arg-type]  # in its order
        self._facts: tuple[AccountFacts[Any], ...] = facts
        offers = Offers(place, store, keys, self._recorders, facts)
        self._requests = Requests(place, store, offers, self._orphans, self)
        self._leases = Leases(place, store, self._sessions, self._orphans.taking)
        self._draining = asyncio.Event()
        self._changed = asyncio.Event()

    async def serve(self) -> None:
        """Take requests and keep the leases until drained."""
        subscription = await self._place.log.js.pull_subscribe_bind(durable=CONSUMER, stream=subjects.EVENT_STREAM)
        await self._peers.listen()
        for facts in self._facts:
            await facts.start()
        self._place.log.follow(self._peers)
        nudges = await self._place.log.nc.subscribe(RELEASED, cb=self._released)
        questions = await self._place.log.nc.subscribe(ROOM, cb=self.migrations.asked_for_room)
        await self._place.audio_nc.subscribe(subjects.MICROPHONE, cb=self._asked_what_was_heard)
        self._place.audio_nc.on_cut, self._place.audio_nc.on_back = self._cut_off, self._connected_again
        work: list[Coroutine[Any, Any, None]] = [self._requests.take_all(subscription), self._load.keep(self._busy), self._peers.watch()]
        if self._keys is not None:
            work.append(self._keys.keep_telling())
        if self._place.models.local:
            work.append(self._warmup.keep())
        running = [asyncio.create_task(one) for one in work]
        # These are not cancelled but end by themselves: a command to Valkey cancelled midway would leave its connection open.
        watching, leases = asyncio.create_task(self._orphans.watch()), asyncio.create_task(self._leases.keep())
        stall_guard = asyncio.create_task(self._place.stall_guard.keep(self._leases.renew, self._busy))
        draining = asyncio.create_task(self._draining.wait())
        done, _ = await asyncio.wait({draining, watching, leases, stall_guard, *running}, return_when=asyncio.FIRST_COMPLETED)
        self._draining.set()
        self._orphans.stop()
        ending = asyncio.create_task(ended(draining, *running, *self._warming.values()))
        # Released one after another: sessions taken over all at once would have to wait for one another.
        gap_s = min(GIVEN_UP_GAP_S, GIVEN_UP_S / max(1, len(self._sessions)))
        for number, session in enumerate(list(self._sessions.values())):
            session.drain(after_s=number * gap_s)
        with suppress(NatsError, OSError):
            await nudges.unsubscribe()
            await questions.unsubscribe()
        await asyncio.wait({watching})
        while self._sessions or self._tasks:
            self._changed.clear()
            await self._changed.wait()
        await self.migrations.stop()
        for facts in self._facts:
            await facts.stop()
        self._place.log.unfollow(self._peers)
        await self._peers.leave()
        await ending
        self._leases.stop()
        await asyncio.wait({leases})
        stall_guard.cancel()
        await self._place.models.close()
        if self._place.vendors is not None:
            await self._place.vendors.close()
        for task in done & {watching, leases, stall_guard, *running}:
            task.result()  # a task that should run for ever has failed, and the process fails with it

    async def warm_up(self) -> None:
        """Load what the first session would have to wait for. Runs beside `serve`: takeovers of dead workers' sessions do not wait."""
        if self._keys is not None and self._place.vendors is not None:
            usable = await self._keys.usable()
            await self._place.vendors.prepare(name for name, has in usable.items() if has)
            await self._place.models.prepare()
        await loader.prepare()

    async def drain(self) -> None:
        """Release every session, at the end of its turn if that comes soon, and take no new ones."""
        self._draining.set()

    async def adopt(self, sid: str, term: int, prior: PriorState, gap_ms: int) -> None:
        """Continue a session that another worker left."""
        session = self._sessions[sid] = Session(self._place, sid, term, ended=self._ended, prior=prior)
        self._place.stall_guard.need()
        try:
            await self._record(session)
            await session.restore(prior, gap_ms)
        except BaseException as error:
            session.give_up(error if isinstance(error, VoxbridgeError) else VoxbridgeError(Code.INTERNAL, f"{error!r}"))
            raise
        for facts in self._facts:
            facts.check(session)
        if self._draining.is_set():
            session.drain()

    def _cut_off(self) -> None:
        for session in self._sessions.values():
            session.inbound.cut_off()

    def _connected_again(self) -> None:
        self.keep(self._catch_up())

    async def _catch_up(self) -> None:
        # Otherwise the audio that the gateways held would pass before a stream keeps it: no successor and no recording would have it.
        js, kept = self._place.log.js, (subjects.MICROPHONE_STREAM, subjects.REPLY_STREAM)
        if not all(await asyncio.gather(*(streams.until_there(js, name, KEPT_AGAIN_S) for name in kept))):
            _log.warning("the bus was away and does not keep audio again yet")
        await asyncio.gather(*(self._hear_missed(session) for session in self._sessions.values()))

    async def _hear_missed(self, session: Session) -> None:
        # Checked in the same step in which the reading begins: while the bus is away again, its next return does this.
        if self._place.audio_nc.is_connected:
            await session.inbound.catch_up()

    async def _asked_what_was_heard(self, message: Msg) -> None:
        session = self._sessions.get(message.data.decode("ascii", "replace"))
        heard = session.inbound.heard() if session is not None else None
        if heard is not None:
            with suppress(NatsError):  # the gateway asks again
                await message.respond(heard)

    async def _record(self, session: Session) -> None:
        if session.state.settings.recorded and self._sessions.get(session.sid) is session:
            await self._recorders.begin(session.sid)

    def health(self) -> Mapping[str, bool]:
        """Return whether this process can keep its leases, and whether it has room for another session."""
        return {"leases": self._leases.held, "room": self.room() > 0}

    def stats(self) -> Mapping[str, float]:
        """Return the number of sessions held, the room for more, and the load (`load.Load.figures`)."""
        return {"sessions": len(self._sessions), "room": self.room(), **self._load.figures()}

    def held(self) -> set[str]:
        """Return the ids of the sessions that this process has or is opening."""
        return {*self._sessions, *self._requests.opening()}

    def room(self) -> int:
        """Return how many more sessions fit: the cap less those it holds, opens, takes over, or keeps room for. Never below zero."""
        return self._place.config.max_sessions - len({*self.held(), *self._orphans.taking(), *self.migrations.promised()})

    def session(self, sid: str) -> Session | None:
        """Return a session that this process has, or None."""
        return self._sessions.get(sid)

    def draining(self) -> bool:
        """Tell whether this process is releasing its sessions."""
        return self._draining.is_set()

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine that the process waits for before it stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _idle(self) -> bool:
        """Tell whether no worker has a conversation."""
        return not self._sessions and not self._orphans.live()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._changed.set()

    async def begin(self, requested: events.Recorded, term: int, offer: Offer, failure: VoxbridgeError | None) -> bool:
        """Open a session, or refuse it because of `failure`. Returns False if nothing of it is in the log."""
        session = self._sessions[requested.sid] = Session(self._place, requested.sid, term, ended=self._ended)
        self._place.stall_guard.need()
        try:
            if failure is not None:
                raise failure
            await session.open(requested, offer)
        except VoxbridgeError as error:
            _log.error("session %s could not be opened: %s", session.sid, error.message)
            await session.refuse(requested, error)
        await self._record(session)
        state = session.state
        if state.phase == "open" and state.request is not None and state.request.mode != "echo" and self._place.models.local:
            self._warming[session.sid] = self.keep(self._warm(session))
        if self._draining.is_set():
            session.drain()
        return state.phase != "new"

    def _busy(self) -> bool:
        return bool(self._sessions)

    async def _warm(self, session: Session) -> None:
        state = session.state
        shared = agents.shared(state)
        if agents.thinks_here(state.team.agent):
            await self._warmup.warm_session(state.team.instructions, state.team.functions, shared=shared)
        for instructions, functions in agents.read_ahead(state):
            await self._warmup.read_ahead(instructions, functions, shared=shared)

    def _ended(self, session: Session) -> None:
        if self._sessions.pop(session.sid, None) is not None:
            warming = self._warming.pop(session.sid, None)
            if warming is not None:
                warming.cancel()
            self.keep(self._leave(session))

    async def _leave(self, session: Session) -> None:
        await session.close()
        self.keep(self._recorders.end(session.sid))
        if await self.migrations.closed(session):
            return
        if session.has_ended:
            await self._orphans.forget(session.sid)
            if self._place.handles is not None:
                await self._place.handles.forget(session.sid)
            return
        await self._orphans.leave(session.sid)
        if session.state.ownership.released:
            await subjects.publish(self._place.log.nc, RELEASED, session.sid.encode())

    async def _released(self, message: Msg) -> None:
        if self._draining.is_set():
            return
        with suppress(VoxbridgeError, UnicodeDecodeError):
            sid, _, to = message.data.decode().partition(" ")
            self.migrations.settle(check_session_id(sid))
            if not to:
                self._orphans.released(sid)
            elif to == self._place.worker:
                self._orphans.handed(sid)


def _publish(config: Config) -> None:
    try:
        Vault(vault_key_file(config)).publish(config.vault_public_key_path)
    except VoxbridgeError as error:  # the process that needs it reports that; in containers another one makes it
        _log.info("%s", error.message)


async def build(resources: Resources) -> Service:
    """Wire the voice service."""
    config = resources.config
    await resources.log.ensure_streams(retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
    await streams.ensure_consumer(resources.log.js, streams.CONSUMERS[CONSUMER].evolve(ack_wait=TAKEN_S))
    await resources.micro.add_endpoint(name="state", subject=inspection.SUBJECT, handler=inspection.Inspector(resources.log).serve)
    _publish(config)
    keys, store = Keys.of(config, resources.redis), Store(resources.redis)
    place = Workplace(
        config=config,
        clock=resources.clock,
        log=resources.log,
        audio_nc=resources.audio_nc,
        models=Models(config, keys.get, store.latest_functions),
        vad=SileroModel(config.models_dir.expanduser() / "silero-vad" / "silero_vad.onnx"),
        worker=resources.process_id,
        vendors=Vendors(keys.get),
        handles=Handles(store),
    )
    data_keys = DataKeys.of(config, resources.redis)
    service = VoiceService(place, store, keys, data_keys)
    await resources.micro.add_endpoint(name="waveform", subject=subjects.WAVEFORM, handler=Waveforms(resources.log, data_keys).serve)
    # A queue group per worker: all workers receive the question, and the session's owner answers.
    await resources.micro.add_endpoint(name="move", subject=MOVE, handler=service.migrations.serve, queue_group=resources.process_id)
    return service
