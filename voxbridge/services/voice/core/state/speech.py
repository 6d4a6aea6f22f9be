"""Speech under way in a session: the user's, and the agent's newest replies."""

from __future__ import annotations

import msgspec

from voxbridge.services.voice.core.state.reply import Reply, Stamps


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a long utterance, up to a pause, that is being transcribed while the user speaks on."""

    from_ms: int
    to_ms: int
    effect: int


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """Speech of the user, until the end of the turn is decided."""

    from_ms: int
    """Start of what is transcribed next; of a long utterance, what came before is in `piece` and `before`."""

    began_ms: int = -1
    """Start of the utterance; below 0 while it has no pieces."""

    before: str = ""
    """Words of its earlier pieces."""

    piece: Spoken | None = None
    to_ms: int | None = None
    """End of the last stretch of voice, ms of microphone audio; None while the user speaks."""

    paused_ms: int = -1
    """Place of the last pause whose words are transcribed ahead, in case it turns out to be the end; below 0 without one."""

    text: str | None = None
    """Transcript up to the end, or to the pause; None until it is available."""

    language: str = ""
    confidence: float | None = None
    final_effect: int | None = None
    turn_effect: int | None = None
    partial_effect: int | None = None
    stt_away: int = 0
    """Time since which its transcription fails, µs; 0 if it does not. See `model_retry`."""

    stamps: Stamps = Stamps()
    spares: bool = False
    """True while the agent goes on speaking, because too few words were said to stop it."""

    @property
    def complete(self) -> bool:
        """Tell whether the end of the turn is decided."""
        return self.stamps.end_of_turn is not None

    @property
    def pieces_under_way(self) -> tuple[int, ...]:
        """Return the effects that transcribe pieces of it."""
        return () if self.piece is None else (self.piece.effect,)


class Speech(msgspec.Struct, kw_only=True):
    """The agent's newest replies: the one that is made, and those whose heard part is not known yet."""

    reply: Reply | None = None
    trailing: tuple[Reply, ...] = ()
    """Replies that are still being heard while a later reply follows."""

    cut: Reply | None = None
    """Stopped reply whose heard part is not known yet."""

    cut_by_speech: bool = False
    withdrawn: Reply | None = None
    """Answer to a reopened turn, until it is known whether the speech that reopened it has words; see `reopening`."""

    paused: Reply | None = None
    """Earlier generation of the current reply, which was stopped to be continued; kept until it is known what was heard of it."""

    unplayed: Reply | None = None
    """Last reply, if it was ended by the clock after its client had stopped reporting; a client that resumes hears the rest."""

    resume: str = ""
    """Unheard text of a reply that speech cut off; said after all if the speech had no words."""

    redo: int = 0
    """Turn whose reply was cut off by speech before it had any words; answered after all if the speech had none."""

    broken: tuple[str, bool] | None = None
    """`(heard, waiting)`: words heard of a realtime model's response that a voice cut off, and whether the timer for the words of that
    voice runs; None once it is known whether there are any."""
