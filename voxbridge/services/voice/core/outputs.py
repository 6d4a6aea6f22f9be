"""What the voice core asks its shell to do, besides appending events (`voxbridge.shared.step.fold.Append`)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.bus.moments import Moment

AUDIO_END: Final = 2**31 - 1
"""As the end of a range of audio: everything that was heard so far."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the conversation remembers it."""

    call_id: str
    name: str
    arguments: dict[str, Any]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the conversation, in the roles that chat completions know."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    call_id: str = ""


class Transcribe(msgspec.Struct, frozen=True, kw_only=True, tag="transcribe"):
    """Transcribe a range of microphone audio, in ms from its start. A successor repeats it, from the audio that the bus kept.
    Empty names stand for the installation's own."""

    from_ms: int
    to_ms: int
    provider: str = ""
    model: str = ""
    language: str = ""


class JudgeTurn(msgspec.Struct, frozen=True, kw_only=True, tag="judge_turn"):
    """Ask whether the user has finished, from the audio of a range. A successor repeats it."""

    from_ms: int
    to_ms: int


class Complete(msgspec.Struct, frozen=True, kw_only=True, tag="complete"):
    """Ask the language model to go on. A successor repeats it and goes on where it ended: what the first had written stays as it
    was said. After a call it is given up: calls come last, and a call is not made twice."""

    model: str
    messages: tuple[Message, ...]
    functions: tuple[Function, ...]
    provider: str = ""
    shared: bool = False
    """The instructions are those of an agent alone, with nothing of this session in them: what was read of them may be kept."""


class Synthesize(msgspec.Struct, frozen=True, kw_only=True, tag="synthesize"):
    """Speak a piece of a reply, its figures in the words of `language`; pieces of a generation are played in the order they were
    asked for. A successor repeats what had not been heard, from the start of the sentence that was heard in part, as a new generation."""

    generation: int
    text: str
    voice: str
    language: str = ""
    provider: str = ""
    model: str = ""
    whole: bool = False
    """It is queued at once, when all of it is there: what a realtime model says comes at any moment, and is heard before or behind it."""


class Connect(msgspec.Struct, frozen=True, kw_only=True, tag="connect"):
    """Open a connection to a realtime model and report what it says (`provider`), until it is cancelled or lost. The one before is
    closed first. A successor opens one of its own: with the newest handle, or seeded from the log."""

    provider: str
    model: str
    voice: str
    language: str
    instructions: str
    functions: tuple[Function, ...] = ()
    history: tuple[Message, ...] = ()
    handle: str = ""
    """Reference of the handle that it resumes."""

    audio_from_ms: int = 0
    """Microphone audio from here on is for this connection, as far as it is kept."""

    delay_ms: int = 0
    """Before it is dialled."""

    manual_activity: bool = False
    """The model is told when the user speaks."""

    speaking: bool = False
    """And the user speaks already."""

    search: bool = False


Effect = Transcribe | JudgeTurn | Complete | Synthesize | Connect


class StartEffect(msgspec.Struct, frozen=True, tag="start_effect"):
    """Begin something that ends in an input carrying `id`. It dies with its worker; `takeover` begins it again as its kind says."""

    id: int
    effect: Effect


class CancelEffect(msgspec.Struct, frozen=True, tag="cancel_effect"):
    """Stop an effect; no input of it is wanted any more."""

    id: int


class SetTimer(msgspec.Struct, frozen=True, tag="set_timer"):
    """Fire `TimerFired(name)` in `after_ms`; a timer of the same name is replaced. A successor resumes it with the time it has left."""

    name: str
    after_ms: int


class CancelTimer(msgspec.Struct, frozen=True, tag="cancel_timer"):
    """Forget a timer."""

    name: str


class Route(msgspec.Struct, frozen=True, tag="route"):
    """Where microphone frames go from now on."""

    microphone: Literal["detector", "provider", "echo", "nobody"]


class Play(msgspec.Struct, frozen=True, tag="play"):
    """What a connection's model says is played as this generation from now on; 0: it is not heard."""

    effect: int
    generation: int


class Say(msgspec.Struct, frozen=True, tag="say"):
    """Tell a connection's model something in text; with `respond` it answers to it."""

    effect: int
    text: str
    respond: bool = True


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """Give a connection's model the result of a call that it asked for on this connection."""

    effect: int
    ref: str
    name: str
    result: dict[str, Any]


class Interrupt(msgspec.Struct, frozen=True, tag="interrupt"):
    """Stop the response that a connection's model is making."""

    effect: int


class Activity(msgspec.Struct, frozen=True, tag="activity"):
    """Tell a connection's model that the user began or ceased to speak: it was opened to be told so."""

    effect: int
    speaking: bool


class EndAudio(msgspec.Struct, frozen=True, tag="end_audio"):
    """The microphone was paused: nothing more is to be waited for."""

    effect: int


class CutShort(msgspec.Struct, frozen=True, tag="cut_short"):
    """Tell a connection's model how much was heard of the response that was stopped."""

    effect: int
    heard_ms: int


class FinishSpeech(msgspec.Struct, frozen=True, tag="finish_speech"):
    """Everything of this generation was synthesised: mark its last frame."""

    generation: int


class Flush(msgspec.Struct, frozen=True, tag="flush"):
    """Nothing of this generation or an earlier one may be heard from now on."""

    generation: int


class Tell(msgspec.Struct, frozen=True, tag="tell"):
    """Tell the client about the moment."""

    moment: Moment


class FindCause(msgspec.Struct, frozen=True, tag="find_cause"):
    """Find out why the model behind an effect is late, and say so (`CauseFound`). It is never needed: a successor leaves it."""

    effect: int
    provider: str = ""


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The session is over: stop everything and give up the lease."""


Output = (
    StartEffect
    | CancelEffect
    | SetTimer
    | CancelTimer
    | Route
    | Play
    | Say
    | Answer
    | Interrupt
    | CutShort
    | Activity
    | EndAudio
    | FinishSpeech
    | Flush
    | FindCause
    | Tell
    | Close
)
