"""Events of a realtime model, the same for every provider: inputs of the voice core, written to the journal like all others. Pure.

Each carries `effect`, the id of its connection (`outputs.Connect`); the core ignores events of connections it no longer uses.
`audio_ms` is the microphone audio heard when the event came, in ms from the session's first sample. The audio of the model is not an
input: the shell plays it under the generation that the core named (`outputs.Play`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from voxbridge.shared.events.voice import Failure


class ProviderReady(msgspec.Struct, frozen=True, kw_only=True, tag="provider_ready"):
    """Readiness of a connection for audio. `resumed`: the model knows the conversation by its handle."""

    effect: int
    resumed: bool = False
    audio_ms: int = 0


class ProviderLost(msgspec.Struct, frozen=True, kw_only=True, tag="provider_lost"):
    """End of a connection, or failure to open it. `code` is the close code of its socket: 1006 if there was none, 0 if nothing was
    dialled. `handle_refused`: the provider refused the handle that was to be resumed."""

    effect: int
    code: int
    error: Failure
    handle_refused: bool = False
    audio_ms: int = 0


class GoingAway(msgspec.Struct, frozen=True, kw_only=True, tag="going_away"):
    """Announcement by the provider that it closes the connection in `left_ms`."""

    effect: int
    left_ms: int


class HandleUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="handle_updated"):
    """Change of whether the session can be resumed at the moment. `handle` is the reference under which the shell keeps a new handle;
    if it is empty, the last good handle stays valid."""

    effect: int
    handle: str = ""
    resumable: bool = True


class UserVoice(msgspec.Struct, frozen=True, kw_only=True, tag="user_voice"):
    """Report of the provider's detector that the user began or stopped speaking."""

    effect: int
    speaking: bool
    audio_ms: int = 0


class UserWords(msgspec.Struct, frozen=True, kw_only=True, tag="user_words"):
    """Further words of the user. `text` is appended to the earlier text of this `item`; with `whole` it replaces that text and is
    final."""

    effect: int
    text: str
    item: str = ""
    whole: bool = False
    audio_ms: int = 0


class AgentAudio(msgspec.Struct, frozen=True, kw_only=True, tag="agent_audio"):
    """Audio of the model: `ms` of this response so far. Reported with the first audio, each second, and with the last.
    `quiet`: all of it so far is nearly silent."""

    effect: int
    ms: int
    quiet: bool = False
    audio_ms: int = 0
    piece_ms: int | None = None
    """Milliseconds of audio that came with this event. If the response was not played until now, only this audio is heard. None in
    older journals."""


class AgentWords(msgspec.Struct, frozen=True, kw_only=True, tag="agent_words"):
    """Further transcript of what the model speaks, when `ms` of audio of this response had come."""

    effect: int
    text: str
    ms: int = 0
    piece_ms: int | None = None
    """As in `AgentAudio`; 0, since no audio comes with words."""


class AgentText(msgspec.Struct, frozen=True, kw_only=True, tag="agent_text"):
    """Text that the model wrote and does not speak."""

    effect: int
    text: str


class CallRequested(msgspec.Struct, frozen=True, kw_only=True, tag="call_requested"):
    """Function call requested by the model. `ref` is the provider's id of the call, valid on this connection only."""

    effect: int
    ref: str
    name: str
    arguments: dict[str, Any]


class CallsCancelled(msgspec.Struct, frozen=True, kw_only=True, tag="calls_cancelled"):
    """Cancellation by the provider of calls that it had requested."""

    effect: int
    refs: tuple[str, ...]


class Interrupted(msgspec.Struct, frozen=True, kw_only=True, tag="interrupted"):
    """Interruption of the model by the user: nothing more of the response may be heard. Also sent when no response is being made."""

    effect: int
    audio_ms: int = 0


class GenerationDone(msgspec.Struct, frozen=True, kw_only=True, tag="generation_done"):
    """Completion of the model's response, of `ms` of audio."""

    effect: int
    ms: int = 0


class ModelTurnDone(msgspec.Struct, frozen=True, kw_only=True, tag="model_turn_done"):
    """End of the model's turn. `reason` is the provider's, empty for a normal end; the provider counted the tokens. `waiting`: the model
    assumes that the user has not finished and there is nothing to answer yet."""

    effect: int
    reason: str = ""
    waiting: bool = False
    ms: int = 0
    quiet: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


class TokensCounted(msgspec.Struct, frozen=True, kw_only=True, tag="tokens_counted"):
    """Tokens that the provider counted after the end of the model's turn."""

    effect: int
    input_tokens: int = 0
    output_tokens: int = 0


ProviderInput = (
    ProviderReady
    | ProviderLost
    | GoingAway
    | HandleUpdated
    | UserVoice
    | UserWords
    | AgentAudio
    | AgentWords
    | AgentText
    | CallRequested
    | CallsCancelled
    | Interrupted
    | GenerationDone
    | ModelTurnDone
    | TokensCounted
)
