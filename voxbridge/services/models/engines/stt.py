"""Speech to text: Whisper on CTranslate2, with the encoder input cut to the length of the recording.

Whisper pads every recording to 30 s, which makes its cost a constant. Fewer frames give the same words in a fraction of the time. Where the
result is doubtful (improbable, empty), the full length is tried and the better result kept. A cut encoder input makes Whisper repeat a
sentence or a part of it, and the more often, the less silence follows the words. So a long recording gets more padding, and a short one as
well if its words repeat. Repetitions that are too fast to have been spoken are kept once (docs/models.md has the figures).

Where the prompt leads to expect names and the words have none of them and are unsure, the decoder looks once more, for several readings.
The best of them with such a name is taken if it is about as probable.

Owns no queue: the caller runs it in a thread, one recording at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from ctranslate2 import StorageView
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

from voxbridge.services.models.engines import expected
from voxbridge.services.models.engines.audio import RATE, Samples, level
from voxbridge.shared.errors import Code, VoxbridgeError

WINDOW_SECONDS: Final = 23
"""Seconds that are read at once: with `SAFE_PADDING_FRAMES` of silence they fit into Whisper's 30 s. With less silence after them, Whisper
leaves out the last clause now and then (of 2,313 words in stretches of 40 to 60 s it left out 71 with 29 s, 54 with 23 s)."""

CUT_SECONDS: Final = 5
"""Stretch in which the quietest place is looked for, to cut a long recording there."""

FULL_FRAMES: Final = 3_000
FRAMES_PER_SECOND: Final = 100
SILENCE_LEVEL: Final = 0.002
"""Level below which there is nothing to transcribe: -54 dBFS in the loudest 20 ms."""
DOUBTFUL_LOGPROB: Final = -0.8
NO_SPEECH: Final = 0.6
SURELY_NO_SPEECH: Final = 0.9
IMPROBABLE_LOGPROB: Final = -0.5
PADDING_FRAMES: Final = 200
"""Frames of silence after a short recording. Most questions are short, and every frame adds to the delay."""

SAFE_PADDING_FRAMES: Final = 600
"""Frames of silence after a long recording, and after a short one whose words repeat."""

SHORT_SECONDS: Final = 4.0
REPEATED_WORDS: Final = 3
"""Words in a row whose repetition may be an artefact of the encoder."""

MAX_TOKENS: Final = 224
TOKENS_PER_SECOND: Final = 8
DENSE: Final = frozenset(
    (
        "am",
        "as",
        "bn",
        "bo",
        "gu",
        "hi",
        "hy",
        "ka",
        "km",
        "kn",
        "lo",
        "ml",
        "mr",
        "my",
        "ne",
        "pa",
        "sa",
        "sd",
        "si",
        "ta",
        "te",
        "th",
        "ur",
    )
)
"""Languages whose letters the tokenizer spells with two or three tokens each: a Hindi sentence has three times those of an English one."""

DENSE_TOKENS_PER_SECOND: Final = 28
DENSE_MAX_TOKENS: Final = 400
DENSE_WINDOW_SECONDS: Final = 13
"""Seconds of such a language that are read at once, so that their words fit."""

SPARE_TOKENS: Final = 16
FASTEST_WORDS_PER_SECOND: Final = 4.5
"""Repeated words that come faster than this were not spoken."""
UNSURE_LOGPROB: Final = -0.3
"""Log-prob below which names are looked for once more."""

READINGS: Final = 5
"""Readings that are compared then."""

NEAR_LOGPROB: Final = 0.1
"""Distance below the best reading within which one with a name is taken."""

MORE_TOKENS: Final = 5
"""Tokens that such a reading may have more than the first one. A beam would go on to repeat itself for as long as it may."""

MAX_PROMPT_TOKENS: Final = 200
CONTEXT_TOKENS: Final = 448
"""Tokens of Whisper's context, the prompt included."""


class Transcript(msgspec.Struct, frozen=True):
    """The text of a recording. `seconds` is the recording's length; the log-prob is the mean over tokens; `frames` are those that the
    encoder read."""

    text: str
    language: str
    seconds: float
    avg_logprob: float = 0.0
    no_speech_prob: float = 0.0
    frames: int = 0


