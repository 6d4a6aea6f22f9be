"""The shell of one voice session: gives the core its inputs and does what it asks for.

Owns the session's subscriptions, running effects, timers and audio routing; decides nothing. Microphone frames
go where the last step routed them, without passing through the core. A crash loses what the journal does not
hold: the inputs of the last 100 ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from services.voice import core, inputs
from services.voice import outputs as out
from services.voice.ears import Ears
from services.voice.models import Models
from services.voice.speaker import Speaker
from services.voice.state import State
from shared import bus, events, frames
from shared.clock import Clock, wall_ms32
from shared.config import Config
from shared.errors import Code, Unavailable, VoxbridgeError
from shared.events.voice import Failure
from shared.feed import Feed
from shared.log import Log
from shared.step import LogInput
from shared.stepper import Stepper
from shared.store import Function
from shared.writer import SessionWriter

ECHO_GENERATION: Final = 1
STALLED_S: Final = 1.0
"""After this long without a frame in the middle of speech, the speech has ended: its client went silent without a word."""

FAILURE_LIMIT: Final = 1_000
"""Characters of what an endpoint said about its failure that are kept."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What all sessions of a process share."""

    config: Config
    clock: Clock
    log: Log
    audio_nc: Client
    models: Models
    vad: Any
    worker: str


