"""Effects of a session on models: transcription, the end of a turn, completion, synthesis. Each ends with an input for the core.

Owns nothing of the session: audio comes from its microphone, sound goes to its speaker. A failure of a model becomes `EffectFailed`; a
crash loses the effect, which a successor starts again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from voxbridge.services.voice.audio.microphone import Microphone
from voxbridge.services.voice.audio.speaker import Speaker
from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import Team
from voxbridge.services.voice.providers.cascade.models import Transcript
from voxbridge.services.voice.providers.streaming.assemblyai import Recogniser
from voxbridge.services.voice.session import failure as session_failure
from voxbridge.services.voice.session.streamed_speech import Listener, StreamedSpeech
from voxbridge.services.voice.session.worker import Workplace
from voxbridge.services.voice.speakable.loader import speakable
from voxbridge.shared.audio import frames
from voxbridge.shared.errors import Code, VoxbridgeError

_log = logging.getLogger(__name__)


class ModelEffects:
    """Runs the effects of one session; `take` gets their inputs."""

    def __init__(
        self, place: Workplace, sid: str, microphone: Microphone, voice: Callable[[], Speaker], take: Callable[[Any], None]
    ) -> None:
        self._place = place
        self._sid = sid
        self._microphone = microphone
        self._voice = voice
        self._take = take
        self._reading: asyncio.Task[None] | None = None
        """Task in which the model reads what the user seems to have said; it may be over."""

        self._streamed: StreamedSpeech | None = None
        """Speech of the user, once an agent has a recogniser that hears it while it is said."""

    def speech_began(self, team: Team, from_ms: int) -> None:
        """Have an agent's streaming recogniser, if it has one, hear what is said from here on, ms of the session's audio."""
        stt = team.agent.stt
        if stt.provider in self._place.models.recognisers:
            self._speech().begin(_listener(stt.provider, stt.model, team.agent.language, agents.vocabulary(team)), from_ms)

    def heard(self) -> None:
        """Pass on what the microphone has heard."""
        if self._streamed is not None:
            self._streamed.heard()

    def speech_over(self) -> None:
        """Have nothing more heard until speech begins again."""
        if self._streamed is not None:
            self._streamed.over()

    def stop(self) -> None:
        """Close what is open for the session; `closed` waits for it."""
        if self._streamed is not None:
            self._streamed.stop()

    async def closed(self) -> None:
        """Wait until nothing is open for the session."""
        if self._streamed is not None:
            await self._streamed.closed()

    async def run(self, effect_id: int, effect: out.Effect) -> None:
        """Run an effect to its end, whatever the end is."""
        try:
            await self._effect(effect_id, effect)
        except VoxbridgeError as error:
            self._take(inputs.EffectFailed(effect=effect_id, error=session_failure.of(error)))
        except Exception as error:  # noqa: BLE001 - whatever the error, the core must know that the effect is over
            _log.exception("session %s: effect %d failed", self._sid, effect_id)
            self._take(inputs.EffectFailed(effect=effect_id, error=session_failure.of(error)))

    async def find_cause(self, effect: int, provider: str) -> None:
        """Find out why a model is late."""
        self._take(inputs.CauseFound(effect, await self._place.models.why_late(provider)))

    async def read_ahead(self, asked: out.ReadAhead) -> None:
        """Have the model read the beginning of a conversation. A failure costs time in the next answer, and nothing else. What the user
        seems to have said is read until the next time that it is read or asked."""
        first, *said = asked.messages
        if asked.asked:
            self._read_no_further()
            self._reading = asyncio.current_task()
        try:
            await self._place.models.warm(asked.model, first.text, asked.functions, shared=asked.shared, said=said, asked=asked.asked)
        except VoxbridgeError as error:
            _log.debug("session %s: nothing was read ahead: %s", self._sid, error.message)

    def _read_no_further(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _effect(self, effect_id: int, effect: out.Effect) -> None:
        models = self._place.models
        match effect:
            case out.Transcribe():
                found = await self._transcript(effect)
                self._take(inputs.Transcribed(effect=effect_id, text=found.text, language=found.language, confidence=found.confidence))
            case out.JudgeTurn(from_ms=from_ms, to_ms=to_ms):
                self._take(inputs.TurnJudged(effect_id, await models.judge_turn(self._microphone.audio(from_ms, to_ms))))
            case out.Complete():
                self._read_no_further()
                async with aclosing(models.complete(effect_id, effect)) as written:
                    async for input in written:
                        self._take(input)
            case out.Synthesize():
                await self._synthesize(effect_id, effect)

    async def _transcript(self, asked: out.Transcribe) -> Transcript:
        models = self._place.models
        if asked.provider in models.recognisers:
            listener = _listener(asked.provider, asked.model, asked.language, asked.vocabulary)
            return await self._speech().transcript(listener, asked.from_ms, asked.to_ms)
        pcm = self._microphone.audio(asked.from_ms, asked.to_ms)
        return await models.transcribe(pcm, asked.provider, asked.model, asked.language, asked.vocabulary)

    def _speech(self) -> StreamedSpeech:
        if self._streamed is None:
            self._streamed = StreamedSpeech(self._microphone, self._open, self._place.config.language)
        return self._streamed

    async def _open(self, listener: Listener, changed: Callable[[], None]) -> Recogniser:
        language = listener.language or self._place.config.language
        return await self._place.models.recognisers[listener.provider].open(listener.model, language, listener.vocabulary, changed)

    async def _synthesize(self, effect_id: int, asked: out.Synthesize) -> None:
        made = 0
        speaker = self._voice()
        text = await speakable(asked.text, asked.language or self._place.config.language) if asked.cleaned else asked.text
        speech = self._place.models.synthesize(
            text, asked.voice, provider=asked.provider, model=asked.model, speed=asked.speed, language=asked.language
        )
        whole = bytearray()
        async with aclosing(speech) as spoken:
            async for pcm in spoken:
                if asked.whole:
                    whole += pcm
                else:
                    await speaker.put(asked.generation, pcm)
                    if not made:
                        self._take(inputs.AudioMade(effect=effect_id, ms=len(pcm) * 1_000 // (2 * frames.OUTPUT_RATE), done=False))
                made += len(pcm)
        if whole:
            speaker.put_whole(asked.generation, bytes(whole))
        if not made:
            raise VoxbridgeError(Code.PROVIDER_REFUSED, "The speech model made no sound.", retryable=False)
        self._take(inputs.AudioMade(effect=effect_id, ms=made * 1_000 // (2 * frames.OUTPUT_RATE), done=True))


def _listener(provider: str, model: str, language: str, vocabulary: tuple[str, ...]) -> Listener:
    return Listener(provider=provider, model=model, language=language, vocabulary=vocabulary)
