"""A reply of the agent: one generation of speech, its pieces, and how far it was heard."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.events.voice import Usage
from voxbridge.shared.language.conversation import ToolUse


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """Times at which the stages of a turn were reached, µs of the Unix clock."""

    speech_ended: int | None = None
    end_of_turn: int | None = None
    stt_final: int | None = None
    llm_first_token: int | None = None
    first_sentence: int | None = None
    tts_first_audio: int | None = None
    first_audio_sent: int | None = None
    first_audio_heard: int | None = None


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a reply that is synthesised in one request. `ms` is the audio made of it so far."""

    text: str
    effect: int | None = None
    ms: int = 0
    done: bool = False
    filler: str = ""
    """Words that cover a wait; `text` is then empty. They never enter the history."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An open function call of a cascade reply."""

    call_id: str
    name: str
    browser: bool = False


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a function that the user's plain words make: a macro is run, a tour steered, a text typed into a terminal."""

    name: str
    arguments: dict[str, Any] = {}


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of the language model for a reply: what it writes until it ends, or calls functions whose results it is given next."""

    effect: int | None = None
    """Id of the running completion."""

    number: int = 0
    """Number of rounds of this reply, this one included."""

    plain: bool = False
    """True if the model was asked once more, without functions."""

    order: Order | None = None
    """Call that the user's own words make in this round, without a model; its result is said as it is."""

    calls: tuple[Call, ...] = ()
    uses: tuple[ToolUse, ...] = ()
    """Calls made in this round."""

    first_piece: int = 0
    """Index of the first piece of this round."""

    unsplit: str = ""
    """Text not yet cut into pieces."""

    written: str = ""
    """Unchanged text that the model wrote in this round."""

    known: str = ""
    """Text of a completion that was lost; of the completion that replaces it, only text beyond this is used."""

    again: str = ""
    """Text of the replacing completion, until it goes beyond `known`."""

    before: str = ""
    """Whole sentences of this round that were heard under an earlier generation."""

    part: str = ""
    """Words heard of the sentence that is being said again."""

    away_since: int = 0
    """Time since which the completion fails, µs; 0 if it does not. See `model_retry`."""

    halved: int = 0
    """Number of times the conversation sent to the model was halved, because the model rejected it as too long."""


class Synthesis(msgspec.Struct, frozen=True, kw_only=True):
    """State of the speech synthesis of a reply."""

    held: bool = False
    """True while it must not be spoken, because it is not known yet what was heard of its earlier generation."""

    retrying: bool = False
    """True if its synthesis failed and must not be retried before the timer fires."""

    away_since: int = 0
    """Time since which the synthesis fails, µs; 0 if it does not."""


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a reply on its way to the ear. Times are µs of the Unix clock."""

    sent: int | None = None
    """Time the first frame was sent."""

    playing: bool = False
    played_ms: int = 0
    played_at: int | None = None
    """Time `played_ms` was reported."""

    quiet: bool = False
    """True if all audio made so far was heard and more is expected."""

    left_ms: int | None = None
    """Milliseconds of audio that had left for the client, for a stopped reply whose worker died; None if unknown."""

    blind: bool = False
    """True for a paused reply whose client may have been away: audio that it did not report does not count as heard."""


class SpokenBy(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that speaks a reply, and its voice; both are empty if the agent has no name."""

    agent: str = ""
    voice: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply of the agent: one generation."""

    generation: int
    turn: int
    """Turn that it answers; 0 for a reply that answers no turn: a greeting or a notice."""

    kind: Literal["words", "filler", "failed", "apology"] = "words"
    """`filler`: it holds only words that cover the wait for a realtime model, whose answer takes its place. `failed`: its model failed, and
    it ends in words that say so; `apology`: the same, and the event says that these words are an apology."""

    connection: int = 0
    """Effect id of the realtime connection whose model speaks it; 0 for a reply of the cascade."""

    speaker: SpokenBy = SpokenBy()
    pieces: tuple[Piece, ...] = ()
    round: Round = Round()
    synthesis: Synthesis = Synthesis()
    playback: Playback = Playback()
    closed: bool = False
    """True if no more text will come."""

    goes_on: bool = False
    """True if its turn continues with another reply."""

    remembered: bool = False
    """True if its words are in the history already, because another reply follows it."""

    reopens: int = 0
    """Number of times its turn may still be reopened, as long as none of its audio was sent; see `reopening`."""

    usage: Usage = Usage()
    stamps: Stamps = Stamps()

    @property
    def filler(self) -> bool:
        """True if it holds only words that cover a wait."""
        return self.kind == "filler"

    @property
    def failed(self) -> bool:
        """True if it ends in words for a missing answer."""
        return self.kind in ("failed", "apology")
