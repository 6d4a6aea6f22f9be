"""What the voice service writes: the life of a session and of its turns."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.events.envelope import Event, event

TurnReason = Literal["completed", "interrupted", "failed", "no_speech"]
ToolKind = Literal["server", "browser", "async"]


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as the log keeps it (voxbridge/shared/errors.py)."""

    code: str
    message: str
    retryable: bool = False


class Latency(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stamps of a turn in ms after `speech_ended`, as far as the turn had them."""

    end_of_turn: int | None = None
    stt_final: int | None = None
    llm_first_token: int | None = None
    first_sentence: int | None = None
    tts_first_audio: int | None = None
    first_audio_sent: int | None = None
    first_audio_heard: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of a turn, as the model's endpoint counted them, and what they cost in millionths of a US$ by `VOXBRIDGE_PRICES` of that
    time; 0 where it has no price for the model."""

    input_tokens: int = 0
    output_tokens: int = 0
    microdollars: int = 0


@event("session.owned", writer="voice")
class SessionOwned(Event, frozen=True, kw_only=True):
    """A worker took the session; its term only grows."""

    worker: str
    term: int


@event("session.released", writer="voice")
class SessionReleased(Event, frozen=True, kw_only=True):
    """The worker gave the session up for another one to take at once: it is being stopped, or was asked to move the session."""

    worker: str
    term: int
    reason: Literal["drain", "move"]


@event("session.restored", writer="voice", visible=True)
class SessionRestored(Event, frozen=True, kw_only=True):
    """Another worker carries the session on. `how` says what became of the model's side of the conversation: taken up by its
    handle, seeded again from the log, or begun afresh. `gap_ms` is how long nobody held the session; `lost` names what could not
    be carried on, in words, and is empty when nothing was lost."""

    worker: str = ""
    """The new owner; empty when only the model's connection was lost."""

    term: int = 0
    how: Literal["handle", "reseeded", "fresh"]
    gap_ms: int = 0
    lost: tuple[str, ...] = ()


@event("session.started", writer="voice", visible=True)
class SessionStarted(Event, frozen=True, kw_only=True):
    """The session is ready. `output` says whether replies are spoken."""

    mode: str
    model: str
    voice: str
    output: Literal["audio", "text"]
    tools: tuple[str, ...] = ()
    resumed: bool = False
    agent: str = ""
    """Who speaks first."""

    agents: tuple[str, ...] = ()
    pipeline: str = ""
    recorded: bool = False
    """Whether the audio is kept."""


@event("session.ended", writer="voice", visible=True)
class SessionEnded(Event, frozen=True, kw_only=True):
    """The session is over. `error` is set when it failed or was refused."""

    reason: str
    turns: int = 0
    duration_ms: int = 0
    error: Failure | None = None
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    """Tokens that no turn has counted, where there are some: their number came after the last one."""


@event("provider.failed", writer="voice", visible=True)
class ProviderFailed(Event, frozen=True, kw_only=True):
    """A model's endpoint failed in a turn. `handled`: it is asked again or done without, and no reply is lost by it yet."""

    part: Literal["stt", "turn", "llm", "tts", "vad"]
    error: Failure
    turn: int
    handled: bool = False


@event("provider.connected", writer="voice", visible=True)
class ProviderConnected(Event, frozen=True, kw_only=True):
    """A connection to a realtime model takes audio. `resumed_by`: how the model knows the conversation so far."""

    provider: str
    model: str
    agent: str
    voice: str = ""
    resumed_by: Literal["", "handle", "seed", "summary"] = ""


@event("provider.lost", writer="voice", visible=True)
class ProviderLost(Event, frozen=True, kw_only=True):
    """The connection to a realtime model is over though nobody wanted that, or could not be opened. `close_code` is its socket's."""

    provider: str
    model: str
    close_code: int
    error: Failure


@event("provider.go_away", writer="voice", visible=True)
class ProviderGoAway(Event, frozen=True, kw_only=True):
    """The provider is about to close the connection; the session rotates to a new one before."""

    provider: str
    model: str
    time_left_ms: int


@event("resumption.updated", writer="voice")
class ResumptionUpdated(Event, frozen=True, kw_only=True):
    """Whether the provider's session can be resumed. `handle` is a reference, never the handle."""

    handle: str
    resumable: bool


@event("handoff.started", writer="voice", visible=True)
class HandoffStarted(Event, frozen=True, kw_only=True):
    """One agent hands the conversation over to another."""

    source: str
    target: str
    reason: str = ""
    summary: str = ""
    by: Literal["agent", "operator"] = "agent"


@event("handoff.completed", writer="voice", visible=True)
class HandoffCompleted(Event, frozen=True, kw_only=True):
    """The other agent goes on. `ms` since the handoff started; `history`: how the other one's model came to know the conversation."""

    source: str
    target: str
    voice: str
    model: str
    ms: int
    history: Literal["handle", "seed", "summary", "log"]


@event("speech.started", writer="voice")
class SpeechStarted(Event, frozen=True, kw_only=True):
    """The user began to speak. `audio_ms` counts from the first microphone sample of the session."""

    source: Literal["vad", "provider", "push_to_talk"]
    audio_ms: int


@event("speech.ended", writer="voice")
class SpeechEnded(Event, frozen=True, kw_only=True):
    """The user's speech ended at `audio_ms`."""

    source: Literal["vad", "provider", "push_to_talk"]
    audio_ms: int


@event("user.said", writer="voice", visible=True)
class UserSaid(Event, frozen=True, kw_only=True):
    """What the user said or typed, final. The audio range is in ms of microphone audio."""

    text: str
    turn: int
    source: Literal["speech", "text"]
    language: str = ""
    confidence: float | None = None
    audio_from_ms: int | None = None
    audio_to_ms: int | None = None
    continues: bool = False
    """It goes on with what was said before in the same turn, which had been taken for over; nothing of an answer was heard."""


@event("agent.said", writer="voice", visible=True)
class AgentSaid(Event, frozen=True, kw_only=True):
    """What the agent said: `text` is what was heard, `unheard` what was made and not heard."""

    text: str
    turn: int
    generation: int
    unheard: str = ""
    interrupted: bool = False
    played_ms: int | None = None
    output: Literal["audio", "text"] = "audio"
    agent: str = ""
    voice: str = ""
    apology: bool = False
    """It ends in an apology for an answer that there is not. No model is told of it."""

    filler: str = ""
    """What was said ahead of these words to cover a wait, as far as it was heard to its end. No model is told of it."""


@event("turn.completed", writer="voice", visible=True)
class TurnCompleted(Event, frozen=True, kw_only=True):
    """A turn is over."""

    number: int
    reason: TurnReason
    latency: Latency = Latency()
    usage: Usage = Usage()


@event("generation.cancelled", writer="voice")
class GenerationCancelled(Event, frozen=True, kw_only=True):
    """A reply was stopped; no audio of it or of an earlier one is heard from here on."""

    generation: int
    by: Literal["barge_in", "client", "text", "end", "failure", "takeover", "disconnect", "handoff"]


@event("tool.called", writer="voice", visible=True)
class ToolCalled(Event, frozen=True, kw_only=True):
    """The model called a function."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    kind: ToolKind
    turn: int
    deadline_ms: int
    account: str = "local"


@event("tool.cancelled", writer="voice", visible=True)
class ToolCancelled(Event, frozen=True, kw_only=True):
    """A call is no longer wanted; a late result is recorded and not spoken."""

    call_id: str
    name: str
    reason: str


@event("tool.delivered", writer="voice")
class ToolDelivered(Event, frozen=True, kw_only=True):
    """What became of a call's result: given to the model, told as content, or dropped."""

    call_id: str
    how: Literal["response", "content", "dropped"]


def turns_by(event: Event) -> int:
    """How many turns are over where this is the last that was said or completed; 0 for any other event."""
    match event:
        case TurnCompleted(number=number):
            return number
        case AgentSaid(turn=turn):
            return turn
        case UserSaid(turn=turn):
            return max(0, turn - 1)
    return 0
