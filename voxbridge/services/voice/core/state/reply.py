"""A reply of the agent: one generation of speech, its pieces, and how far it was heard."""

from __future__ import annotations

import msgspec

from voxbridge.services.voice.core.outputs import ToolUse
from voxbridge.shared.events.voice import Usage


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


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply of the agent: one generation."""

    generation: int
    turn: int
    """Turn that it answers; 0 for a reply that answers no turn: a greeting or a notice."""

    pieces: tuple[Piece, ...] = ()
    unsplit: str = ""
    """Text not yet cut into pieces."""

    effect: int | None = None
    """Id of the running completion."""

    rounds: int = 0
    plain: bool = False
    """True if the model was asked once more, without functions."""

    calls: tuple[Call, ...] = ()
    first_piece: int = 0
    """Index of the first piece of the current round."""

    uses: tuple[ToolUse, ...] = ()
    """Calls made in the current round."""

    closed: bool = False
    """True if no more text will come."""

    sent: int | None = None
    """Time the first frame was sent, µs."""

    playing: bool = False
    played_ms: int = 0
    played_at: int | None = None
    """Time `played_ms` was reported, µs."""

    failed: bool = False
    apology: bool = False
    """True if it ends in an apology for a missing answer."""

    usage: Usage = Usage()
    stamps: Stamps = Stamps()

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

    held: bool = False
    """True while it must not be spoken, because it is not known yet what was heard of its earlier generation."""

    left_ms: int | None = None
    """Milliseconds of audio that had left for the client, for a stopped reply whose worker died; None if unknown."""

    llm_away: int = 0
    """Time since which its completion fails, µs; 0 if it does not. See `model_retry`."""

    tts_away: int = 0
    """Time since which its synthesis fails, µs; 0 if it does not."""

    halved: int = 0
    """Number of times the conversation sent to its model was halved, because the model rejected it as too long."""

    retrying: bool = False
    """True if its synthesis failed and must not be retried before the timer fires."""

    blind: bool = False
    """True for a paused reply whose client may have been away: audio that it did not report does not count as heard."""

    line: int = 0
    """Effect id of the realtime connection whose model speaks it; 0 for a reply of the cascade."""

    quiet: bool = False
    """True if all audio made so far was heard and more is expected."""

    goes_on: bool = False
    """True if its turn continues with another reply."""

    remembered: bool = False
    """True if its words are in the history already, because another reply follows it."""

    agent: str = ""
    voice: str = ""
    filler: bool = False
    """True if it holds only words that cover the wait for a realtime model, whose answer takes its place."""

    reopens: int = 0
    """Number of times its turn may still be reopened, as long as none of its audio was sent; see `reopening`."""
