"""Inputs of the voice core besides events of the log: detections, results of effects, timers.

All of them are written to the journal, so their fields are part of the log format: add a field with a default, never rename one.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from voxbridge.services.voice.core.provider_events import ProviderInput
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import AgentTeam
from voxbridge.shared.awareness.view import NOTHING, View
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.language.conversation import Completed as Completed
from voxbridge.shared.language.conversation import TextDelta as TextDelta
from voxbridge.shared.language.conversation import ToolRequested as ToolRequested
from voxbridge.shared.macros.triggers import Spoken

SENTENCES: Final = 2
"""Rules from which on a reply is cut into sentences by its language."""

YES_NO: Final = 3
"""Rules from which on an answer is a yes with harmless words beside it, and not only as a whole."""

BRIEF: Final = 4
"""Rules from which on a reply that goes on and on, or round and round, is stopped at a whole sentence."""

BY_CLICK: Final = 5
"""Rules from which on a question says how it is answered in a language whose words for yes and no are not known."""

PIECES: Final = 6
"""Rules from which on a long utterance is transcribed in pieces."""

GOES_ON: Final = 7
"""Rules from which on a sentence is over only if a word in small letters cannot take it on: "at 5 p.m. and said"."""

WRITES: Final = 8
"""Rules from which on in text a language model writes in place of a model that speaks itself."""

READ: Final = 9
"""Rules from which on a written reply that is stopped counts as read as far as it was shown."""

LEFT_ALONE: Final = 10
"""Rules from which on nothing is announced for a moment after a question."""

RULES: Final = LEFT_ALONE
"""Newest rules that a session may go by: see `Opened.rules`."""


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """Readiness of the shell, with what the installation offers, resolved once for the session."""

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
    """Say the `spoken` field of a result as it is: a small model would take a second to say the same, and say it worse."""

    tells_ends: bool = False
    """Tell every end of a task. False in older journals."""

    rules: int = 0
    """Rules that the session goes by: from 1 on each call carries the list of what may be called, and a yes counts for a question that was
    put word for word; from 2 on a reply is cut into sentences by the rules of its language; from 3 on a yes may have harmless words beside
    it; from 4 on a reply that goes on and on is stopped; from 5 on a question in a language without known answers says that it is answered
    by a click; from 6 on a long utterance is transcribed in pieces; from 7 on a sentence may go on after an abbreviation; from 8 on a
    language model writes in place of one that speaks itself; from 9 on a written reply that is stopped was read as far as it was shown;
    from 10 on nothing is announced for a moment after a question. 0 in older journals."""

    resume_window_s: int = 10
    """Seconds the session waits for a client that can resume it."""

    model_patience_s: int = 0
    """Seconds a failing model is retried before its failure counts."""

    stt_patience_s: int = 0
    """The same for speech recognition, whose failure loses what the user said. 0 in older journals: `model_patience_s` applies."""

    team: AgentTeam | None = msgspec.field(default=None, name="cast")
    """Agents requested by name; None if the session's options define the agent. Its name in journals is that of the first release."""

    record: bool = False
    """True if the session is recorded."""

    tool_rounds: int = 0
    """Rounds of function calls that a turn may have. 0 in older journals: then 5, or no limit with a realtime model, and `providers`
    lacks the endpoints that need no key."""

    filler: bool | None = None
    """True if waits are covered by filler words. None in journals older than fillers: there, the installation's voice does not
    apologise for a realtime model either."""

    language: str = ""
    """Language of the installation."""

    prices: dict[str, tuple[float, float]] = {}
    """US$ per million tokens, `(input, output)`, by model name."""

    reopens: int = 0
    """Maximum number of times in a row that a turn may be reopened. 0 in journals older than reopening."""

    macros: tuple[Spoken, ...] = ()
    """Macros of the account, by which the user's own words start them."""

    unheard: tuple[str, ...] = ()
    """Tasks of the account that ended and whose end no session has told."""

    names: dict[str, dict[str, tuple[str, ...]]] = {}
    """Things that there were for the account, by function and argument: what the installation's own model chooses among."""

    screen: View = NOTHING
    """Entries of what is known of the user's screen."""


class ScreenChanged(msgspec.Struct, frozen=True, tag="screen_changed"):
    """Entries of what is known of the user's screen from now on."""

    view: View


class MacrosChanged(msgspec.Struct, frozen=True, tag="macros_changed"):
    """Macros of the account as they are from now on."""

    macros: tuple[Spoken, ...]


class NamesChanged(msgspec.Struct, frozen=True, tag="names_changed"):
    """Things that there are for the account from now on, as in `Opened.names`."""

    names: dict[str, dict[str, tuple[str, ...]]]