class _Hint(msgspec.Struct, frozen=True):
    """A prompt as the decoder takes it: tokens that stand before the words, and the names in them."""

    tokens: tuple[int, ...] = ()
    names: frozenset[str] = frozenset()


class _Reading(msgspec.Struct, frozen=True):
    text: str
    logprob: float
    no_speech: float
    frames: int

    @property
    def doubtful(self) -> bool:
        return not self.text or self.logprob < DOUBTFUL_LOGPROB

    @property
    def noise(self) -> bool:
        return (self.no_speech > NO_SPEECH and self.logprob < DOUBTFUL_LOGPROB) or (
            self.no_speech > SURELY_NO_SPEECH and self.logprob < IMPROBABLE_LOGPROB
        )


def repeats(text: str) -> bool:
    """Tell whether the words of a text repeat: all of them, or a few in a row."""
    words = _bare(text)
    if any(words[period:] == words[:-period] or (len(words) > period + 1 and _period(words, period)) for period in _periods(words)):
        return True
    runs = [tuple(words[at : at + REPEATED_WORDS]) for at in range(len(words) - REPEATED_WORDS + 1)]
    return len(set(runs)) < len(runs)


def spoken_once(text: str, seconds: float) -> str:
    """Return the repeated part once, if a text repeats it faster than anyone could speak (the last repetition may be cut off)."""
    words = text.split()
    if len(words) / max(seconds, 0.1) <= FASTEST_WORDS_PER_SECOND:
        return text
    bare = _bare(text)
    period = next((period for period in _periods(words) if _period(bare, period)), None)
    return text if period is None else " ".join(words[:period])


def _bare(text: str) -> list[str]:
    return [word.strip(".,!?;:").lower() for word in text.split()]