class Session:
    """One live session, owned by this process."""

    def __init__(self, place: Workplace, sid: str, term: int, *, ended: Callable[[Session], None]) -> None:
        """`ended` is called once, when the session is over or lost."""
        self.sid = sid
        self.term = term
        self._place = place
        self._ended = ended
        self._over = False
        self._route = "nobody"
        self._ears: Ears | None = None
        self._speaker: Speaker | None = None
        self._echoed = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._effects: dict[int, asyncio.Task[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._feeds: list[Feed] = []
        self._audio: Subscription | None = None
        self._audio_out = bus.audio_out(sid)
        self._stalled: asyncio.TimerHandle | None = None
        self._writer = SessionWriter(place.log, sid, "voice", on_failed=self._lost)
        self._stepper: Stepper[State] = Stepper(core.step, core.initial(sid), writer=self._writer, clock=place.clock, perform=self._perform)

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._stepper.state

    async def open(self, requested: events.Recorded, functions: tuple[Function, ...]) -> None:
        """Begin a session that was requested: subscribe first, then let the core start it. Returns when the log says who owns it.

        Raises `UNAVAILABLE` when a subscription fails, and what stopped the writer when the log refuses this process.
        """
        config = self._place.config
        try:
            self._audio = await bus.subscribe_audio(self._place.audio_nc, bus.audio_in(self.sid), self._microphone)
        except NatsError as error:
            raise Unavailable(f"The bus takes no subscription: {error}.") from error
        self.take(LogInput(requested))
        self.take(
            inputs.Opened(
                worker=self._place.worker,
                term=self.term,
                model=config.llm_model,
                voice="",
                greeting=config.greeting,
                functions=functions,
                providers=("local", "echo"),
                idle_timeout_s=config.idle_timeout_s,
                turn_timeout_s=config.turn_timeout_s,
                speak_results=self._place.models.local,
            )
        )
        for writer, visibility in (("gateway", "i"), ("tools", "c")):
            feed = Feed(self._place.log, self.sid, self._event, writer=writer, visibility=visibility, after=requested.seq)
            self._feeds.append(feed)
            if not self._over:
                await feed.start()
        if self._over:  # the end came in between, when there was less to stop
            await self._unsubscribe()
        await self._writer.flushed()

    def take(self, input: Any) -> None:
        """Give the core an input. Raises `TOO_LARGE` when it cannot be journalled: then it was not taken."""
        if self._over:
            return
        try:
            self._stepper.take(input)
        except VoxbridgeError as error:
            if self._writer.failed is None:
                raise
            self._lost(error)
        if self._ears is not None and self.state.utterance is None:
            self._ears.release()

    async def refuse(self, requested: events.Recorded, error: VoxbridgeError) -> None:
        """End a session that could not be opened, and tell its client why. Returns when the log says so."""
        if self.state.request is None:
            self.take(LogInput(requested))
        failure = Failure(code=error.code, message=error.message[:FAILURE_LIMIT], retryable=error.retryable)
        self.take(inputs.Refused(worker=self._place.worker, term=self.term, error=failure))
        await self._writer.flushed()

    def drain(self) -> None:
        """End because this worker stops. What was not begun is left to another worker, as if it had never been here."""
        if self.state.phase == "new":
            self._finish()
        else:
            self.take(inputs.Drained())

    def give_up(self, error: VoxbridgeError) -> None:
        """Somebody else owns the session: say nothing more."""
        if not self._over:
            self._writer.stop(error)

    async def close(self) -> None:
        """Stop everything this session holds and write the rest of its journal."""
        self._finish()
        await self._unsubscribe()
        await asyncio.gather(*self._effects.values(), *self._sending, return_exceptions=True)
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
        if isinstance(recorded.event, events.gateway.AudioEnded) and self._ears is not None:
            self._ears.close()
        self.take(LogInput(recorded))

    def _lost(self, error: VoxbridgeError) -> None:
        """The log refuses this process, or does not answer: the session is not ours any more."""
        _log.error("session %s is given up: %s", self.sid, error.message)
        self._finish()

    def _finish(self) -> None:
        if self._over:
            return
        self._over = True
        self._route = "nobody"
        if self._stalled is not None:
            self._stalled.cancel()
        for timer in self._timers.values():
            timer.cancel()
        for effect in self._effects.values():
            effect.cancel()
        if self._speaker is not None:
            self._speaker.stop()
        self._ended(self)

    async def _microphone(self, message: Msg) -> None:
        frame = message.data
        if self._route == "echo":
            payload = memoryview(frame)[frames.PREFIX_SIZE :]
            prefix = frames.PREFIX.pack(frames.VERSION, frames.PCM16, frames.RATE_16K, ECHO_GENERATION, self._echoed, wall_ms32())
            self._echoed += 1
            await bus.publish_now(self._place.audio_nc, self._audio_out, prefix + payload)
        elif self._route == "detector":
            if self._ears is None:
                self._ears = Ears(self._place.vad, self.take)
            self._ears.listen(memoryview(frame)[frames.PREFIX_SIZE :])
            if self._ears.speaking and self._stalled is None:
                self._stalled = asyncio.get_running_loop().call_later(STALLED_S, self._microphone_stalled, self._ears, self._ears.end_ms)

    def _microphone_stalled(self, ears: Ears, end_ms: int) -> None:
        self._stalled = None
        if not ears.speaking or self._over:
            return
        if ears.end_ms > end_ms:
            self._stalled = asyncio.get_running_loop().call_later(STALLED_S, self._microphone_stalled, ears, ears.end_ms)
        else:
            ears.close()
            self.take(inputs.VoiceStopped(end_ms, round(STALLED_S * 1_000)))

    def _perform(self, output: Any) -> None:
        if self._over and not isinstance(output, out.Tell):
            return
        match output:
            case out.StartEffect(id=id, effect=effect):
                self._effects[id] = asyncio.create_task(self._run(id, effect))
            case out.CancelEffect(id=id):
                task = self._effects.pop(id, None)
                if task is not None:
                    task.cancel()
            case out.SetTimer(name=name, after_ms=after_ms):
                self._cancel_timer(name)
                self._timers[name] = asyncio.get_running_loop().call_later(after_ms / 1_000, self._fire, name)
            case out.CancelTimer(name=name):
                self._cancel_timer(name)
            case out.Route(microphone=microphone):
                self._route = microphone
            case out.FinishSpeech(generation=generation):
                self._voice().finish(generation)
            case out.Flush(generation=generation):
                self._send(self._voice().flush(generation))
            case out.Tell(moment=moment):
                self._send(bus.publish_moment(self._place.audio_nc, self.sid, moment))
            case out.Close():
                self._finish()

    def _voice(self) -> Speaker:
        if self._speaker is None:
            self._speaker = Speaker(self._publish, lambda generation: self.take(inputs.AudioSent(generation)))
        return self._speaker

    async def _publish(self, frame: bytes) -> None:
        await bus.publish_now(self._place.audio_nc, self._audio_out, frame)

    def _send(self, sending: Awaitable[None]) -> None:
        task = asyncio.ensure_future(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _cancel_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _fire(self, name: str) -> None:
        self._timers.pop(name, None)
        self.take(inputs.TimerFired(name))

    async def _run(self, id: int, effect: out.Effect) -> None:
        try:
            await self._effect(id, effect)
        except VoxbridgeError as error:
            failure = Failure(code=error.code, message=error.message[:FAILURE_LIMIT], retryable=error.retryable)
            self.take(inputs.EffectFailed(effect=id, error=failure))
        except Exception as error:  # noqa: BLE001 - whatever it was, the core must know that the effect is over
            _log.exception("session %s: effect %d failed", self.sid, id)
            failure = Failure(code=Code.INTERNAL, message=f"{type(error).__name__}: {error}"[:FAILURE_LIMIT])
            self.take(inputs.EffectFailed(effect=id, error=failure))
        finally:
            self._effects.pop(id, None)

    async def _effect(self, id: int, effect: out.Effect) -> None:
        models = self._place.models
        match effect:
            case out.Transcribe(from_ms=from_ms, to_ms=to_ms):
                found = await models.transcribe(self._heard(from_ms, to_ms))
                self.take(inputs.Transcribed(effect=id, text=found.text, language=found.language, confidence=found.confidence))
            case out.JudgeTurn(from_ms=from_ms, to_ms=to_ms):
                self.take(inputs.TurnJudged(id, await models.judge_turn(self._heard(from_ms, to_ms))))
            case out.Complete():
                async with aclosing(models.complete(id, effect)) as written:
                    async for input in written:
                        self.take(input)
            case out.Synthesize(generation=generation, text=text, voice=voice):
                await self._synthesize(id, generation, text, voice)

    async def _synthesize(self, id: int, generation: int, text: str, voice: str) -> None:
        made = 0
        speaker = self._voice()
        async with aclosing(self._place.models.synthesize(text, voice)) as spoken:
            async for pcm in spoken:
                await speaker.put(generation, pcm)
                if not made:
                    self.take(inputs.AudioMade(effect=id, ms=len(pcm) * 1_000 // (2 * frames.OUTPUT_RATE), done=False))
                made += len(pcm)
        if not made:
            raise VoxbridgeError(Code.PROVIDER_REFUSED, "The speech model made no sound.", retryable=False)
        self.take(inputs.AudioMade(effect=id, ms=made * 1_000 // (2 * frames.OUTPUT_RATE), done=True))

    def _heard(self, from_ms: int, to_ms: int) -> bytes:
        return self._ears.audio(from_ms, to_ms) if self._ears is not None else b""
