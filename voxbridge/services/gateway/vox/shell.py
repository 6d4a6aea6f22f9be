"""The shell of one VOX connection: performs the outputs of `core`, and carries the audio past it.

Owns the subscriptions and the writer of one socket's session. Does not own the rules (`core`), the socket (`transport`), or what all
connections share (`service`). A crash here loses the socket; the session belongs to the voice worker and lives on in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

import msgspec
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from voxbridge.services.gateway.core import inputs, outbound, resume_rules
from voxbridge.services.gateway.core.captions import Captions
from voxbridge.services.gateway.core.lateness import Lateness
from voxbridge.services.gateway.core.outputs import TOO_SLOW, Append, Attach, Close, Ended, Open, Outputs, PublishMic, Resume, Send
from voxbridge.services.gateway.core.rate_limit import AHEAD_S, RateLimit
from voxbridge.services.gateway.core.state import Closed, Origin, fresh
from voxbridge.services.gateway.core.step import step
from voxbridge.services.gateway.door import tokens
from voxbridge.services.gateway.door.transport import Outlet
from voxbridge.services.gateway.vox import resume_reader
from voxbridge.services.gateway.vox.manner import Manner
from voxbridge.services.gateway.vox.parts import GatewayParts
from voxbridge.services.gateway.vox.reporting import REPORTS, Reporting
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.clock import Clock, wall_ms32
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.writer import Policy, SessionWriter
from voxbridge.shared.step.effects import Tasks, Timers
from voxbridge.shared.store.store import Resumable

REFUSAL_S: Final = 0.1
"""Seconds until a resume is refused, for whatever reason: the time reveals nothing, and guessing is slow."""
READ_PATIENCE_S: Final = 5.0
"""Seconds that a client which catches up may take to read what the transport holds."""

_FLAGS_OFFSET: Final = 2
_TIME_OFFSET: Final = 12
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


class Vox:
    """The sink of one socket: runs its connection's state machine."""

    def __init__(self, parts: GatewayParts[Vox], socket: Outlet, *, sid: str, name: str, manner: Manner) -> None:
        self.sid = sid
        self.v1 = v1 = manner.v1
        token = tokens.new_token()
        origin = Origin(parts.resources.process_id, name, tokens.hash_of(token))
        self.core = fresh(origin, sid=sid, v1=v1, resume_token=token, first=manner.first)
        self._parts = parts
        self._socket = socket
        self._manner = manner
        self._name = name
        self._clock: Clock = parts.resources.clock
        self._audio_nc = parts.resources.audio_nc
        self._microphones = parts.microphones
        self._microphone = parts.microphones.open(sid)
        self._metrics = parts.metrics
        self._sequence = 0
        self._takes_audio = False
        self._writer: SessionWriter | None = None
        self._feed: Feed | None = None
        self._watch: Feed | None = None
        self._attached_at: asyncio.Future[int] | None = None
        self._catching_up = False
        self._subscriptions: list[Subscription] = []
        self._loop = asyncio.get_running_loop()
        self._pace = RateLimit()
        self._lateness = Lateness()
        self._captions = Captions()
        self._showing = Timers[float](self._show_due)
        """Time of the loop, in s, at which a partial text that was held is shown."""

        self._effects = Tasks[str](f"session {sid}")
        self._flooded = False
        self._overloading = ""
        self._account = "local"
        self._reporting = Reporting(parts.reports, name, self._say)
        self.closed = self._loop.create_future()

    def text(self, payload: bytes) -> None:
        """Take a text message of the client."""
        self._take(self._manner.read(payload, self._now_ms()))

    def binary(self, payload: bytes) -> None:
        """Take a binary message: an audio frame goes straight to the bus."""
        if self._takes_audio and self._manner.framed and frames.is_microphone(payload):
            if self._in_time(len(payload) - frames.PREFIX_SIZE):
                microphone = self._microphone
                self._microphones.publish(microphone, frames.restamp(payload, wall_ms32(), microphone.position))
            return
        self._take(inputs.BinaryMessage(payload, self._now_ms(), bare=self._manner.bare))

    def _in_time(self, size: int) -> bool:
        """Tell whether microphone audio may pass. The first refusal is reported, until audio passes again."""
        if self._pace.takes(size, self._loop.time()):
            self._flooded = False
            return True
        self._metrics.dropped["ahead_of_time"] += 1
        if not self._flooded:
            self._flooded = True
            message = f"The microphone is more than {AHEAD_S:g} s ahead of time; what is more is dropped."
            self._perform((Send(outbound.of_error(VoxbridgeError(Code.OVERLOADED, message, field="audio", limit=AHEAD_S))),))
        return False

    def overflowed(self) -> None:
        """Close, because the client does not read."""
        self._socket.drop_queue()
        self._take(inputs.Congested())

    def lost(self, code: int) -> None:
        """Detach from the session, because the socket is gone."""
        self._manner.left()
        self._take(inputs.Disconnected(f"the socket closed with {code}"))
        self._microphones.close(self._microphone)
        self._parts.background(self._leave())
        if not self.closed.done():
            self.closed.set_result(None)

    def tick(self, now_ms: int, *, owned: bool | None) -> None:
        """Pass a tick to the state machine."""
        self._take(inputs.Tick(now_ms, owned))

    def shut_down(self) -> None:
        """Close, because the gateway is stopping."""
        self._take(inputs.Stopping())

    async def flushed(self) -> None:
        """Wait until the log has all that was written. Errors were already handled."""
        if self._writer is not None:
            try:
                await self._writer.flushed()
            except VoxbridgeError as error:
                _log.warning("session %s: %s", self.sid, error.message)

    def _take(self, input: inputs.Input) -> None:
        self.core, outputs = step(self.core, input)
        self._perform(outputs)

    def _perform(self, outputs: Outputs) -> None:
        for output in outputs:
            match output:
                case Send(message):
                    self._say(message)
                case Append(event):
                    self._append(event)
                case Attach(event):
                    self._attached_at = asyncio.get_running_loop().create_future()
                    self._attached_at.add_done_callback(_heeded)
                    if event.resumed:
                        self._hold_microphone(self._attached_at)
                    self._append(event, self._attached_at)
                case PublishMic(pcm) if self._in_time(len(pcm)):
                    frame = frames.pack(frames.PCM16, self._microphone.position, self._sequence, wall_ms32(), pcm)
                    self._microphones.publish(self._microphone, frame)
                    self._sequence += 1
                case Open():
                    self._effects.start("open", self._open(self._enter(output)))
                case Resume():
                    self._effects.start("open", self._open(self._resume(output)))
                case Ended():
                    self._parts.background(self._parts.store.session_closed(self.sid))
                case Close(code, reason):
                    self._metrics.closes[code] += 1
                    if code == TOO_SLOW:
                        _log.info("session %s: the client reads too slowly", self.sid)
                    self._socket.finish(code, reason)
        self._takes_audio = self.core.takes_audio

    def _hold_microphone(self, attached: asyncio.Future[int]) -> None:
        microphone, microphones = self._microphone, self._microphones
        microphone.unattached = True

        def written(position: asyncio.Future[int]) -> None:
            if not position.cancelled() and position.exception() is None:
                microphones.attached(microphone, position.result())

        attached.add_done_callback(written)

    def _say(self, message: outbound.Message) -> None:
        if message["type"] == "error":
            self._metrics.errors[message["code"]] += 1
        for told in self._manner.told(message):
            if isinstance(told, bytes):
                self._socket.send_binary(told)
            else:
                self._socket.send_text(_encode(told))

    def _append(self, event: events.Event, acked: asyncio.Future[int] | None = None) -> None:
        writer = self._writer
        if writer is None:
            return
        if isinstance(event, REPORTS):
            self._parts.background(self._reporting.record(self._account, self.sid, event))
            return
        try:
            writer.submit(event, ts=self._clock.now_us(), cause=None, acked=acked)
            self._overloading = ""
        except VoxbridgeError as error:
            if acked is not None:
                acked.set_exception(error)
            # A flooding client is told once, until something passes again.
            if error is not writer.failed and (error.field is None or error.field != self._overloading):
                self._overloading = error.field or ""
                self._say(outbound.of_error(error))

    async def _open(self, work: Awaitable[None]) -> None:
        try:
            await work
        except VoxbridgeError as error:
            self._take(inputs.Failed(error))
        except (NatsError, TimeoutError) as error:
            _log.warning("session %s: cannot be opened: %s", self.sid, error)
            self._take(inputs.Failed(Unavailable("The event log does not answer. Try again.", retry_after_ms=1_000)))

    async def _enter(self, opens: Open) -> None:
        parts = self._parts
        admitted = await self._manner.admit(self.sid, opens)
        event = admitted.event
        self._account = event.account
        if event.record and parts.resources.config.recording == "off":
            message = "This installation records nothing. Leave out `record`, or have VOXBRIDGE_RECORDING set to `allow`."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="record", retryable=False)
        await self._listen()
        began = self._clock.now_us()
        parts.background(parts.store.session_opened(self.sid, began))
        if event.resume_hash:
            parts.background(parts.store.keep_resumable(self.sid, Resumable(resume_hash=event.resume_hash, mode=event.mode)))
        self._writer = writer = self._new_writer()
        for before in admitted.before:
            await writer.append(before, ts=began, cause=None)
        position = await writer.append(event, ts=began, cause=None)
        self._manner.opened(self.sid, position)
        self._metrics.append_seconds.observe((self._clock.now_us() - began) / 1e6)
        self._socket.widen()
        self._take(inputs.Opened())
        # Nothing visible to the client precedes its request, so the feed begins there.
        await self._follow(position)

    async def _resume(self, wanted: Resume) -> None:
        parts = self._parts
        loop = asyncio.get_running_loop()
        due = loop.time() + REFUSAL_S
        known = await resume_reader.find(parts.log, parts.store, wanted.sid, wanted.token)
        if known is None or (known.recorded and wanted.unrecorded) or not self._manner.may_resume(known.account):
            self._metrics.resumes["refused"] += 1
            await asyncio.sleep(due - loop.time())
            self._take(inputs.ResumeRefused(self._now_ms()))
            return
        self._socket.widen()
        self.sid, self._account = wanted.sid, known.account
        self._microphones.close(self._microphone)
        self._microphone = self._microphones.open(wanted.sid)
        recovered = resume_rules.recovers(known, wanted.last_seq)
        position = wanted.last_seq if recovered else known.top
        await self._listen()
        # Plain VOX has no message for a snapshot: its client continues without what it missed.
        snapshot = None if recovered else await resume_reader.snapshot(parts.log, self.sid, known) if self.v1 else {}
        self._metrics.resumes["recovered" if recovered else "snapshot"] += 1
        self._writer = self._new_writer()
        self._catching_up = True
        await self._manner.resumed(self.sid, position)
        self._take(inputs.Resumed(known, snapshot, self._now_ms()))
        await self._follow(position)
        self._catching_up = False
        # This comes last because it reads the session from the beginning, and only answers to calls wait for it.
        calls = await resume_reader.open_calls(parts.log, self.sid, now=self._clock.now_us())
        self._take(inputs.CallsKnown(calls, self._now_ms()))

    def _new_writer(self) -> SessionWriter:
        quota = self._parts.admission.quota(self._account)
        failed = self._writer_failed
        return SessionWriter(
            self._parts.log, self.sid, "gateway", stem=self._name, fenced=False, policy=Policy(on_failed=failed, quota=quota)
        )

    async def _listen(self) -> None:
        nc = self._audio_nc
        self._subscriptions.append(await nc.listen(subjects.audio_out(self.sid), self._audio_out))
        # By the same way as the audio, so that both come in the order in which they were sent.
        self._subscriptions.append(await nc.listen(subjects.moments(self.sid), self._moment))
        await nc.flush(timeout=2)

    async def _follow(self, position: int) -> None:
        """Deliver every event after `position`, and notice every socket attached after this one."""
        if isinstance(self.core.phase, Closed):
            return
        self._feed = Feed(self._parts.log, self.sid, self._event, visibility="c", after=position)
        await self._feed.start()
        if self._attached_at is None:
            return
        attached_at = await self._attached_at
        self._watch = Feed(self._parts.log, self.sid, self._other, writer="gateway", types=("client.connected",), after=attached_at)
        if not self.closed.done():
            await self._watch.start()

    async def _leave(self) -> None:
        await self._stop_feeds()  # a feed that still catches up has no reader any more
        await self._effects.idle()
        await self._stop_feeds()
        for subscription in self._subscriptions:
            if not self._audio_nc.is_closed:
                await subscription.unsubscribe()
        await self.flushed()
        self._parts.left(self)

    async def _stop_feeds(self) -> None:
        for feed in (self._feed, self._watch):
            if feed is not None:
                await feed.stop()

    def _event(self, recorded: events.Recorded) -> Awaitable[None] | None:
        if isinstance(recorded.event, events.voice.SessionRestored):
            self._lateness = Lateness()  # another worker, maybe with another clock
        self._show_held()  # before the final text
        if not self._catching_up:
            self._take(inputs.EventRead(recorded))
            return None
        self._socket.gather()
        self._take(inputs.EventRead(recorded))
        return self._until_read() if self._socket.congested else None

    async def _until_read(self) -> None:
        """Wait for a client that catches up: it may have missed more than a queue holds."""
        try:
            async with asyncio.timeout(READ_PATIENCE_S):
                await self._socket.drained()
        except TimeoutError:
            self.overflowed()

    def _other(self, _: events.Recorded) -> None:
        self._take(inputs.TakenOver())

    def _moment(self, payload: bytes) -> None:
        try:
            moment = moments.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            _log.warning("session %s: a moment cannot be read: %s", self.sid, error)
            return
        if isinstance(moment, moments.PartialTranscript):
            if self.v1:
                self._show(self._captions.take(moment, self._loop.time()))
            return
        self._show_held()
        self._take(inputs.MomentReceived(moment))

    def _show(self, texts: list[moments.PartialTranscript]) -> None:
        for text in texts:
            self._take(inputs.MomentReceived(text))
        due = self._captions.due()
        if due is not None and not self._showing:
            self._showing.set(due, due - self._loop.time())

    def _show_due(self, due: float) -> None:
        self._show(self._captions.release(due))

    def _show_held(self) -> None:
        if self._showing:
            self._showing.cancel_all()
            self._show(self._captions.release(self._loop.time(), early=True))

    def _audio_out(self, frame: bytes) -> None:
        if len(frame) < frames.PREFIX_SIZE or not self.core.attached:
            return
        sent_ms = int.from_bytes(frame[_TIME_OFFSET : frames.PREFIX_SIZE], "little")
        if self._lateness.late(sent_ms, wall_ms32()) and frame[1] != frames.FLUSH:
            self._metrics.dropped["too_old"] += 1
            if not frame[_FLAGS_OFFSET] & frames.LAST:
                return
            frame = frame[: frames.PREFIX_SIZE]  # the end of the reply must still be told
        if self._manner.sounds(self._socket, frame):
            self._metrics.frames_out += 1

    def _writer_failed(self, error: VoxbridgeError) -> None:
        self._take(inputs.Failed(error))

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1_000


def _heeded(acked: asyncio.Future[int]) -> None:
    # The writer reports its own failure; retrieving the exception keeps asyncio from logging it again.
    if not acked.cancelled():
        acked.exception()
