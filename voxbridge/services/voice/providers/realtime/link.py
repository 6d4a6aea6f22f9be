"""The link of a session to its realtime model: a connection is opened, fed with the microphone, listened to, closed.

Owns the life of the socket and the order of sending: waiting messages go before audio, and audio
goes in the order it was heard. Decides nothing (the core does) and knows no provider (`base`). A crash loses the connection; the bus
keeps the audio.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.providers.realtime import base
from voxbridge.services.voice.providers.realtime.base import Connection, ConnectionLost, Setup
from voxbridge.services.voice.providers.realtime.handles import Handles, Kept, reference
from voxbridge.services.voice.providers.realtime.kept import Activity, KeptMicrophone, Saying
from voxbridge.services.voice.providers.realtime.registry import Vendors
from voxbridge.shared.audio.frames import OUTPUT_RATE, PREFIX_SIZE
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.voice import Failure

CONNECT_S: Final = 10.0
CLOSE_S: Final = 1.0
WAITING_LIMIT: Final = 128
"""Number of messages that may wait to be sent; a connection that lets more pile up is dead."""

REPORT_MS: Final = 1_000
QUIET: Final = 64
"""Peak, of 32,768, below which the sampled audio of a response is silent to the ear."""

FAILURE_LIMIT: Final = 1_000
_OUT_BYTES_PER_MS: Final = OUTPUT_RATE * 2 // 1_000
_log = logging.getLogger(__name__)


class LinkOwner(Protocol):
    """The session that the link serves."""

    sid: str

    def take(self, input: Any) -> None:
        """Give the core an input."""

    def play(self, generation: int, pcm: bytes) -> None:
        """Play this audio to the client."""

    def position(self) -> int:
        """Return the newest position of the session's log."""

    def asking(self) -> bool:
        """Tell whether the user says, or said, something that is not answered yet."""

    def now_us(self) -> int:
        """Return the time, µs."""

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background."""


class Heard:
    """The `Listener` of one connection. Once another one is opened, its reports are ignored."""

    def __init__(self, link: ProviderLink, effect: int) -> None:
        self.effect = effect
        self._link = link

    @property
    def audio_ms(self) -> int:
        """Milliseconds of microphone audio heard so far."""
        return self._link.audio_ms

    def take(self, input: provider_events.ProviderInput) -> None:
        """Take an input that reports what the model says."""
        if self.effect == self._link.effect:
            self._link.take(input)

    def play(self, pcm: bytes) -> None:
        """Play audio of the model's response."""
        if self.effect == self._link.effect:
            self._link.play(pcm)

    def keep_handle(self, handle: str) -> str:
        """Keep a resumption handle; return its reference."""
        return self._link.keep_handle(handle) if self.effect == self._link.effect else reference(handle)


