"""Events that the voice service writes: the life of a session and of its turns."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.events.envelope import Event, event

TurnReason = Literal["completed", "interrupted", "failed", "no_speech"]
ToolKind = Literal["server", "browser", "async", "customer"]


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as the log keeps it (voxbridge/shared/errors.py)."""

    code: str
    message: str
    retryable: bool = False
    field: str = ""
    """The invalid part of an input, if there was one."""


class Latency(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Timestamps of a turn's stages in ms after `speech_ended`; None for stages that the turn did not have."""

    end_of_turn: int | None = None
    stt_final: int | None = None
    llm_first_token: int | None = None
    first_sentence: int | None = None
    tts_first_audio: int | None = None
    first_audio_sent: int | None = None
    first_audio_heard: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of a turn, as the model's endpoint counted them, and their cost in millionths of a US$ by the `VOXBRIDGE_PRICES` of that time;
    0 if it has no price for the model."""

    input_tokens: int = 0
    output_tokens: int = 0
    microdollars: int = 0


@event("session.owned", writer="voice")
class SessionOwned(Event, frozen=True, kw_only=True):
    """A worker took the session; the term only grows."""

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
    """Another worker carries the session on. `how` says how the model got the conversation back: resumed by its handle, seeded again from
    the log, or begun afresh. `gap_ms` is how long no worker held the session; `lost` names what could not be carried on, in words, and is
    empty when nothing was lost."""

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
    """Agent that speaks first."""

    agents: tuple[str, ...] = ()
    pipeline: str = ""
    recorded: bool = False
    """True if the audio is recorded."""


@event("session.ended", writer="voice", visible=True)
class SessionEnded(Event, frozen=True, kw_only=True):
    """The session is over. `error` is set when it failed or was refused."""

    reason: str
    turns: int = 0
    duration_ms: int = 0
    error: Failure | None = None
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    """Tokens that no turn has counted, if any: their number arrived after the last turn."""

    told: tuple[str, ...] = ()
    """Tasks that outlive the session and whose end it told."""


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
    """The connection to a realtime model ended unexpectedly, or could not be opened. `close_code` is that of its socket."""

    provider: str
    model: str
    close_code: int
    error: Failure


@event("provider.go_away", writer="voice", visible=True)
class ProviderGoAway(Event, frozen=True, kw_only=True):
    """The provider announced that it will close the connection; the session switches to a new one before that."""

    provider: str
    model: str
    time_left_ms: int


@event("resumption.updated", writer="voice")
class ResumptionUpdated(Event, frozen=True, kw_only=True):
    """The provider said whether its session can be resumed. `handle` is a reference, never the handle itself."""

    handle: str
    resumable: bool


@event("handoff.started", writer="voice", visible=True)
class HandoffStarted(Event, frozen=True, kw_only=True):
    """An agent began to hand the conversation over to another."""

    source: str
    target: str
    reason: str = ""
    summary: str = ""
    by: Literal["agent", "operator"] = "agent"


@event("handoff.completed", writer="voice", visible=True)
class HandoffCompleted(Event, frozen=True, kw_only=True):
    """The other agent goes on. `ms` since the handoff started; `history`: how the other agent's model learned the conversation."""

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
    """Final text of what the user said or typed. The audio range is in ms of microphone audio."""

    text: str
    turn: int
    source: Literal["speech", "text"]
    language: str = ""
    confidence: float | None = None
    audio_from_ms: int | None = None
    audio_to_ms: int | None = None
    continues: bool = False
    """True if the text continues earlier words of the same turn, which had been taken as complete; no answer to those was heard."""

    text_id: str = ""
    """`text.received.text_id` of what was typed."""


@event("agent.said", writer="voice", visible=True)
class AgentSaid(Event, frozen=True, kw_only=True):
    """Words of the agent: `text` is what was heard, `unheard` what was generated and not heard."""

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
    """True if the text ends in an apology for a missing answer. It is not shown to models."""

    filler: str = ""
    """Words said before the text to cover a wait, if they were heard to their end. They are not shown to models."""


@event("turn.completed", writer="voice", visible=True)
class TurnCompleted(Event, frozen=True, kw_only=True):
    """A turn is over."""

    number: int
    reason: TurnReason
    latency: Latency = Latency()
    usage: Usage = Usage()


@event("generation.cancelled", writer="voice")
class GenerationCancelled(Event, frozen=True, kw_only=True):
    """A reply was stopped; from here on no audio of it or of an earlier one is heard."""

    generation: int
    by: Literal["barge_in", "client", "text", "end", "failure", "takeover", "disconnect", "handoff", "reset"]


@event("output.changed", writer="voice", visible=True)
class OutputChanged(Event, frozen=True, kw_only=True):
    """Replies are spoken, or only written, from here on; the conversation is the same."""

    output: Literal["audio", "text"]
    reason: str = ""
    """Sentence for the user that says why, where the client did not ask for it: a model that speaks itself cannot be reached."""


@event("conversation.reset", writer="voice", visible=True)
class ConversationReset(Event, frozen=True, kw_only=True):
    """The history is empty from here on, as the user asked; the session goes on. `turns` is the number of turns before."""

    turns: int


@event("tool.called", writer="voice", visible=True)
class ToolCalled(Event, frozen=True, kw_only=True):
    """A function is called: by the model, or by the user's own words, which start a macro."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    kind: ToolKind
    turn: int
    deadline_ms: int
    account: str = "local"
    allowed: tuple[str, ...] | None = None
    """Functions that the caller may call, this one or, in a macro that it makes or runs, others; None stands for all."""

    unattended: bool = False
    """True where no person can be asked for approval: the session was asked for by a function."""

    time_zone: str = ""
    """Time zone of the person, by its IANA name; empty: the installation's."""


@event("tool.cancelled", writer="voice", visible=True)
class ToolCancelled(Event, frozen=True, kw_only=True):
    """A call is no longer wanted; a late result is recorded and not spoken."""

    call_id: str
    name: str
    reason: str


@event("approval.answered", writer="voice", visible=True)
class ApprovalAnswered(Event, frozen=True, kw_only=True):
    """The user's own next words after the question were a plain yes or no; `lapsed`: they were neither, twice, or the question was cut off
    when it was asked again, and `words` is empty."""

    approval_id: str
    answer: Literal["approved", "denied", "lapsed"]
    words: str


@event("run.answered", writer="voice", visible=True)
class RunAnswered(Event, frozen=True, kw_only=True):
    """The user answered the question of a run's step in the conversation; with `cancelled`, the run is to be stopped instead."""

    run_id: str
    step: str
    text: str
    cancelled: bool = False


@event("tasks.wanted", writer="voice", visible=True)
class TasksWanted(Event, frozen=True, kw_only=True):
    """The session can tell the ends of these tasks of its account, which no session has told."""

    task_ids: tuple[str, ...]
    account: str


@event("tool.delivered", writer="voice")
class ToolDelivered(Event, frozen=True, kw_only=True):
    """A call's result was given to the model, told as content, or dropped."""

    call_id: str
    how: Literal["response", "content", "dropped"]


def turns_by(event: Event) -> int:
    """Return how many turns are over if this is the last event of something said or completed; 0 for any other event."""
    match event:
        case TurnCompleted(number=number):
            return number
        case AgentSaid(turn=turn):
            return turn
        case UserSaid(turn=turn):
            return max(0, turn - 1)
    return 0
