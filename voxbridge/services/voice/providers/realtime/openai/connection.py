"""A session with OpenAI Realtime: what is sent to it, and what it reports as inputs of the voice core.

Owns the translation. `wire` owns the socket, `responses` whose turn it is, `truncation` how much of a response was played. A crash loses
the connection and what the model was about to say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from openai.types.realtime import ConversationItemParam

from voxbridge.services.voice.audio.resample import Upsampler
from voxbridge.services.voice.core.provider_events import (
    AgentAudio,
    AgentText,
    AgentWords,
    CallRequested,
    GenerationDone,
    Interrupted,
    ModelTurnDone,
    ProviderInput,
    UserVoice,
    UserWords,
)
from voxbridge.services.voice.providers.realtime.base import Answer, Listener, Setup
from voxbridge.services.voice.providers.realtime.openai import opening, tool_calls
from voxbridge.services.voice.providers.realtime.openai import payloads as shapes
from voxbridge.services.voice.providers.realtime.openai.responses import Responses
from voxbridge.services.voice.providers.realtime.openai.truncation import BYTES_PER_MS, Spoken
from voxbridge.services.voice.providers.realtime.openai.wire import AudioDelta, Kind, TextDelta, Wire, WordsDelta, named, plain, unreadable

REFUSALS_LIMIT: Final = 3
"""Consecutive calls that cannot be made, after which the model is not asked to go on."""

_SILENT: Final = float("-inf")
_TAIL_S: Final = 0.5
"""Seconds, at most, after which audio that arrived here comes out of the user's loudspeaker."""

_SHORTEST: Final = 100 * BYTES_PER_MS
"""Bytes of audio below which the API does not commit a turn."""

_BEFORE: Final = 400 * BYTES_PER_MS
"""Bytes of audio from before a turn that are sent with it: a detector is sure only after speech began."""

_MARGIN_MS: Final = 200
_CUT_S: Final = 2.0
"""Seconds, at most, after the stop of a response until it is known how much of it was heard."""

_BUSY: Final = "conversation_already_has_active_response"
_log = logging.getLogger(__name__)


