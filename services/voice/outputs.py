"""What the voice core asks its shell to do, besides appending events (`shared.step.Append`)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from shared.functions import Function
from shared.moments import Moment

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
    """Transcribe a range of microphone audio, in ms from its start. A successor repeats it, from the audio that the bus kept."""

    from_ms: int
    to_ms: int


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


class Synthesize(msgspec.Struct, frozen=True, kw_only=True, tag="synthesize"):
    """Speak a piece of a reply; pieces of a generation are played in the order they were asked for. A successor repeats what had
    not been heard, from the start of the sentence that was heard in part, as a new generation."""

    generation: int
    text: str
    voice: str


Effect = Transcribe | JudgeTurn | Complete | Synthesize


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

    microphone: Literal["detector", "echo", "nobody"]


class FinishSpeech(msgspec.Struct, frozen=True, tag="finish_speech"):
    """Everything of this generation was synthesised: mark its last frame."""

    generation: int


class Flush(msgspec.Struct, frozen=True, tag="flush"):
    """Nothing of this generation or an earlier one may be heard from now on."""

    generation: int


class Tell(msgspec.Struct, frozen=True, tag="tell"):
    """Tell the client about the moment."""

    moment: Moment


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The session is over: stop everything and give up the lease."""


Output = StartEffect | CancelEffect | SetTimer | CancelTimer | Route | FinishSpeech | Flush | Tell | Close
