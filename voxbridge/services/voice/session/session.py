"""The shell of one voice session: gives the core its inputs and performs its outputs.

Owns the session's subscriptions, running effects, timers and audio routing; decides nothing. Microphone frames go where the last step
routed them, without passing through the core. A crash loses the inputs that the journal does not hold, those of the last 100 ms; another
worker continues with the rest (`restore`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Literal

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from voxbridge.services.voice.audio import catch_up
from voxbridge.services.voice.audio.inbound import Inbound
from voxbridge.services.voice.audio.microphone import Microphone
from voxbridge.services.voice.audio.speaker import Speaker
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.outstanding import between_turns
from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.providers.realtime.link import ProviderLink
from voxbridge.services.voice.session import bounds
from voxbridge.services.voice.session import failure as session_failure
from voxbridge.services.voice.session.feeds import followed
from voxbridge.services.voice.session.model_effects import ModelEffects
from voxbridge.services.voice.session.names import Names
from voxbridge.services.voice.session.outbound import Outbound
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.services.voice.session.worker import Offer, Workplace
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.bus.partials import Pieces
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.errors import Unavailable, VoxbridgeError
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.writer import End, Policy, SessionWriter
from voxbridge.shared.step.effects import Tasks, Timers
from voxbridge.shared.step.fold import Folded
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.runner import StepRunner

ECHO_GENERATION: Final = 1
MID_TURN_S: Final = 1.8
"""Seconds that a session to be released may take to finish its turn."""

_log = logging.getLogger(__name__)


class Session:
    """A live session that this process owns."""

    def __init__(self, place: Workplace, sid: str, term: int, *, ended: Callable[[Session], None], prior: PriorState | None = None) -> None:
        """Create the session. `ended` is called once, when it is over, lost or given up. `past` is the state that another worker left."""
        self.sid = sid
        self.term = term
        self._place = place
        self._ended = ended
        self._over = self._buried = False
        self._route = "nobody"
        self._ears = Microphone(
            place.vad,
            self.take,
            lambda: place.audio_nc.is_connected and not self.inbound.holds,
            pauses=place.models.hears_here,
        )
        self._speaker: Speaker | None = None
        self._sequence = 0
        self._timers = Timers[str](self._fire)
        self._timers.hold()  # until the input of a gap between workers was taken
        self._effects = Tasks[int](f"session {sid}")
        self._names = Names(place.log.nc, lambda: self.state, self.take, self._effects.background)
        self._models = ModelEffects(place, sid, self._ears, self._voice, self.take)
        self._feeds: list[Feed] = []
        self._audio: Subscription | None = None
        self._link: ProviderLink | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._why: Literal["drain", "move"] = "drain"
        self.inbound = Inbound(place.log, sid, self._microphone)
        self._going_on = asyncio.Event()
        """Set once the log names this process as the owner, and the input of a gap between workers was taken."""
        self._partials = Pieces()
        self._outbound = Outbound(place.audio_nc, subjects.audio_out(sid), place.stall_guard, self._going_on)
        folded = prior.folded if prior is not None else Folded(step.initial(sid), 0, 0, 0)
        self._writer = SessionWriter(
            place.log,
            sid,
            "voice",
            end=End(folded.number, folded.last_seq),
            policy=Policy(on_failed=self._lost, hold=place.stall_guard.hold),
        )
        self._stepper: StepRunner[State, inputs.Input, out.Output] = StepRunner(
            step.step, folded.state, writer=self._writer, clock=place.clock, perform=self._perform, taken=folded.taken
        )

    @property
    def state(self) -> State:
        """Current state of the session."""
        return self._stepper.state

    @property
    def has_ended(self) -> bool:
        """True if no worker is to continue the session."""
        return self.state.phase == "ended" or self._buried

    def check_bounds(self, now_us: int) -> None:
        """End the session if it has reached a limit of the installation."""
        met = bounds.reached(self.state, self._place.config, written=self._writer.number, now_us=now_us)
        if met is not None:
            self.take(met)

    async def open(self, requested: events.Recorded, offer: Offer) -> None:
        """Begin a requested session: subscribe first, then let the core start it. Returns when the log names the owner.

        Raises `UNAVAILABLE` when a subscription fails, and the error that stopped the writer when the log refuses this process.
        """
        try:
            self._audio = await self._place.audio_nc.listen(subjects.audio_in(self.sid), self.inbound.take)
        except NatsError as error:
            raise Unavailable(f"The bus takes no subscription: {error}.") from error
        self.take(LogInput(requested))
        self.take(offer.opened(self._place, self.term))
        self._go_on()
        await self._follow({"gateway": requested.seq, "tools": requested.seq})
        await self._writer.flushed()

    async def restore(self, prior: PriorState, gap_ms: int) -> None:
        """Continue a session whose worker is gone: own it, restart what died with the worker, hear what was said meanwhile. Returns
        when the session runs again.

        Raises `UNAVAILABLE` when the bus does not answer, and `Conflict` when the log has changed since it was read and must be read
        again.
        """
        place, state = self._place, self.state
        self.inbound.take_over()
        try:
            self._audio = await place.audio_nc.listen(subjects.audio_in(self.sid), self.inbound.take)
            await place.audio_nc.flush()  # later frames are heard live, earlier ones are kept by the bus
        except (NatsError, OSError) as error:
            raise Unavailable(f"The bus takes no subscription: {error}.") from error
        kept = await catch_up.read(place.log, self.sid)
        placed = catch_up.place(kept.microphone, state.client.microphone)
        self._sequence = prior.next_sequence(kept)
        for due in prior.folded.missing:
            self._writer.submit(due.event, ts=due.ts, cause=due.cause)
        now = place.clock.now_us()
        for name, at in prior.outstanding.timers.items():
            self._timers.set(name, (at - now) / 1_000_000)
        if state.realtime is not None:
            self._ears.skip_to(self._linked().restore(placed.start, (*placed.heard, *placed.unheard)))
        self.take(
            inputs.TakenOver(
                worker=place.worker,
                term=self.term,
                gap_ms=gap_ms,
                generation=state.counters.generation,
                left_ms=prior.left_ms(kept, place.clock.now_us()),
                audio_from_ms=placed.start_ms if kept.microphone else None,
                audio_to_ms=placed.end_ms if kept.microphone else None,
                lost_ms=placed.lost_ms,
            )
        )
        if self._route == "detector":  # at once: an effect that was just restarted may transcribe this audio
            self._ears.recall(self.state, placed)
        await self._writer.flushed()
        newer = self.inbound.go_on(kept.microphone)
        if self._route == "detector":
            self._ears.catch_up((*placed.unheard, *newer))
        elif self._route == "provider":
            for frame in newer:
                self._linked().hear(frame, self._ears.pass_by(frame))
        if self.inbound.holds and place.audio_nc.is_connected:  # the bus was cut and is back; if still cut, its return does this
            await self.inbound.catch_up()
        await self._follow(prior.outstanding.taken)
        self._go_on()

    async def _follow(self, after: Mapping[str, int]) -> None:
        self.inbound.reach(after.get("gateway", 0))
        for feed in followed(self._place.log, self.sid, self.state.request, self._event, self.take, after):
            self._feeds.append(feed)
            if not self._over:
                await feed.start()
        if self._over:  # the session ended in between, when there was less to stop
            await self._unsubscribe()

    def _go_on(self) -> None:
        self._going_on.set()
        self._timers.release()

    def take(self, input: inputs.Input | LogInput) -> None:
        """Give the core an input. Raises `TOO_LARGE` when it cannot be journalled; the input was then not taken."""
        if self._over:
            return
        try:
            self._stepper.take(input)
        except VoxbridgeError as error:
            if self._writer.failed is None:
                raise
            self._lost(error)
        except Exception as error:  # noqa: BLE001 - the failure of one session must not end the others
            _log.exception("session %s: its core failed", self.sid)
            self._break(error)
        if (utterance := self.state.utterance) is None:
            self._ears.release()
            self._models.speech_over()
        elif isinstance(input, inputs.VoiceStarted):
            self._models.speech_began(self.state.team, listening.start_ms(utterance))
            self._names.look()
        if self._leaving is not None and between_turns(self.state):
            self._release()

    def _break(self, error: Exception) -> None:
        """End this session, and no other, after an unexpected error: any worker that took it over would hit the same error."""
        failure = session_failure.failure(error)
        try:
            if self.state.phase == "new":
                self._stepper.take(inputs.Refused(worker=self._place.worker, term=self.term, error=failure))
            else:
                self._stepper.take(inputs.Broken(failure))
        except Exception:  # noqa: BLE001 - the state may be wrong in any way
            _log.exception("session %s cannot even be ended and is buried", self.sid)
            session_failure.bury(self._writer, failure, self._place.clock.now_us())
            self._buried = True
        self._finish()

    async def refuse(self, requested: events.Recorded, error: VoxbridgeError) -> None:
        """End a session that could not be opened, and tell its client why. Returns when the log holds the end."""
        if self.state.request is None:
            self.take(LogInput(requested))
        self.take(inputs.Refused(worker=self._place.worker, term=self.term, error=session_failure.of(error)))
        await self._writer.flushed()

    def drain(self, why: Literal["drain", "move"] = "drain", *, after_s: float = 0.0) -> None:
        """Release the session because this worker stops, or another one is to have it: between two turns, or after `MID_TURN_S`.
        A session that has not begun is left to another worker as if it had never been here. `after_s` delays the release, so that
        sessions released together leave one after another."""
        if self._leaving is None:
            self._why = why
        if self.state.phase == "new":
            self._finish()
        elif between_turns(self.state) and not after_s:
            self._release()
        elif self._leaving is None:
            wait_s = after_s if between_turns(self.state) else MID_TURN_S + after_s
            self._leaving = asyncio.get_running_loop().call_later(wait_s, self._release)

    def _release(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self.take(inputs.Released(self._place.worker, self.term, self._why))

    def give_up(self, error: VoxbridgeError) -> None:
        """Stop the session at once and write nothing more: another worker owns it."""
        if not self._over:
            self._writer.stop(error)

    async def close(self) -> None:
        """Stop everything this session holds and write the rest of its journal."""
        self._finish()
        await self._unsubscribe()
        if not self._outbound.ready():
            self._effects.cancel_background()  # after a failed takeover, or without the bus, it may wait for ever
        await self._effects.idle()
        await self._effects.background_idle()
        await self._models.closed()
        try:
            await self._stepper.close()
        except VoxbridgeError as error:
            _log.warning("session %s: the end of its journal was not written: %s", self.sid, error.message)

    async def _unsubscribe(self) -> None:
        try:
            for feed in self._feeds:
                await feed.stop()
            if self._audio is not None and not self._place.audio_nc.is_closed:
                audio, self._audio = self._audio, None
                await audio.unsubscribe()
        except (NatsError, OSError) as error:
            _log.warning("session %s: a subscription was left behind: %s", self.sid, error)

    def _event(self, recorded: events.Recorded) -> None:
        if isinstance(recorded.event, events.gateway.AudioEnded):
            self._ears.close()
        elif isinstance(recorded.event, events.gateway.ClientConnected):
            self._partials.forget()
        self.take(LogInput(recorded))
        if recorded.writer == "gateway":
            self.inbound.reach(recorded.seq)
        elif isinstance(recorded.event, events.tools.ToolCompleted | events.tools.TaskCompleted):
            self._names.look()

    def _lost(self, error: VoxbridgeError) -> None:
        """Give up the session: the log refuses this process, or does not answer, so this process does not own it any more."""
        _log.error("session %s is given up: %s", self.sid, error.message)
        self._finish()

    def _finish(self) -> None:
        if self._over:
            return
        self._over = True
        self._route = "nobody"
        self._ears.stop()
        if self._leaving is not None:
            self._leaving.cancel()
        self._timers.cancel_all()
        self._effects.cancel_all()
        self._models.stop()
        if self._link is not None:
            self._link.close(self._link.effect)
        if self._speaker is not None:
            self._speaker.stop()
        self._ended(self)

    def _microphone(self, frame: bytes) -> None:
        if self._route == "echo":
            payload = memoryview(frame)[frames.PREFIX_SIZE :]
            prefix = frames.PREFIX.pack(frames.VERSION, frames.PCM16, frames.RATE_16K, ECHO_GENERATION, self._sequence, wall_ms32())
            self._sequence += 1
            if self._place.stall_guard.steady():
                self._outbound.publish(prefix + payload)
        elif self._route == "detector":
            self._ears.hear(frame)
            self._models.heard()
        elif self._route == "provider":
            listen = self._ears.hear if self.state.team.agent.manual_activity else self._ears.pass_by
            self._linked().hear(frame, listen(frame))

    def _perform(self, output: out.Output) -> None:
        if self._over and not isinstance(output, out.Tell):
            return
        match output:
            case out.StartEffect(id=id, effect=out.Connect() as asked):
                self._linked().open(id, asked)
            case out.StartEffect(id=id, effect=effect):
                self._effects.start(id, self._models.run(id, effect))
            case out.CancelEffect(id=id):
                self._effects.cancel(id)
                if self._link is not None:
                    self._link.close(id)
            case out.Play() | out.Say() | out.Answer() | out.Interrupt() | out.CutShort() | out.Activity() | out.EndAudio():
                self._linked().do(output)
            case out.SetTimer(name=name, after_ms=after_ms):
                self._timers.set(name, after_ms / 1_000)
            case out.CancelTimer(name=name):
                self._timers.cancel(name)
            case out.Route(microphone=microphone):
                self._route = microphone
            case out.FinishSpeech(generation=generation):
                self._voice().finish(generation)
            case out.Flush(generation=generation):
                self._effects.background(self._voice().flush(generation))
            case out.FindCause(effect=effect, provider=provider):
                self._effects.background(self._models.find_cause(effect, provider))
            case out.Tell(moment=moment):
                self._tell_now(moment)
            case out.ReadAhead() if self._place.models.local:
                self._effects.background(self._models.read_ahead(output))
            case out.Close():
                self._finish()

    def _voice(self) -> Speaker:
        if self._speaker is None:
            self._speaker = Speaker(self._outbound, self._sent, sequence=self._sequence)
        return self._speaker

    def _linked(self) -> ProviderLink:
        if self._link is None:
            place = self._place
            if place.handles is None or place.vendors is None:
                raise RuntimeError("this workplace has no realtime models")
            self._link = ProviderLink(self, place.vendors, place.handles)
        return self._link

    def play(self, generation: int, pcm: bytes) -> None:
        """Play audio of a realtime model to the client."""
        if not self._voice().put_now(generation, pcm):
            _log.warning("session %s: the model is more than five minutes ahead; what it says is dropped", self.sid)

    def position(self) -> int:
        """Return the position of the newest event of this service in the log."""
        return self._writer.last_seq

    def asking(self) -> bool:
        """Tell whether the user says, or said, something that the model has not answered yet."""
        realtime = self.state.realtime
        return realtime is not None and (realtime.owed.asking or realtime.hearing.active)

    def now_us(self) -> int:
        """Return the time, µs."""
        return self._place.clock.now_us()

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that ends with the session at the latest."""
        self._effects.background(work)

    def _sent(self, generation: int, sequence: int) -> None:
        self.take(inputs.AudioSent(generation, sequence))

    async def _tell(self, moment: moments.Moment) -> None:
        await self._place.stall_guard.hold()
        if isinstance(moment, moments.PartialTranscript):
            moment = self._partials.cut(moment)
        await subjects.publish_moment(self._place.audio_nc, self.sid, moment)

    def _tell_now(self, moment: moments.Moment) -> None:
        if not (isinstance(moment, moments.ReplyWritten) and self._outbound.told(subjects.moments(self.sid), moment)):
            self._effects.background(self._tell(moment))

    def _fire(self, name: str) -> None:
        self.take(inputs.TimerFired(name))