class UnheardChanged(msgspec.Struct, frozen=True, tag="unheard_changed"):
    """Tasks of the account whose end no session has told, as they are from now on."""

    tasks: tuple[str, ...]


class VoiceStarted(msgspec.Struct, frozen=True, tag="voice_started"):
    """Start of speech, confirmed by the detector, at `audio_ms` of microphone audio."""

    audio_ms: int


class VoiceStopped(msgspec.Struct, frozen=True, tag="voice_stopped"):
    """End of speech at `audio_ms`; the detector has heard `silence_ms` of silence since."""

    audio_ms: int
    silence_ms: int


class VoicePaused(msgspec.Struct, frozen=True, tag="voice_paused"):
    """Silence in speech since `audio_ms`, too short to be its end. It was the end if `VoiceStopped` follows with the same place; where the
    user speaks on, nothing more is said of it."""

    audio_ms: int


class Transcribed(msgspec.Struct, frozen=True, kw_only=True, tag="transcribed"):
    """Result of a transcription."""

    effect: int
    text: str
    language: str = ""
    confidence: float | None = None


class TurnJudged(msgspec.Struct, frozen=True, tag="turn_judged"):
    """Probability that the user has finished, from 0 to 1."""

    effect: int
    probability: float


class AudioMade(msgspec.Struct, frozen=True, kw_only=True, tag="audio_made"):
    """Progress of a synthesis: `ms` of audio so far; `done` with the last of it."""

    effect: int
    ms: int
    done: bool


class AudioSent(msgspec.Struct, frozen=True, tag="audio_sent"):
    """Sending of the first frame of a generation to the client, with this sequence number."""

    generation: int
    sequence: int = 0


class EffectFailed(msgspec.Struct, frozen=True, kw_only=True, tag="effect_failed"):
    """Failure of an effect."""

    effect: int
    error: Failure


class TimerFired(msgspec.Struct, frozen=True, tag="timer_fired"):
    """Expiry of a timer that the core had set."""

    name: str


class MicrophoneAt(msgspec.Struct, frozen=True, kw_only=True, tag="microphone_at"):
    """Position of a microphone frame: the one with this sequence number and time ends at this sample of the session. Taken before each
    change of voice and every few seconds, so that a successor can position the frames that the bus kept."""

    samples: int
    sequence: int
    time_ms: int


class TakenOver(msgspec.Struct, frozen=True, kw_only=True, tag="taken_over"):
    """Takeover of the session by another worker, with what it found."""

    worker: str
    term: int
    gap_ms: int
    """Milliseconds for which no worker held the session."""

    generation: int = 0
    left_ms: int | None = None
    """Milliseconds of `generation`'s audio that had left for the client; None if unknown."""

    audio_from_ms: int | None = None
    audio_to_ms: int | None = None
    """Range of microphone audio that the bus still had, in ms of the session; None if it had none."""

    lost_ms: int = 0
    """Milliseconds of microphone audio lost before `audio_from_ms`."""


class Released(msgspec.Struct, frozen=True, tag="released"):
    """Release of the session for another worker to take: this worker is being stopped (`drain`), or the session is moved (`move`)."""

    worker: str
    term: int
    reason: Literal["drain", "move"] = "drain"


class GatewayLost(msgspec.Struct, frozen=True, tag="gateway_lost"):
    """Death of the gateway that held the session's socket, which therefore wrote no `client.disconnected`."""

    gateway: str


class CauseFound(msgspec.Struct, frozen=True, tag="cause_found"):
    """Reason in words why the model of an effect is late; empty if unknown."""

    effect: int
    cause: str


class LimitReached(msgspec.Struct, frozen=True, tag="limit_reached"):
    """Limit of the installation that the session reached: `time_limit` or `log_limit`."""

    reason: str
    error: Failure


class ParentOver(msgspec.Struct, frozen=True, tag="parent_over"):
    """End of what a child session works for: `parent_ended`, or `cancelled` when nobody waits for its answer any more."""

    reason: str


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """Failure of the core at an input, which was not applied."""

    error: Failure


class Orphaned(msgspec.Struct, frozen=True, tag="orphaned"):
    """Notice that no worker could take over the session of a dead owner."""

    worker: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Refusal by the shell to open the session."""

    worker: str
    term: int
    error: Failure


SessionInput = (
    VoiceStarted
    | VoiceStopped
    | VoicePaused
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
    | CauseFound
)
WorkerInput = (
    Opened
    | MacrosChanged
    | NamesChanged
    | UnheardChanged
    | ScreenChanged
    | Refused
    | TakenOver
    | Released
    | LimitReached
    | GatewayLost
    | ParentOver
    | Broken
    | Orphaned
)
Input = SessionInput | WorkerInput | ProviderInput
