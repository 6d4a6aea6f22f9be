"""Barge-in: the time that the agent goes on speaking after the user's onset, measured in the page, sample by sample.

Used by a test and by `make bench`. Both ends are on the sound device's clock: the first sample of speech from the microphone, and the last
sample of the interrupted reply at the loudspeaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from tests.browser.stage.speech import LOUD, Sound
from tests.browser.stage.studio import Recording, Studio

QUIET: Final = 1e-3
"""Level of silence: -60 dB."""

TAIL_S: Final = 0.2
"""Seconds after the flush that are checked: sound of the old reply in them would be counted."""

REQUESTS: Final = tuple(
    f"Tell me a long story about {theme}, with at least twelve sentences."
    for theme in ("the sea", "a mountain", "a small town", "a journey")
)
HEARD_S: Final = 1.0
"""Seconds of an answer that are heard before it is interrupted."""

WORDS: Final = 8
ANSWERS: Final = """(s, count) => s.conversation.some(
  (e) => e.kind === 'said' && e.role === 'assistant' && !e.final && e.text.trim().split(/\\s+/).length >= count)"""
"""Tests whether more is being said than the few words that fill a wait: a slow model's answer comes behind those."""


@dataclass(frozen=True)
class BargeIn:
    """An interruption; times in seconds on the sound device's clock."""

    generation: int
    onset: float
    flushed: float
    """Time at which the page was told to stop. A reply can be silent earlier, at a pause."""

    silent: float

    @property
    def ms(self) -> float:
        """Milliseconds from the onset to lasting silence."""
        return (max(self.silent, self.flushed) - self.onset) * 1_000


def measured(studio: Studio, clips: Mapping[str, Sound], times: int) -> list[BargeIn]:
    """Measure that many interruptions, each in a call of its own, with the clips in turn. The page is open in Talk, without a call."""
    found = []
    for index, name in zip(range(times), cycle(clips)):
        studio.open()
        studio.load(name, clips[name])
        studio.start()
        studio.until_quiet()
        found.append(interrupted(studio, name, REQUESTS[index % len(REQUESTS)]))
        studio.end()
    return found


def interrupted(studio: Studio, clip: str, request: str = REQUESTS[0]) -> BargeIn:
    """Ask for a long answer by keyboard, and speak `clip` once the answer is heard. The session must be connected and quiet."""
    studio.type(request)
    studio.until(ANSWERS, WORDS)
    studio.heard(HEARD_S)  # of the answer: the words that fill a wait come before it
    begun = studio.now()
    flushes = len(studio.marks()["flushes"])
    studio.say(clip)
    studio.page.wait_for_function("(count) => window.__voxbridge.marks().flushes.length > count", arg=flushes)
    studio.after(TAIL_S)
    flush = studio.marks()["flushes"][flushes]
    flushed = float(flush["time"])
    onset = studio.recorded().first_loud(LOUD, begun)
    assert onset is not None, "the microphone stayed quiet"
    assert onset < flushed, "it stopped before anybody spoke"
    return BargeIn(int(flush["generation"]), onset, flushed, _silence(studio.played(), onset, flushed))


def _silence(played: Recording, onset: float, flushed: float) -> float:
    """Return the time of the last sound of the reply. Nothing else plays until `flushed`; the next reply comes only after a pause."""
    assert played.last_loud(QUIET, onset) is not None, "nothing was being said"
    last = played.last_loud(QUIET, flushed + TAIL_S)
    assert last is not None
    return last
