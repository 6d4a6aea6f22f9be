"""What the voice core takes besides events of the log: detections, results of effects, timers.

All of them are journalled, so a field here is part of the log: add with a default, never rename.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.voice.core.provider_events import ProviderInput
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Cast
from voxbridge.shared.events.voice import Failure


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """The shell is ready: what the installation offers, resolved once for the session."""

    worker: str
    term: int
    model: str
    voice: str
    greeting: str
    functions: tuple[Function, ...]
    providers: tuple[str, ...]
    idle_timeout_s: int
    turn_timeout_s: int
    speak_results: bool = False
    """Say the `spoken` of a result as it is: a small model would take a second to say the same, and say it worse."""

    resume_window_s: int = 10
    """How long the session waits for a client that can resume it."""

    model_patience_s: int = 0
    """How long a model may be away before its failure is one."""

    stt_patience_s: int = 0
    """The same for speech recognition, whose failure costs the user what was said. 0 in journals from before: as the others."""

    cast: Cast | None = None
    """Who was asked for by name; nothing where the session's options make the agent."""

    record: bool = False
    """Whether the session is recorded."""

    tool_rounds: int = 0
    """Rounds of function calls that a turn may have. 0 in journals from before it could be set: 5, and any number with a realtime
    model; their `providers` lack the endpoints that need no key."""

    filler: bool | None = None
    """Whether a wait is covered by a few words. Nothing in journals from before there were such: in those nobody apologises for a
    realtime model either."""

    language: str = ""
    """The installation's language."""

    prices: dict[str, tuple[float, float]] = {}
    """US$ for a million tokens, in and out, by the model's name."""

    reopens: int = 0
    """How often in a row a turn may be reopened. 0 in journals from before it could be."""


class VoiceStarted(msgspec.Struct, frozen=True, tag="voice_started"):
    """The detector is sure that speech began, at `audio_ms` of microphone audio."""

    audio_ms: int


class VoiceStopped(msgspec.Struct, frozen=True, tag="voice_stopped"):
    """Speech ended at `audio_ms`; the detector has heard `silence_ms` of silence since."""

    audio_ms: int
    silence_ms: int


class Transcribed(msgspec.Struct, frozen=True, kw_only=True, tag="transcribed"):
    """A transcription is done."""

    effect: int
    text: str
    language: str = ""
    confidence: float | None = None


class TurnJudged(msgspec.Struct, frozen=True, tag="turn_judged"):
    """How likely it is that the user has finished, from 0 to 1."""

    effect: int
    probability: float


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta"):
    """The language model wrote more."""

    effect: int
    text: str


class ToolRequested(msgspec.Struct, frozen=True, kw_only=True, tag="tool_requested"):
    """The language model wants a function called. `arguments` is what it wrote, parsed."""

    effect: int
    name: str
    arguments: dict[str, Any]


class Completed(msgspec.Struct, frozen=True, kw_only=True, tag="completed"):
    """The language model is done."""

    effect: int
    input_tokens: int = 0
    output_tokens: int = 0


class AudioMade(msgspec.Struct, frozen=True, kw_only=True, tag="audio_made"):
    """Speech was synthesised: `ms` of audio so far; `done` with the last of it."""

    effect: int
    ms: int
    done: bool


class AudioSent(msgspec.Struct, frozen=True, tag="audio_sent"):
    """The first frame of a generation left for the client, under this number."""

    generation: int
    sequence: int = 0


class EffectFailed(msgspec.Struct, frozen=True, kw_only=True, tag="effect_failed"):
    """An effect ended in an error."""

    effect: int
    error: Failure


class TimerFired(msgspec.Struct, frozen=True, tag="timer_fired"):
    """A timer that the step had set."""

    name: str


class MicrophoneAt(msgspec.Struct, frozen=True, kw_only=True, tag="microphone_at"):
    """The microphone frame with this number and time ends at this sample of the session: taken ahead of each change of voice and
    every few seconds, so that a successor knows where the frames that the bus kept lie."""

    samples: int
    sequence: int
    time_ms: int


class TakenOver(msgspec.Struct, frozen=True, kw_only=True, tag="taken_over"):
    """Another worker goes on with the session, and this is what it found."""

    worker: str
    term: int
    gap_ms: int
    """How long nobody held the session."""

    generation: int = 0
    left_ms: int | None = None
    """Audio of `generation` that had left for the client; nothing when that is not known."""

    audio_from_ms: int | None = None
    audio_to_ms: int | None = None
    """Microphone audio that the bus still had, in ms of the session; nothing when it had none."""

    lost_ms: int = 0
    """Microphone audio that is lost before `audio_from_ms`."""


class Released(msgspec.Struct, frozen=True, tag="released"):
    """This worker is being stopped, or another one is to have the session: it is given up for another one to take."""

    worker: str
    term: int
    reason: Literal["drain", "move"] = "drain"


class GatewayLost(msgspec.Struct, frozen=True, tag="gateway_lost"):
    """The gateway of the session's socket is dead: it wrote no `client.disconnected`."""

    gateway: str


class CauseFound(msgspec.Struct, frozen=True, tag="cause_found"):
    """Why the model behind an effect is late, in words; empty where nobody knows."""

    effect: int
    cause: str


class LimitReached(msgspec.Struct, frozen=True, tag="limit_reached"):
    """The session met a bound of the installation: `time_limit` or `log_limit`."""

    reason: str
    error: Failure


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The core failed at an input, which was not taken."""

    error: Failure


class Orphaned(msgspec.Struct, frozen=True, tag="orphaned"):
    """A successor could not go on with the session of a dead owner."""

    worker: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The shell could not open the session."""

    worker: str
    term: int
    error: Failure


Input = (
    Opened
    | VoiceStarted
    | VoiceStopped
    | Transcribed
    | TurnJudged
    | TextDelta
    | ToolRequested
    | Completed
    | AudioMade
    | AudioSent
    | EffectFailed
    | TimerFired
    | MicrophoneAt
    | TakenOver
    | Released
    | GatewayLost
    | CauseFound
    | LimitReached
    | Broken
    | Orphaned
    | Refused
    | ProviderInput
)
