"""Post-processing of transcripts from a truncated encoder, without Whisper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voxbridge.services.models.engines.audio import RATE, Samples
from voxbridge.services.models.engines.stt import (
    CONTEXT_TOKENS,
    DENSE,
    DENSE_TOKENS_PER_SECOND,
    DENSE_WINDOW_SECONDS,
    MORE_TOKENS,
    READINGS,
    SHORT_SECONDS,
    WINDOW_SECONDS,
    Whisper,
    _Hint,
    _Reading,
    _windows,
    likelier,
    most_tokens,
    repeats,
    spoken_once,
)


@pytest.mark.parametrize(
    ("text", "seconds", "said"),
    [
        ("Set a timer. Set a timer.", 1.0, "Set a timer."),
        ("Where's my car? Where's my car? Where's my ca", 1.1, "Where's my car?"),
        ("Hello. Hello. Hello. Hello.", 0.5, "Hello."),
        ("No, no, no.", 1.5, "No, no, no."),
        ("Stop it. Stop it.", 1.5, "Stop it. Stop it."),
        ("One two three four five six seven.", 1.0, "One two three four five six seven."),
        ("", 1.0, ""),
        ("Yes.", 0.1, "Yes."),
    ],
)
def test_what_nobody_could_have_said_in_the_time_is_taken_once(text: str, seconds: float, said: str) -> None:
    assert spoken_once(text, seconds) == said


def test_a_long_recording_is_cut_where_it_is_quiet() -> None:
    samples = np.full(40 * RATE, 0.5, np.float32)
    samples[21 * RATE : 21 * RATE + RATE // 5] = 0
    first, second = _windows(samples)
    assert abs(first.size - 21 * RATE) < RATE // 4
    assert first.size + second.size == samples.size


@pytest.mark.parametrize("seconds", [29.1, 31, 45, 58, 58.1, 60, 87.5, 120])
def test_the_parts_of_a_long_recording_have_about_one_length(seconds: float) -> None:
    samples = np.random.default_rng(5).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)
    parts = [part.size / RATE for part in _windows(samples)]
    assert sum(parts) == pytest.approx(seconds)
    assert max(parts) <= WINDOW_SECONDS
    assert min(parts) >= 10, "no word is left by itself"


@pytest.mark.parametrize(("language", "seconds", "tokens"), [("bn", 7.5, 182), ("hi", 10.0, 132), ("en", 7.5, 30), ("ja", 10.0, 60)])
def test_the_words_of_an_ordinary_sentence_have_room(language: str, seconds: float, tokens: int) -> None:
    """The numbers are those of sentences at an ordinary speed, by the tokenizer of the model."""
    assert most_tokens(language, seconds) >= tokens


def test_what_is_read_at_once_fits_whispers_context() -> None:
    for language in DENSE:
        assert most_tokens(language, DENSE_WINDOW_SECONDS) < CONTEXT_TOKENS - 40
        assert most_tokens(language, DENSE_WINDOW_SECONDS) > DENSE_WINDOW_SECONDS * DENSE_TOKENS_PER_SECOND, "none of it is cut off"
    samples = np.full(40 * RATE, 0.5, np.float32)
    pieces = _windows(samples, DENSE_WINDOW_SECONDS)
    assert sum(piece.size for piece in pieces) == samples.size
    assert max(piece.size for piece in pieces) <= DENSE_WINDOW_SECONDS * RATE


def test_a_short_recording_stays_whole() -> None:
    samples = np.zeros(WINDOW_SECONDS * RATE, np.float32)
    assert [piece.size for piece in _windows(samples)] == [samples.size]


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("Ask not. Ask not.", True),
        ("What your country can do for you, what your country can do for you.", True),
        ("No, no.", True),
        ("What time is it in Tokyo?", False),
        ("And so my fellow Americans ask not", False),
        ("Yes.", False),
        ("", False),
    ],
)
def test_words_that_come_again_are_noticed(text: str, again: bool) -> None:
    assert repeats(text) is again


class Doubling(Whisper):
    """A truncated encoder that doubles the text unless enough silence follows."""

    def __init__(self, needs: int, said: str = "Ask not.") -> None:
        self.needs, self.said, self.read = needs, said, list[int]()

    def _tokenizer(self, language: str) -> Any:
        return None

    def _read(self, samples: Samples, tokenizer: Any, hint: _Hint, temperature: float, frames: int) -> _Reading:
        padding = frames - samples.size * 100 // RATE
        self.read.append(padding)
        return _Reading(self.said if padding >= self.needs else f"{self.said} {self.said}", -0.1, 0.0, frames)


def _noise(seconds: float) -> Samples:
    return np.full(int(seconds * RATE), 0.1, np.float32)


@pytest.mark.parametrize(
    ("whisper", "seconds", "paddings"),
    [
        (Doubling(0), 2.0, [200]),
        (Doubling(600), 2.0, [200, 600]),
        (Doubling(600), SHORT_SECONDS, [600]),
        (Doubling(0, "No, no, no."), 2.0, [200, 600]),
    ],
)
def test_a_short_recording_whose_words_repeat_themselves_is_read_with_more_silence(
    whisper: Doubling, seconds: float, paddings: list[int]
) -> None:
    assert whisper.transcribe(_noise(seconds)).text == whisper.said
    assert whisper.read == paddings


def test_what_repeats_itself_all_the_same_is_taken_once_where_nobody_could_have_said_it() -> None:
    whisper = Doubling(10_000, "Set a timer.")
    assert whisper.transcribe(_noise(1.0)).text == "Set a timer."
    assert whisper.transcribe(_noise(2.0)).text == "Set a timer. Set a timer."


NAMES = frozenset({"claude", "build"})


@pytest.mark.parametrize(
    ("first", "others", "taken"),
    [
        (("Ask Clause.", -0.39), [("Ask Claude.", -0.2), ("Ask Clause.", -0.35)], "Ask Claude."),
        (("Ask Clause.", -0.31), [("Ask clause.", -0.3), ("Ask Claude.", -0.4)], "Ask Claude."),
        (("Recommend the fill.", -0.66), [("Recommend a film.", -0.75), ("Recommend the build.", -0.8)], "Recommend the fill."),
        (("Watch all of them.", -0.69), [("Watch Build. Watch Build.", -0.23)], "Watch all of them."),
        (("Ask Clause.", -0.5), [("Ask Claude.", -0.45), ("In Build.", -0.4)], "In Build."),
        (("Ask Clause.", -0.5), [], "Ask Clause."),
    ],
)
def test_a_reading_with_a_name_is_taken_if_it_is_about_as_probable_as_the_best(
    first: tuple[str, float], others: list[tuple[str, float]], taken: str
) -> None:
    readings = [_Reading(text, logprob, 0.0, 300) for text, logprob in (first, *others)]
    assert likelier(readings[0], readings[1:], NAMES).text == taken


class Reading(Whisper):
    """A decoder with two readings of anything; a token is a letter of the text. `searches` has what was asked of it."""

    def __init__(self, first: str, logprob: float, second: str) -> None:
        self.first, self.logprob, self.second, self.searches = first, logprob, second, list[tuple[int, int]]()
        encoding = SimpleNamespace(encode=lambda mel: mel)
        self._model = SimpleNamespace(model=encoding, feature_extractor=lambda samples, padding: np.zeros((80, 600)))

    def _tokenizer(self, language: str) -> Any:
        ids = SimpleNamespace(sot_prev=0, sot_sequence=[1], no_timestamps=2, language_code=language)
        return SimpleNamespace(encode=lambda text: [*map(ord, text)], decode=lambda tokens: "".join(map(chr, tokens)), **vars(ids))

    def _generated(self, encoded: Any, start: list[int], tokens: int, **search: Any) -> Any:
        self.searches.append((search["beam_size"], tokens))
        texts = [self.first] if search["beam_size"] == 1 else [self.second]
        return SimpleNamespace(
            sequences_ids=[[*map(ord, text)] for text in texts], scores=[self.logprob for _ in texts], no_speech_prob=0.0
        )


@pytest.mark.parametrize(
    ("prompt", "first", "logprob", "heard", "searches"),
    [
        ("Tell Claude, in build.", "Ask Clause.", -0.5, "Ask Claude.", [1, READINGS]),
        ("Tell Claude, in build.", "Ask Clause.", -0.1, "Ask Clause.", [1]),
        ("Tell Claude, in build.", "Ask BUILD.", -0.5, "Ask BUILD.", [1]),
        ("The weather of today.", "Ask Clause.", -0.5, "Ask Clause.", [1]),
        ("", "Ask Clause.", -0.5, "Ask Clause.", [1]),
    ],
)
def test_names_are_looked_for_once_more_where_they_are_expected_and_the_words_are_unsure(
    prompt: str, first: str, logprob: float, heard: str, searches: list[int]
) -> None:
    whisper = Reading(first, logprob, "Ask Claude.")
    assert whisper.transcribe(_noise(1.0), "en", prompt).text == heard
    assert [beam for beam, _ in whisper.searches] == searches


def test_the_second_look_is_hardly_longer_than_the_first() -> None:
    whisper = Reading("Ask Clause.", -0.5, "Ask Claude.")
    whisper.transcribe(_noise(3.0), "en", "Tell Claude.")
    assert whisper.searches[1] == (READINGS, len("Ask Clause.") + MORE_TOKENS)