class ProviderLink:
    """Holder of a session's connection, one at a time."""

    def __init__(self, owner: LinkOwner, models: Vendors, handles: Handles) -> None:
        self.effect = 0
        self._owner = owner
        self._models = models
        self._handles = handles
        self._connection: Connection | None = None
        self._running: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        """Tasks that close earlier connections."""

        self._kept = KeptMicrophone()
        self._asked: out.Connect | None = None
        self._waiting: asyncio.Queue[Saying] = asyncio.Queue(WAITING_LIMIT)
        self._generation = 0
        self._made = 0
        self._reported = 0
        self._loud = False

    @property
    def audio_ms(self) -> int:
        """Milliseconds of microphone audio heard so far."""
        return self._kept.ms

    def open(self, effect: int, asked: out.Connect) -> None:
        """Open a connection in place of the current one."""
        self.close(self.effect)
        self.effect, self._asked = effect, asked
        self._waiting = asyncio.Queue(WAITING_LIMIT)
        self._kept.begin_connection()
        self._generation = self._made = self._reported = 0
        self._loud = False
        self._running = asyncio.create_task(self._serve(effect, asked))

    def close(self, effect: int) -> None:
        """Close this connection, if it is the current one."""
        if effect != self.effect:
            return
        self.effect = 0
        running, self._running = self._running, None
        connection, self._connection = self._connection, None
        if running is not None or connection is not None:
            closing = asyncio.create_task(_closed(running, connection))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._owner.background(_over(closing))

    async def _until_closed(self) -> None:
        """Return when no earlier connection is open, or after `CLOSE_S`: providers refuse to resume a conversation that is still open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self._closing:
                    await asyncio.wait(self._closing)

    def restore(self, start: int, frames: Iterable[bytes]) -> int:
        """Keep frames from the sample `start` on that no worker, or only a dead one, heard. Return the sample at which they end."""
        return self._kept.restore(start, frames)

    def hear(self, frame: bytes, samples: int) -> None:
        """Send and keep a microphone frame, which ends at this sample of the session."""
        kept, connection = self._kept, self._connection
        kept.add(frame, samples)
        if kept.long:
            kept.shorten(resting=connection is not None and not self._owner.asking())
        if connection is not None:
            try:
                connection.send_audio(memoryview(frame)[PREFIX_SIZE:])
            except ConnectionLost:
                self._connection = None  # `run` reports it

    def do(self, output: Any) -> None:
        """Perform an output of the core for the connection `output.effect`."""
        if output.effect != self.effect:
            return
        match output:
            case out.Play(generation=generation):
                if generation != self._generation:
                    self._generation, self._made, self._reported = generation, 0, 0
            case out.Say(text=text, respond=respond):
                self._later(lambda connection: connection.say(text, respond=respond))
            case out.Answer(ref=ref, name=name, result=result):
                answers = (base.Answer(ref=ref, name=name, result=result),)
                self._later(lambda connection: connection.answer(answers))
            case out.Interrupt():
                self._later(lambda connection: connection.interrupt())
            case out.CutShort(heard_ms=heard_ms):
                self._later(lambda connection: connection.cut_short(heard_ms))
            case out.Activity(speaking=speaking):
                self._mark(Activity(speaking))
            case out.EndAudio():
                self._mark(lambda connection: connection.end_audio())

    def take(self, input: provider_events.ProviderInput) -> None:
        """Pass a report of the model to the core, with the durations of audio that are counted here."""
        if isinstance(input, provider_events.AgentAudio):
            return  # reported by `play`, which has its own count
        if isinstance(input, provider_events.GenerationDone | provider_events.ModelTurnDone):
            ms = self._made // _OUT_BYTES_PER_MS
            if isinstance(input, provider_events.GenerationDone):
                input = provider_events.GenerationDone(effect=self.effect, ms=ms)
            else:
                input = provider_events.ModelTurnDone(
                    effect=self.effect,
                    reason=input.reason,
                    waiting=input.waiting,
                    ms=ms,
                    quiet=not self._loud and ms > 0,
                    input_tokens=input.input_tokens,
                    output_tokens=input.output_tokens,
                )
                self._owner.take(input)
                self._made = self._reported = 0
                self._loud = False
                return
        elif isinstance(input, provider_events.AgentWords):
            input = provider_events.AgentWords(effect=self.effect, text=input.text, ms=self._made // _OUT_BYTES_PER_MS, piece_ms=0)
        elif isinstance(input, provider_events.Interrupted):
            self._made = self._reported = 0
        self._owner.take(input)

    def play(self, pcm: bytes) -> None:
        """Play audio of the model's response, and report it to the core."""
        if not self._made or self._made - self._reported >= REPORT_MS * _OUT_BYTES_PER_MS:
            self._reported = self._made
            ms, effect = (self._made + len(pcm)) // _OUT_BYTES_PER_MS, self.effect
            piece_ms = max(1, len(pcm) // _OUT_BYTES_PER_MS)
            self._owner.take(provider_events.AgentAudio(effect=effect, ms=max(1, ms), audio_ms=self.audio_ms, piece_ms=piece_ms))
            if effect != self.effect:
                return  # the report moved the call to another connection, to which this audio does not belong
        self._made += len(pcm)
        if not self._loud:
            self._loud = _is_loud(pcm)
        if self._generation:
            self._owner.play(self._generation, pcm)

    def keep_handle(self, handle: str) -> str:
        """Keep a resumption handle; return its reference."""
        asked, owner = self._asked, self._owner
        ref = reference(handle)
        if asked is not None:
            kept = Kept(
                ref=ref,
                handle=handle,
                provider=asked.provider,
                model=asked.model,
                config=reference(f"{asked.instructions}|{asked.voice}|{[function.name for function in asked.functions]}"),
                position=owner.position(),
                at=owner.now_us(),
            )
            self._handles.hold(owner.sid, kept)
            owner.background(self._handles.save(owner.sid))
        return ref

    def _later(self, send: Saying) -> None:
        try:
            self._waiting.put_nowait(send)
        except asyncio.QueueFull:
            self._lost(self.effect, ConnectionLost(f"The connection took nothing of {WAITING_LIMIT} things to be sent."))

    def _mark(self, saying: Saying) -> None:
        self._kept.mark(saying)
        if self._connection is not None:
            self._later(saying)

    async def _serve(self, effect: int, asked: out.Connect) -> None:
        connection: Connection | None = None
        try:
            if asked.delay_ms:
                await asyncio.sleep(asked.delay_ms / 1_000)
            connection = await self._connect(asked)
            if effect != self.effect:
                return
            self._owner.take(provider_events.ProviderReady(effect=effect, resumed=connection.resumed, audio_ms=self.audio_ms))
            if effect != self.effect:
                return
            await self._converse(effect, asked, connection)
        except ConnectionLost as error:
            self._lost(effect, error)
        except VoxbridgeError as error:
            self._lost(effect, ConnectionLost(error.message, retryable=error.retryable))
        except Exception as error:  # noqa: BLE001 - whatever the error, the core must know that the connection is over
            _log.exception("session %s: its connection to the model failed", self._owner.sid)
            self._lost(effect, ConnectionLost(f"The connection failed: {type(error).__name__}."))
        finally:
            if connection is not None and self._connection is not connection:
                await _shut(connection)

    async def _connect(self, asked: out.Connect) -> Connection:
        model = await self._models.get(asked.provider)
        if model is None:
            raise ConnectionLost(f"No provider {asked.provider!r} is known here.", close_code=0, retryable=False)
        handle = ""
        if asked.handle:
            kept = await self._handles.find(self._owner.sid, asked.handle)
            if kept is None:
                raise ConnectionLost("The resumption handle is gone.", close_code=0, handle_refused=True)
            handle = kept.handle
        setup = Setup(
            model=asked.model,
            voice=asked.voice,
            language=asked.language,
            instructions=asked.instructions,
            functions=asked.functions,
            history=asked.history,
            handle=handle,
            closed=self._until_closed,
            manual_activity=asked.manual_activity,
            search=asked.search,
        )
        try:
            async with asyncio.timeout(CONNECT_S):
                return await model.connect(setup)
        except TimeoutError:
            raise ConnectionLost(f"The connection was not there within {CONNECT_S:.0f} s.") from None

    async def _converse(self, effect: int, asked: out.Connect, connection: Connection) -> None:
        await self._say_what_waits(connection)  # before anything else that became due with the connection: the caller waits for this
        listening = asyncio.create_task(connection.run(Heard(self, effect)))
        sending = asyncio.create_task(self._send(asked, connection))
        try:
            done, _ = await asyncio.wait({listening, sending}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            listening.cancel()
            sending.cancel()
            await asyncio.wait({listening, sending})
            if self._connection is connection:
                self._connection = None
        if effect == self.effect:
            raise ConnectionLost("The connection is over.")

    async def _send(self, asked: out.Connect, connection: Connection) -> None:
        await self._say_what_waits(connection)
        kept = self._kept
        sent = kept.before(asked.audio_from_ms)
        if asked.speaking:
            await connection.activity(speaking=True)
        # More frames arrive while the kept ones are sent: live audio begins when none are left.
        while late := kept.after(sent):
            for number, what in late:
                sent = number
                if isinstance(what, bytes):
                    connection.send_audio(memoryview(what)[PREFIX_SIZE:])
                else:
                    await what(connection)
        self._connection = connection
        while True:
            await (await self._waiting.get())(connection)

    async def _say_what_waits(self, connection: Connection) -> None:
        waiting = self._waiting
        while not waiting.empty():
            await waiting.get_nowait()(connection)

    def _lost(self, effect: int, error: ConnectionLost) -> None:
        if effect == self.effect:
            self._connection = None
            failure = Failure(code=error.code, message=error.message[:FAILURE_LIMIT], retryable=error.retryable)
            self._owner.take(
                provider_events.ProviderLost(
                    effect=effect, code=error.close_code, error=failure, handle_refused=error.handle_refused, audio_ms=self.audio_ms
                )
            )


async def _over(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task})


async def _shut(connection: Connection) -> None:
    """Close a connection, even if this task is cancelled meanwhile because the next one is asked for."""
    closing = asyncio.create_task(connection.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait({closing}, timeout=CLOSE_S)
        raise


async def _closed(running: asyncio.Task[None] | None, connection: Connection | None) -> None:
    if connection is not None:
        await connection.close()
    if running is not None and not running.done():
        running.cancel()
        await asyncio.wait({running}, timeout=CLOSE_S)


def _is_loud(pcm: bytes) -> bool:
    samples = memoryview(pcm[: len(pcm) & ~1]).cast("h")[::8].tolist()
    return bool(samples) and (max(samples) >= QUIET or min(samples) <= -QUIET)
