"""Turns of the fake Gemini, and its speech detector. Pure: positions are those of the audio, never of a clock."""

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
    """A line of a conversation as the service keeps it: `role` is user, model or function."""

    role: str
    text: str


@dataclass(frozen=True)
class Call:
    """A function call of the model. An `id` is made where none is given."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Turn:
    """A turn of the model. Empty parts are skipped; the order is `hears`, `says`, `calls`, `after`."""

    hears: str | Sequence[str] = ""
    """Transcript of the user's speech: the pieces of the input transcription, or a text that is split into words."""

    says: str = ""
    """Speech: pieces of the output transcription, each with its audio. In a session that answers in text: text."""

    calls: Sequence[Call] = ()
    """Calls, all in one message. A blocking turn continues when each of them is answered."""

    after: str | Turn = ""
    """Continuation after the answers to the calls. A turn here may call again."""

    blocking: bool | None = None
    """The model waits for the calls; None: as the functions were declared."""

    unordered: bool = False
    """The input transcription is sent after the model's output."""

    text_only: bool = False
    """Text instead of speech, although audio was requested."""

    quiet: bool = False
    """The audio is silence."""

    pcm: bytes = b""
    """Audio to send instead of the usual tone: PCM16 at 24 kHz."""

    ms_per_char: int = 60
    empty: bool = False
    """Nothing but `turnComplete`."""

    reason: str = ""
    """Value of `turnCompleteReason`."""

    usage: tuple[int, int] = (12, 34)
    """Tokens of the prompt and of the response."""

    stops_at_ms: int | None = None
    """Milliseconds of audio after which it waits, until it is interrupted or continued."""

    cancels: bool = False
    """A user who speaks while calls are open interrupts the turn, and the calls are cancelled."""

    unresumable: bool = False
    """The calls come with the notice that the session cannot be resumed for now."""

    @property
    def speaks(self) -> bool:
        """True when the turn has any content."""
        return bool(self.says or self.pcm or self.calls or self.empty)


def words(text: str | Sequence[str]) -> list[str]:
    """Return the pieces of a transcription: all but the first begin with a space."""
    if not isinstance(text, str):
        return list(text)
    first, *rest = text.split() or [""]
    return [first, *(f" {word}" for word in rest)] if first else []


def spoken(turn: Turn) -> Iterator[tuple[str, list[bytes]]]:
    """Yield each piece of the transcript, with its audio in messages of up to 40 ms."""
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
    """Return a `serverContent` message."""
    return {"serverContent": fields}


def audio_content(pcm: bytes) -> dict[str, Any]:
    """Return a message with audio of the model's turn."""
    blob = {"mimeType": f"audio/pcm;rate={OUTPUT_RATE}", "data": base64.b64encode(pcm).decode()}
    return content(modelTurn={"parts": [{"inlineData": blob}]})


def usage(turn: Turn) -> dict[str, Any]:
    """Return the `usageMetadata` of a turn."""
    prompt, response = turn.usage
    return {
        "promptTokenCount": prompt,
        "responseTokenCount": response,
        "totalTokenCount": prompt + response,
        "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": prompt}],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": response}],
    }


class Ear:
    """Speech detector by loudness: the stand-in for the service's own."""

    def __init__(self, *, silence_ms: int, rms: int = 500, onset_ms: int = 40) -> None:
        self.speaking = False
        self._rest = b""
        self._loud_ms = self._still_ms = 0
        self._silence_ms, self._onset_ms, self._square = silence_ms, onset_ms, rms * rms

    def hear(self, pcm: bytes) -> Iterator[bool]:
        """Process audio (PCM16 at 16 kHz). Yield True where speech begins, False where it ends."""
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
        """End the stream. Return whether speech was under way."""
        ended, self.speaking = self.speaking, False
        self._rest, self._loud_ms, self._still_ms = b"", 0, 0
        return ended


def _tone(at: int, length: int) -> bytes:
    start = at % len(_SECOND)
    return (_SECOND * (length // len(_SECOND) + 2))[start : start + length]
