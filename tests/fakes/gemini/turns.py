"""What the fake Gemini says, and how it hears that the user has spoken. Pure: positions are those of the audio, never of a clock."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

INPUT_RATE: Final = 16_000
OUTPUT_RATE: Final = 24_000
PIECE_MS: Final = 40
_PIECE: Final = OUTPUT_RATE * 2 * PIECE_MS // 1_000
_WINDOW: Final = INPUT_RATE * 2 * 20 // 1_000
_SECOND: Final[bytes] = (np.sin(np.arange(OUTPUT_RATE) * (2 * math.pi * 220 / OUTPUT_RATE)) * 8_000).astype("<i2").tobytes()


class Line(NamedTuple):
    """One line of a conversation as the service remembers it: `role` is user, model or function."""

    role: str
    text: str


@dataclass(frozen=True)
class Call:
    """A function that the model wants called. An `id` is made where none is given."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Turn:
    """A turn of the model. What is left out does not happen; the order is `hears`, `says`, `calls`, `after`."""

    hears: str | Sequence[str] = ""
    """What the user is taken to have said aloud: the pieces of the input transcription, or a text that is cut into words."""

    says: str = ""
    """Spoken: pieces of the output transcription, each with its audio. Where the session answers in text: text."""

    calls: Sequence[Call] = ()
    """Asked for in one message. A blocking turn goes on when each of them is answered."""

    after: str | Turn = ""
    """What follows when the calls are answered. A turn here may call again."""

    blocking: bool | None = None
    """Whether the model waits for the calls; nothing: as the functions were declared."""

    unordered: bool = False
    """The input transcription comes behind what the model says."""

    text_only: bool = False
    """Written and not spoken, although audio was asked for."""

    quiet: bool = False
    """The audio is silence."""

    pcm: bytes = b""
    """Audio to send instead of the usual tone: PCM16 at 24 kHz."""

    ms_per_char: int = 60
    empty: bool = False
    """Nothing but `turnComplete`."""

    reason: str = ""
    """`turnCompleteReason`."""

    usage: tuple[int, int] = (12, 34)
    """Tokens of the prompt and of the response."""

    stops_at_ms: int | None = None
    """After so much audio it waits, until it is interrupted or told to go on."""

    cancels: bool = False
    """The user who speaks while calls are open interrupts the turn, and the calls are taken back."""

    unresumable: bool = False
    """With the calls comes the news that the session cannot be resumed for now."""

    @property
    def speaks(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.says or self.pcm or self.calls or self.empty)


def words(text: str | Sequence[str]) -> list[str]:
    """The pieces in which a transcription comes: all but the first begin with a space."""
    if not isinstance(text, str):
        return list(text)
    first, *rest = text.split() or [""]
    return [first, *(f" {word}" for word in rest)] if first else []


def spoken(turn: Turn) -> Iterator[tuple[str, list[bytes]]]:
    """Each piece of the transcript, with its audio in messages of up to 40 ms."""
    texts = words(turn.says) or ([""] if turn.pcm else [])
    lengths = [len(text) * turn.ms_per_char * OUTPUT_RATE // 1_000 * 2 for text in texts]
    if turn.pcm:
        share = len(turn.pcm) // (2 * len(texts)) * 2
        lengths = [share] * (len(texts) - 1) + [len(turn.pcm) - share * (len(texts) - 1)]
    at = 0
    for text, length in zip(texts, lengths, strict=True):
        pcm = turn.pcm[at : at + length] if turn.pcm else bytes(length) if turn.quiet else _tone(at, length)
        at += length
        yield text, [pcm[start : start + _PIECE] for start in range(0, length, _PIECE)]


def content(**fields: Any) -> dict[str, Any]:
    """A `serverContent` message."""
    return {"serverContent": fields}


def audio_content(pcm: bytes) -> dict[str, Any]:
    """Audio of the model's turn."""
    blob = {"mimeType": f"audio/pcm;rate={OUTPUT_RATE}", "data": base64.b64encode(pcm).decode()}
    return content(modelTurn={"parts": [{"inlineData": blob}]})


def usage(turn: Turn) -> dict[str, Any]:
    """`usageMetadata` of a turn."""
    prompt, response = turn.usage
    return {
        "promptTokenCount": prompt,
        "responseTokenCount": response,
        "totalTokenCount": prompt + response,
        "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": prompt}],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": response}],
    }


class Ear:
    """Tells speech by its loudness: the stand-in for the service's own detector."""

    def __init__(self, *, silence_ms: int, rms: int = 500, onset_ms: int = 40) -> None:
        self.speaking = False
        self._rest = b""
        self._loud_ms = self._still_ms = 0
        self._silence_ms, self._onset_ms, self._square = silence_ms, onset_ms, rms * rms

    def hear(self, pcm: bytes) -> Iterator[bool]:
        """Take audio (PCM16 at 16 kHz). Gives True where speech began in it, False where it ended."""
        pcm = self._rest + pcm
        whole = len(pcm) // _WINDOW * _WINDOW
        self._rest = pcm[whole:]
        if not whole:
            return
        windows = np.frombuffer(pcm[:whole], "<i2").reshape(-1, _WINDOW // 2).astype(np.float32)
        for loud in np.mean(windows * windows, axis=1) >= self._square:
            self._loud_ms = self._loud_ms + 20 if loud else 0
            self._still_ms = 0 if loud else self._still_ms + 20
            if not self.speaking and self._loud_ms >= self._onset_ms:
                self.speaking = True
                yield True
            elif self.speaking and self._still_ms >= self._silence_ms:
                self.speaking = False
                yield False

    def close(self) -> bool:
        """The stream ended. Returns whether speech ended with it."""
        ended, self.speaking = self.speaking, False
        self._rest, self._loud_ms, self._still_ms = b"", 0, 0
        return ended


def _tone(at: int, length: int) -> bytes:
    start = at % len(_SECOND)
    return (_SECOND * (length // len(_SECOND) + 2))[start : start + length]
