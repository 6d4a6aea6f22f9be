"""Outputs of the voice core: requests to its shell, besides appending events (`voxbridge.shared.step.fold.Append`)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.bus.moments import Moment
from voxbridge.shared.language.conversation import Complete as Complete
from voxbridge.shared.language.conversation import Message as Message
from voxbridge.shared.language.conversation import ToolUse as ToolUse
from voxbridge.shared.step.fold import Append

AUDIO_END: Final = 2**31 - 1
"""End of an audio range, in ms, that stands for all audio received so far."""


class Transcribe(msgspec.Struct, frozen=True, kw_only=True, tag="transcribe"):
    """Request to transcribe a range of microphone audio, in ms from its start. A successor repeats it, from the audio that the bus kept.
    An empty provider or model stands for the installation's own."""

    from_ms: int
    to_ms: int
    provider: str = ""
    model: str = ""
    language: str = ""
    vocabulary: tuple[str, ...] = ()
    """Names and words that are likely in it."""


class JudgeTurn(msgspec.Struct, frozen=True, kw_only=True, tag="judge_turn"):
    """Request to judge from a range of audio whether the user has finished. A successor repeats it."""

    from_ms: int
    to_ms: int


class Synthesize(msgspec.Struct, frozen=True, kw_only=True, tag="synthesize"):
    """Request to speak a piece of a reply, with figures read in `language`. Pieces of a generation play in the order of their requests.
    A successor repeats what had not been heard, from the start of the sentence that was heard in part, as a new generation."""

    generation: int
    text: str
    voice: str
    language: str = ""
    provider: str = ""
    model: str = ""
    speed: float = 1.0
    """Factor by which it is spoken faster than usual."""

    cleaned: bool = True
    """True if figures, dates and the like are made speakable first."""

    whole: bool = False
    """Queue the audio in one step when all of it is made: audio of a realtime model, which may come any time, then never splits it."""


class Connect(msgspec.Struct, frozen=True, kw_only=True, tag="connect"):
    """Request to open a connection to a realtime model and report its messages (`provider_events`) until it is cancelled or lost. The
    previous connection is closed first. A successor opens a connection of its own: with the newest handle, or seeded from the log."""

    provider: str
    model: str
    voice: str
    language: str
    instructions: str
    functions: tuple[Function, ...] = ()
    history: tuple[Message, ...] = ()
    handle: str = ""
    """Reference of the handle to resume; empty for a new conversation."""

    audio_from_ms: int = 0
    """Position in the microphone audio, ms, from which on kept audio is sent over this connection."""

    delay_ms: int = 0
    """Milliseconds to wait before dialling."""

    manual_activity: bool = False
    """True if the model is told when the user speaks (`Activity`)."""

    speaking: bool = False
    """True if, with `manual_activity`, the user is already speaking."""

    search: bool = False


Effect = Transcribe | JudgeTurn | Complete | Synthesize | Connect


class StartEffect(msgspec.Struct, frozen=True, tag="start_effect"):
    """Request to start an effect, which ends with an input carrying `id`. It dies with its worker; `takeover` restarts it as its type
    documents."""

    id: int
    effect: Effect


class CancelEffect(msgspec.Struct, frozen=True, tag="cancel_effect"):
    """Request to stop an effect; the core ignores its further inputs."""

    id: int


class SetTimer(msgspec.Struct, frozen=True, tag="set_timer"):
    """Request to fire `TimerFired(name)` in `after_ms`, replacing a timer of this name. A successor resumes it with the time left."""

    name: str
    after_ms: int


class CancelTimer(msgspec.Struct, frozen=True, tag="cancel_timer"):
    """Request to cancel a timer."""

    name: str


class Route(msgspec.Struct, frozen=True, tag="route"):
    """Destination of microphone frames from now on."""

    microphone: Literal["detector", "provider", "echo", "nobody"]


class Play(msgspec.Struct, frozen=True, tag="play"):
    """Request to play further audio of a connection as this generation; 0: to drop it."""

    effect: int
    generation: int


class Say(msgspec.Struct, frozen=True, tag="say"):
    """Request to send text to a connection's model; with `respond` the model answers it."""

    effect: int
    text: str
    respond: bool = True


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """Request to send the result of a call that the model made on this connection."""

    effect: int
    ref: str
    name: str
    result: dict[str, Any]


class Interrupt(msgspec.Struct, frozen=True, tag="interrupt"):
    """Request to stop the response that a connection's model is making."""

    effect: int


class Activity(msgspec.Struct, frozen=True, tag="activity"):
    """Request to tell the model of a `manual_activity` connection that the user began or stopped speaking."""

    effect: int
    speaking: bool


class EndAudio(msgspec.Struct, frozen=True, tag="end_audio"):
    """Notice to the model that the microphone was paused: it need not wait for more audio."""

    effect: int


class CutShort(msgspec.Struct, frozen=True, tag="cut_short"):
    """Request to tell a connection's model how much was heard of the stopped response."""

    effect: int
    heard_ms: int


class FinishSpeech(msgspec.Struct, frozen=True, tag="finish_speech"):
    """Request to mark the last frame of a generation that is completely synthesised."""

    generation: int


class Flush(msgspec.Struct, frozen=True, tag="flush"):
    """Request to stop and drop all audio of this generation and of earlier ones."""

    generation: int


class Tell(msgspec.Struct, frozen=True, tag="tell"):
    """Request to send a moment, such as a state or a partial transcript, to the client."""

    moment: Moment


class FindCause(msgspec.Struct, frozen=True, tag="find_cause"):
    """Request to find out why the model of an effect is late (`CauseFound`). The answer is optional: a successor does not repeat it."""

    effect: int
    provider: str = ""


class ReadAhead(msgspec.Struct, frozen=True, kw_only=True, tag="read_ahead"):
    """Request to have the installation's own model read this beginning of a conversation before it is asked. The answer never depends on
    it: a successor does not repeat it. With `asked` it ends with what the user seems to have said, and the turn is not over yet."""

    model: str
    messages: tuple[Message, ...]
    functions: tuple[Function, ...]
    shared: bool = False
    asked: bool = False


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Request to stop everything and give up the lease: the session ended or was released."""


Output = (
    Append
    | StartEffect
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
    | ReadAhead
    | Tell
    | Close
)