class OpenAIConnection:
    """A session with OpenAI Realtime. `resumed` is never true: the vendor has no handles."""

    resumed: bool = False

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._responses = Responses(wire)
        self._upsampler = Upsampler()
        self._manual = False
        self._buffered = 0
        self._before = bytearray()
        self._listener: Listener
        self._spoken = self._stopped = Spoken("")
        self._stopped_at = _SILENT
        self._audible_until = _SILENT
        self._talked_over = False
        self._telling = False
        self._told = ""
        """Id of the last response of which sound, words or a call were reported."""

        self._input_tokens = self._output_tokens = 0
        self._calls = tool_calls.Recent()
        self._transcribed = tool_calls.Recent()
        self._refusals = 0
        self._handlers: dict[str, Callable[[Any], Awaitable[None]]] = {
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.cleared": self._cleared,
            "conversation.item.input_audio_transcription.delta": self._hears,
            "conversation.item.input_audio_transcription.completed": self._heard,
            "conversation.item.input_audio_transcription.failed": self._not_heard,
            "response.created": self._created,
            "response.output_audio.done": self._audio_done,
            "response.output_item.done": self._item_done,
            "response.done": self._done,
            "error": self._error,
        }

    async def set_up(self, setup: Setup) -> None:
        """Send the session and its history, and wait until both are accepted. Raises `ConnectionLost` if any part is refused."""
        self._manual = setup.manual_activity
        await opening.set_up(self._wire, setup)

    async def run(self, listener: Listener) -> None:
        """Report until cancelled. Raises `ConnectionLost` when the connection is over."""
        self._listener = listener
        while True:
            event, message = await self._wire.receive()
            if type(event) is AudioDelta:
                self._audio(event)
            elif isinstance(event, Kind):
                handler = self._handlers.get(event.type)
                if handler is not None:
                    await self._handle(handler, event.type, message)
            elif event.response_id == self._responses.muted:
                continue
            elif isinstance(event, WordsDelta):
                ms = self._spoken.ms if self._spoken.id == event.response_id else 0
                self._told = event.response_id
                listener.take(AgentWords(effect=listener.effect, text=event.delta, ms=ms))
            elif isinstance(event, TextDelta):
                listener.take(AgentText(effect=listener.effect, text=event.delta))

    def send_audio(self, pcm: bytes | memoryview) -> None:
        """Send microphone audio, PCM16 at 16 kHz, converted to the 24 kHz that the vendor requires."""
        heard = self._upsampler.feed(pcm)
        if self._manual and not self._responses.user_speaks:
            self._before += heard
            del self._before[:-_BEFORE]
        else:
            self._append(heard)

    async def say(self, text: str, *, respond: bool = True) -> None:
        """Add a text of the user; with `respond`, stop a response in progress and have the model answer the text."""
        await self._create(shapes.said("user", text))
        if respond:
            self._refusals = 0
            await self._responses.take_turn()

    async def answer(self, answers: Sequence[Answer]) -> None:
        """Send results. The model is asked once to go on, when all calls of the response that made them have a result."""
        for one in answers:
            if not self._responses.waits_for(one.ref):
                _log.warning("OpenAI: a result of %s came for a call that is not open", one.name)
                continue
            await self._create(shapes.result(one.ref, one.result))
            self._responses.answered(one.ref)
        await self._responses.go_on()

    async def activity(self, *, speaking: bool) -> None:
        """Begin a turn of the user with the audio from now on, or end the turn and have it answered; used with `manual_activity`."""
        self._responses.user_speaks = speaking
        if speaking:
            self._talked_over = self._audible()
            self._buffered = 0
            await self._wire.send({"type": "input_audio_buffer.clear"})
            self._append(bytes(self._before))
            self._before.clear()
            await self.interrupt()
            return
        if self._buffered < _SHORTEST:
            self._append(bytes(_SHORTEST - self._buffered))
        self._buffered = self._refusals = 0
        await self._wire.send({"type": "input_audio_buffer.commit"})
        await self._responses.take_turn()

    async def end_audio(self) -> None:
        """Send the silence that the vendor's detector would wait for: the microphone was paused. With `manual_activity`, do nothing."""
        if not self._manual:
            self._append(bytes((shapes.SILENCE_MS + _MARGIN_MS) * BYTES_PER_MS))

    async def cut_short(self, heard_ms: int) -> None:
        """Truncate a response at `heard_ms`: the one that was just stopped, even if the next has begun, or else the last one."""
        now = asyncio.get_running_loop().time()
        spoken = self._stopped if now < self._stopped_at + _CUT_S else self._spoken
        self._stopped_at = _SILENT
        for item, content_index, end in spoken.cut(heard_ms):
            await self._wire.send(
                {"type": "conversation.item.truncate", "item_id": item, "content_index": content_index, "audio_end_ms": end}
            )

    async def interrupt(self) -> None:
        """Stop the response in progress; nothing more of it is played."""
        self._silence()
        await self._responses.stop()

    async def close(self) -> None:
        """Close the socket; returns when it is closed, after 1 s at the latest."""
        await self._wire.close()

    def _append(self, pcm: bytes) -> None:
        if pcm:
            self._buffered += len(pcm)
            self._wire.append(pcm)

    async def _create(self, item: ConversationItemParam) -> None:
        await self._wire.send({"type": "conversation.item.create", "item": item})

    async def _handle(self, handler: Callable[[Any], Awaitable[None]], kind: str, message: bytes) -> None:
        try:
            await handler(self._wire.parse(message))
        except (AttributeError, TypeError, ValueError) as error:
            if self._telling:
                raise  # an error of the listener itself
            _log.warning("OpenAI: an event %s could not be read: %s", plain(kind), type(error).__name__)
            raise unreadable() from error

    def _audio(self, event: AudioDelta) -> None:
        listener, spoken = self._listener, self._spoken
        muted = event.response_id == self._responses.muted
        if spoken.id != event.response_id:
            if muted:
                return
            spoken = self._spoken = Spoken(event.response_id)
        spoken.count(event.item_id, event.content_index, len(event.delta))
        pcm = b"" if muted else spoken.play(event.delta)
        if not pcm:
            return
        now = asyncio.get_running_loop().time()
        self._audible_until = max(now, self._audible_until) + len(pcm) / (BYTES_PER_MS * 1_000)
        if spoken.due():
            self._report(spoken)
        listener.play(pcm)

    def _take(self, input: ProviderInput) -> None:
        try:
            msgspec.convert(msgspec.structs.asdict(input), type(input))
        except msgspec.ValidationError as error:
            raise unreadable() from error  # the SDK validates nothing; a journal with this input could not be read again
        self._telling = True
        self._listener.take(input)
        self._telling = False

    def _report(self, spoken: Spoken) -> None:
        self._told = spoken.id
        listener = self._listener
        self._take(AgentAudio(effect=listener.effect, ms=spoken.ms, quiet=spoken.quiet, audio_ms=listener.audio_ms))

    def _report_last(self, response: str) -> None:
        spoken = self._spoken
        if spoken.id == response != self._responses.muted and spoken.ms and spoken.due(last=True):
            self._report(spoken)

    def _audible(self) -> bool:
        """Tell whether a response is in progress, or may still be heard."""
        return self._responses.busy or asyncio.get_running_loop().time() < self._audible_until + _TAIL_S

    def _silence(self) -> None:
        self._audible_until = _SILENT
        self._stopped, self._stopped_at = self._spoken, asyncio.get_running_loop().time()

    def _interrupted(self) -> None:
        self._take(Interrupted(effect=self._listener.effect, audio_ms=self._listener.audio_ms))

    def _user_voice(self, *, speaking: bool) -> None:
        self._responses.user_speaks = speaking
        self._take(UserVoice(effect=self._listener.effect, speaking=speaking, audio_ms=self._listener.audio_ms))

    def _user_words(self, item: str, text: str, *, whole: bool) -> None:
        listener = self._listener
        self._take(UserWords(effect=listener.effect, text=text, item=item, whole=whole, audio_ms=listener.audio_ms))

    async def _speech_started(self, _event: Any) -> None:
        self._refusals = 0
        talked_over = self._audible()
        self._user_voice(speaking=True)
        if talked_over:
            self._silence()
            self._responses.mute()
            self._interrupted()

    async def _speech_stopped(self, _event: Any) -> None:
        self._user_voice(speaking=False)

    async def _cleared(self, _event: Any) -> None:
        """Report the interruption by `activity`, which this event answers: here it has its right place among the model's reports."""
        if self._talked_over:
            self._talked_over = False
            self._interrupted()

    async def _hears(self, event: Any) -> None:
        if event.delta:
            self._user_words(event.item_id, event.delta, whole=False)

    async def _heard(self, event: Any) -> None:
        # One item may be reported as complete twice; the same words in another item were really said twice.
        if self._transcribed.add(event.item_id):
            self._user_words(event.item_id, event.transcript, whole=True)

    async def _not_heard(self, event: Any) -> None:
        if self._transcribed.add(event.item_id):
            _log.warning("OpenAI: what the user said could not be transcribed")
            self._user_words(event.item_id, "", whole=True)

    async def _created(self, event: Any) -> None:
        await self._responses.begun(event.response.id)

    async def _audio_done(self, event: Any) -> None:
        self._report_last(event.response_id)

    async def _item_done(self, event: Any) -> None:
        await self._call(event.item, event.response_id)

    async def _done(self, event: Any) -> None:
        response = event.response
        for item in response.output or ():
            await self._call(item, response.id)
        self._report_last(response.id)
        spoken = self._spoken if self._spoken.id == response.id else Spoken(response.id)
        if response.usage:
            self._input_tokens += response.usage.input_tokens or 0
            self._output_tokens += response.usage.output_tokens or 0
        # A response that was stopped before any output, or from which the model is to go on, is not a turn: the core still waits for one.
        if self._told == response.id or not (response.status == "cancelled" or self._responses.goes_on(response.id)):
            self._turn_done(response, spoken)
        await self._responses.ended(response.id)

    def _turn_done(self, response: Any, spoken: Spoken) -> None:
        effect, reason = self._listener.effect, ""
        if response.status not in (None, "completed"):
            details = response.status_details
            error = getattr(details, "error", None)
            reason = plain(getattr(details, "reason", None) or getattr(error, "code", None) or response.status)
        if response.status != "cancelled":
            self._take(GenerationDone(effect=effect, ms=spoken.ms))
        read, made = self._input_tokens, self._output_tokens
        self._input_tokens = self._output_tokens = 0
        self._take(ModelTurnDone(effect=effect, reason=reason, ms=spoken.ms, quiet=spoken.quiet, input_tokens=read, output_tokens=made))

    async def _call(self, item: Any, response: str) -> None:
        """Take a complete call. A call that an interruption cut off arrives too, as `incomplete`, and is not made."""
        if item.type != "function_call" or item.status not in (None, "completed") or not self._calls.add(item.call_id):
            return
        problem, arguments = tool_calls.read(item.arguments, open_calls=self._responses.calls)
        if problem:
            _log.warning("OpenAI: a call of %s was refused: %s", plain(item.name), problem)
            self._refusals += 1
            await self._create(shapes.result(item.call_id, {"success": False, "error": problem}))
            if self._refusals <= REFUSALS_LIMIT:
                self._responses.owe(response)
            return
        self._refusals = 0
        self._responses.called(item.call_id, response)
        self._told = response
        listener = self._listener
        self._take(CallRequested(effect=listener.effect, ref=item.call_id, name=item.name, arguments=arguments))

    async def _error(self, event: Any) -> None:
        kind, code, param = named(event)
        over = shapes.fatal(kind, code)
        if over is not None:
            raise over
        _log.warning("OpenAI refused an event, or failed at one: %s, %s, %s", kind, code, param)
        self._responses.refused(event.error.event_id or "", because_busy=code == _BUSY)
