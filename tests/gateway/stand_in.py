"""A scripted voice service for tests of the gateway, on the real bus and the real log."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from tests.eventually import BOUND_S
from voxbridge.shared import events
from voxbridge.shared.audio.frames import PCM16, pack
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.clock import SystemClock, wall_ms32
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.store.store import Store

WORKER = "voice-stand-in"


class Session:
    """A session that the stand-in took: its writers, and the received microphone frames."""

    def __init__(self, voice: StandIn, sid: str) -> None:
        self.sid = sid
        self._voice = voice
        self._writers = {name: SessionWriter(voice.log, sid, name) for name in ("voice", "tools")}
        self.microphone: asyncio.Queue[bytes] = asyncio.Queue()

    async def says(self, event: events.Event) -> int:
        """Append an event as the service that writes it."""
        return await self._writers[events.kind_of(event).writer].append(event, ts=self._voice.clock.now_us(), cause=None)

    async def moment(self, moment: moments.Moment) -> None:
        """Publish a moment."""
        await subjects.publish_moment(self._voice.nc, self.sid, moment)

    async def plays(self, frame: bytes) -> None:
        """Publish a reply frame."""
        await self._voice.nc.publish(subjects.audio_out(self.sid), frame)

    async def holds_lease(self) -> None:
        """Acquire the lease of the session."""
        assert await self._voice.store.acquire_lease(self.sid, WORKER) is not None

    async def heard(self, msg: Msg) -> None:
        """Handle a microphone frame."""
        self.microphone.put_nowait(msg.data)
        if self._voice.echo:
            await self.plays(pack(PCM16, 1, 0, wall_ms32(), msg.data[16:]))


class StandIn:
    """The service: takes every requested session and starts it, unless `refusal` or `silent` say otherwise."""

    def __init__(self, nc: Client, store: Store) -> None:
        self.nc = nc
        self.store = store
        self.log = Log(nc)
        self.clock = SystemClock()
        self.refusal: events.voice.Failure | None = None
        self.silent = False
        self.echo = False
        self.sessions: dict[str, Session] = {}
        self.requests: asyncio.Queue[events.Recorded] = asyncio.Queue()
        self._stopping = False
        self._renewing: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pull: JetStreamContext.PullSubscription | None = None

    async def __aenter__(self) -> StandIn:
        await self.log.ensure_streams(retention_days=1)
        subject = subjects.event_subject("*", "gateway", visible=False, event_type="session.requested")
        self._pull = await self.log.js.pull_subscribe(subject, durable="voice", stream=subjects.EVENT_STREAM)
        self._task = asyncio.create_task(self._run(self._pull))
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(self, *_: Any) -> None:
        assert self._task is not None
        assert self._renewing is not None
        self._stopping = True
        for task in (self._task, self._renewing):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self, pull: JetStreamContext.PullSubscription) -> None:
        while not self._stopping:  # a cancellation can be lost in a fetch that ends at the same moment
            with suppress(TimeoutError, ServiceUnavailableError):  # a replicated consumer sometimes has no leader for a moment
                for message in await pull.fetch(16, timeout=1):
                    await message.ack()
                    await self._take(decode_pulled(message))

    async def _renew(self) -> None:
        while not self._stopping:  # a cancellation can be lost in a command, too
            await asyncio.sleep(1)
            with suppress(VoxbridgeError):
                await self.store.renew_leases(list(self.sessions), WORKER)

    async def _take(self, recorded: events.Recorded) -> None:
        session = Session(self, recorded.sid)
        self.sessions[recorded.sid] = session
        if not self.silent:
            await self._begin(session, recorded)
        self.requests.put_nowait(recorded)

    async def _begin(self, session: Session, recorded: events.Recorded) -> None:
        if self.refusal is not None:
            await session.says(events.voice.SessionEnded(reason="refused", error=self.refusal))
            return
        assert isinstance(recorded.event, events.gateway.SessionRequested)
        await session.holds_lease()
        await self.nc.subscribe(subjects.audio_in(session.sid), cb=session.heard)
        await self.nc.flush()
        await session.says(events.voice.SessionOwned(worker=WORKER, term=1))
        await session.says(events.voice.SessionStarted(mode=recorded.event.mode, model="none", voice="none", output="audio"))

    async def session(self) -> Session:
        """Return the next session that was requested."""
        recorded = await asyncio.wait_for(self.requests.get(), BOUND_S)
        return self.sessions[recorded.sid]


def decode_pulled(message: Msg) -> events.Recorded:
    """Return the event in a message of a consumer."""
    sid, writer, visible = subjects.parse_event_subject(message.subject)
    assert sid
    return events.decode(message.data, seq=message.metadata.sequence.stream, writer=writer, visible=visible)
