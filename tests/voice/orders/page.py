"""The loudspeaker of a call in virtual time: what left for the page, what of it was played, and what the page tells of it.

Generations are played one after the other, as `voxbridge.services.voice.audio.speaker` sends and the page plays them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from voxbridge.shared.events import gateway


class Sound(msgspec.Struct):
    """The sound of one generation."""

    made: int = 0
    played: int = 0
    sent: bool = False
    finished: bool = False
    """Nothing more will be made of it."""

    over: bool = False
    """Nothing more of it is played."""


class Page:
    """`plays` lets time pass; `report` and `sent` hear what comes of it."""

    def __init__(self, report: Callable[[int, int, gateway.PlaybackState], None], sent: Callable[[int], None]) -> None:
        self.generations: dict[int, Sound] = {}
        self._report = report
        self._sent = sent
        self.flushed = 0
        self._newest = 0

    def add(self, generation: int, ms: int) -> None:
        """More of a generation's sound is there; what is of no use any more is dropped."""
        if generation <= self.flushed or generation < self._newest:
            return
        self._newest = generation
        sound = self.generations.setdefault(generation, Sound())
        if not sound.over:
            sound.made += ms
            self.plays(0)

    @property
    def playing(self) -> bool:
        """Whether there is anything to play or to tell."""
        return any(not one.over and (one.played < one.made or one.finished) for one in self.generations.values())

    def plays(self, ms: int) -> None:
        """Time passes at the loudspeaker."""
        for number in sorted(self.generations):
            sound = self.generations[number]
            if sound.over:
                continue
            if not sound.sent and sound.made:
                sound.sent = True
                self._sent(number)
            before, sound.played = sound.played, min(sound.made, sound.played + ms)
            ms -= sound.played - before
            if sound.played and (not before or before // 1_000 != sound.played // 1_000):
                self._report(number, sound.played, "playing")
            if sound.played < sound.made or not (sound.finished or self._newest > number):
                return
            sound.over = True
            self._report(number, sound.played, "finished")

    def finish(self, generation: int) -> None:
        """All of a generation was made."""
        if generation in self.generations and generation == self._newest:
            self.generations[generation].finished = True

    def flush(self, generation: int, *, gone: bool) -> None:
        """Play nothing more of these generations, and tell what was heard."""
        self.flushed = max(self.flushed, generation)
        for number, sound in self.generations.items():
            if number <= generation and not sound.over:
                sound.over = True
                if not gone:
                    self._report(number, sound.played, "flushed")

    def cut(self) -> None:
        """The page's socket is gone: what it had is not played to its end, nor is that told."""
        for sound in self.generations.values():
            sound.over = True

    def stop(self) -> None:
        """Nothing more leaves: the worker died."""
        for sound in self.generations.values():
            if not sound.over:
                sound.made = min(sound.made, sound.played + 400)
