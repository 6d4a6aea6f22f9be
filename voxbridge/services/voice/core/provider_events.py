"""What a realtime model says, whichever it is: inputs of the voice core, journalled like all others. Pure.

Each carries `effect`, the id of the connection it came over (`outputs.Connect`); of a connection that is no longer wanted nothing
counts. `audio_ms` is how much microphone audio had been heard when it came, in ms from the session's first sample. Audio itself
never comes in here: the shell plays it under the generation that the core named (`outputs.Play`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from voxbridge.shared.events.voice import Failure


class ProviderReady(msgspec.Struct, frozen=True, kw_only=True, tag="provider_ready"):
    """The connection takes audio. `resumed`: the model knows the conversation by its handle."""

    effect: int
    resumed: bool = False
    audio_ms: int = 0


class ProviderLost(msgspec.Struct, frozen=True, kw_only=True, tag="provider_lost"):
    """The connection is over, or could not be opened. `code` is the close code of its socket, 1006 where there was none, 0 where
    nothing was dialled; `handle_refused`: it was refused because of the handle it was to resume."""

    effect: int
    code: int
    error: Failure
    handle_refused: bool = False
    audio_ms: int = 0


class GoingAway(msgspec.Struct, frozen=True, kw_only=True, tag="going_away"):
    """The provider is about to close the connection."""

    effect: int
    left_ms: int


class HandleUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="handle_updated"):
    """The session can, or for the moment cannot, be resumed. `handle` is the reference under which the shell keeps the new handle,
    empty when there is none with this news: the last good one stays good."""

    effect: int
    handle: str = ""
    resumable: bool = True


class UserVoice(msgspec.Struct, frozen=True, kw_only=True, tag="user_voice"):
    """The provider's detector: the user began or ceased to speak."""

    effect: int
    speaking: bool
    audio_ms: int = 0


class UserWords(msgspec.Struct, frozen=True, kw_only=True, tag="user_words"):
    """More of what the user said: `text` goes on where the last ended; with `whole` it replaces what came of this `item` before and
    is final."""

    effect: int
    text: str
    item: str = ""
    whole: bool = False
    audio_ms: int = 0


class AgentAudio(msgspec.Struct, frozen=True, kw_only=True, tag="agent_audio"):
    """The model speaks: `ms` of audio of this response so far. Comes with the first of it, each second, and with the last.
    `quiet`: all of it so far is next to silence."""

    effect: int
    ms: int
    quiet: bool = False
    audio_ms: int = 0
    piece_ms: int | None = None
    """Of these the audio that comes with this: all that is heard where nobody was to hear the response until now. Nothing in journals
    from before it was told."""


class AgentWords(msgspec.Struct, frozen=True, kw_only=True, tag="agent_words"):
    """More of the transcript of what the model speaks; `ms` of audio of this response had come."""

    effect: int
    text: str
    ms: int = 0
    piece_ms: int | None = None
    """As in `AgentAudio`: with words none comes."""


class AgentText(msgspec.Struct, frozen=True, kw_only=True, tag="agent_text"):
    """The model wrote text that it does not speak."""

    effect: int
    text: str


class CallRequested(msgspec.Struct, frozen=True, kw_only=True, tag="call_requested"):
    """The model wants a function called. `ref` is the provider's id of the call, good on this connection only."""

    effect: int
    ref: str
    name: str
    arguments: dict[str, Any]


class CallsCancelled(msgspec.Struct, frozen=True, kw_only=True, tag="calls_cancelled"):
    """The provider takes back calls that it had asked for."""

    effect: int
    refs: tuple[str, ...]


class Interrupted(msgspec.Struct, frozen=True, kw_only=True, tag="interrupted"):
    """The user spoke over the model: nothing more of its response may be heard. Comes also when nothing is being said."""

    effect: int
    audio_ms: int = 0


class GenerationDone(msgspec.Struct, frozen=True, kw_only=True, tag="generation_done"):
    """The model has made all of its response; `ms` of audio."""

    effect: int
    ms: int = 0


class ModelTurnDone(msgspec.Struct, frozen=True, kw_only=True, tag="model_turn_done"):
    """The model's turn is over. `reason` is what the provider said of it, empty for the usual end; tokens as it counted them.
    `waiting`: the model takes it that the user has not finished, and that there is nothing to answer yet."""

    effect: int
    reason: str = ""
    waiting: bool = False
    ms: int = 0
    quiet: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


class TokensCounted(msgspec.Struct, frozen=True, kw_only=True, tag="tokens_counted"):
    """What the provider counted after the model's turn was over."""

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