def _periods(words: list[str]) -> range:
    return range(1, len(words) // 2 + 1)


def _period(words: list[str], period: int) -> bool:
    # The last word may be incomplete, so it is not compared.
    return all(words[i] == words[i - period] for i in range(period, len(words) - 1))


class Whisper:
    """A loaded Whisper model. Not thread-safe."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._model: Any = WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1, local_files_only=True
        )
        self.multilingual: bool = self._model.model.is_multilingual

    def warm(self) -> None:
        """Run once: the first pass allocates memory, and a user should not wait for that."""
        self._read(np.zeros(RATE, np.float32), self._tokenizer("en"), _Hint(), 0.0, FRAMES_PER_SECOND * 2)

    def transcribe(self, samples: Samples, language: str = "en", prompt: str = "", temperature: float = 0.0) -> Transcript:
        """Return the words of a recording; empty for silence and noise. Raises `INVALID_ARGUMENT` for an unknown language."""
        tokenizer = self._tokenizer(language)
        seconds = samples.size / RATE
        if level(samples) < SILENCE_LEVEL:
            return Transcript("", language, seconds, no_speech_prob=1.0)
        room = 0 if language in DENSE else MAX_PROMPT_TOKENS
        hint = _Hint()
        if room and prompt.strip():
            hint = _Hint(tuple(tokenizer.encode(" " + prompt.strip())[-room:]), expected.names(prompt))
        readings = [self._window(window, tokenizer, hint, temperature) for window in _windows(samples, _window_s(language))]
        return Transcript(
            " ".join(reading.text for reading in readings if reading.text),
            language,
            seconds,
            float(np.mean([reading.logprob for reading in readings])),
            min(reading.no_speech for reading in readings),
            sum(reading.frames for reading in readings),
        )

    def _window(self, samples: Samples, tokenizer: Any, hint: _Hint, temperature: float) -> _Reading:
        short = samples.size < SHORT_SECONDS * RATE
        frames = _frames(samples, PADDING_FRAMES if short else SAFE_PADDING_FRAMES)
        best = self._read(samples, tokenizer, hint, temperature, frames)
        if short and repeats(best.text):
            frames = _frames(samples, SAFE_PADDING_FRAMES)
            best = self._read(samples, tokenizer, hint, temperature, frames)
        if best.doubtful and frames < FULL_FRAMES:
            full = self._read(samples, tokenizer, hint, temperature, FULL_FRAMES)
            if (not full.doubtful, bool(full.text), full.logprob) > (not best.doubtful, bool(best.text), best.logprob):
                best = full
        text = "" if best.noise else spoken_once(best.text, samples.size / RATE)
        return msgspec.structs.replace(best, text=text)

    def _read(self, samples: Samples, tokenizer: Any, hint: _Hint, temperature: float, frames: int) -> _Reading:
        padded = np.pad(samples, (0, max(0, frames * (RATE // FRAMES_PER_SECOND) - samples.size)))
        mel = self._model.feature_extractor(padded, padding=0)[None, :, :frames]
        encoded = self._model.model.encode(StorageView.from_array(np.ascontiguousarray(mel, np.float32)))
        start = [*([tokenizer.sot_prev, *hint.tokens] if hint.tokens else []), *tokenizer.sot_sequence, tokenizer.no_timestamps]
        most = most_tokens(tokenizer.language_code, samples.size / RATE)
        result = self._generated(encoded, start, most, beam_size=1, sampling_temperature=temperature, sampling_topk=0 if temperature else 1)
        first = _readings(result, tokenizer, frames)[0]
        if not hint.names or first.logprob > UNSURE_LOGPROB or first.noise or expected.has_one(first.text, hint.names):
            return first
        most = min(most, len(result.sequences_ids[0]) + MORE_TOKENS)
        result = self._generated(encoded, start, most, beam_size=READINGS, num_hypotheses=READINGS)
        return likelier(first, _readings(result, tokenizer, frames), hint.names)

    def _generated(self, encoded: Any, start: list[int], tokens: int, **search: Any) -> Any:
        return self._model.model.generate(
            encoded,
            [start],
            max_length=min(CONTEXT_TOKENS, len(start) + tokens),
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=[-1],
            **search,
        )[0]

    def _tokenizer(self, language: str) -> Any:
        if not self.multilingual and language != "en":
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"This model knows English only, not {language!r}.", field="language", limit="en")
        try:
            return Tokenizer(self._model.hf_tokenizer, self.multilingual, task="transcribe", language=language)
        except ValueError as error:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"{language!r} is not a language code of Whisper, such as en or de.", field="language"
            ) from error


def _readings(result: Any, tokenizer: Any, frames: int) -> list[_Reading]:
    return [
        _Reading(tokenizer.decode(tokens).strip(), score * len(tokens) / (len(tokens) + 1), result.no_speech_prob, frames)
        for tokens, score in zip(result.sequences_ids, result.scores, strict=True)
    ]


def likelier(first: _Reading, others: list[_Reading], names: frozenset[str]) -> _Reading:
    """Return the best reading with one of the names if no reading is more than `NEAR_LOGPROB` more probable, else the first one. What
    repeats itself does not count: a repetition makes any words probable."""
    others = [reading for reading in others if not repeats(reading.text)]
    best = max(reading.logprob for reading in (first, *others))
    named = [reading for reading in others if expected.has_one(reading.text, names) and reading.logprob >= best - NEAR_LOGPROB]
    return max(named, key=lambda reading: reading.logprob, default=first)


def _frames(samples: Samples, padding: int) -> int:
    """Return the number of frames of a recording and the silence after it, as an even number."""
    return min(FULL_FRAMES, (samples.size * FRAMES_PER_SECOND // RATE + padding + 1) // 2 * 2)


def most_tokens(language: str, seconds: float) -> int:
    """Return how many tokens the words of so many seconds may have; what repeats itself has more, and is cut off there."""
    if language in DENSE:
        return min(DENSE_MAX_TOKENS, SPARE_TOKENS + int(DENSE_TOKENS_PER_SECOND * seconds))
    return min(MAX_TOKENS, SPARE_TOKENS + int(TOKENS_PER_SECOND * seconds))


def _window_s(language: str) -> int:
    return DENSE_WINDOW_SECONDS if language in DENSE else WINDOW_SECONDS


def _windows(samples: Samples, seconds: int = WINDOW_SECONDS) -> list[Samples]:
    """Split into parts of at most so many seconds and of about one length, each cut where it is quietest within `CUT_SECONDS`. Were each as
    long as possible, the rest might be a word or two, and a word by itself is often taken for noise."""
    parts, most, step, reach = [], seconds * RATE, RATE // 10, CUT_SECONDS * RATE
    while samples.size > most:
        even = samples.size // -(-samples.size // most)
        first = min(even - reach // 2, most - reach)
        around = samples[first : first + reach].reshape(-1, step)
        cut = first + int(np.argmin(np.mean(np.square(around), axis=1))) * step + step // 2
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]
