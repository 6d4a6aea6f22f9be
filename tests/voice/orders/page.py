"""The loudspeaker of a call in virtual time: audio sent to the page, audio played, and the page's reports.

Generations are played one after the other, in the order in which `voxbridge.services.voice.audio.speaker` sends them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from voxbridge.shared.events import gateway


class Sound(msgspec.Struct):
    """The sound of a generation."""

    made: int = 0
    played: int = 0
    sent: bool = False
    finished: bool = False
    """All of it was made."""

    over: bool = False
    """True if it is not played any further."""


class Page:
    """The page. `plays` advances the time; `report` and `sent` are called with its results."""

    def __init__(self, report: Callable[[int, int, gateway.PlaybackState], None], sent: Callable[[int], None]) -> None:
        self.generations: dict[int, Sound] = {}
        self._report = report
        self._sent = sent
        self.flushed = 0
        self._newest = 0

    def add(self, generation: int, ms: int) -> None:
        """Add sound of a generation; sound of flushed or earlier generations is dropped."""
        if generation <= self.flushed or generation < self._newest:
            return
        self._newest = generation
        sound = self.generations.setdefault(generation, Sound())
        if not sound.over:
            sound.made += ms
            self.plays(0)

    @property
    def playing(self) -> bool:
        """True while there is anything to play or to report."""
        return any(not one.over and (one.played < one.made or one.finished) for one in self.generations.values())

    def plays(self, ms: int) -> None:
        """Advance the time at the loudspeaker."""
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
        """Mark a generation as completely made."""
        if generation in self.generations and generation == self._newest:
            self.generations[generation].finished = True

    def flush(self, generation: int, *, gone: bool) -> None:
        """Stop playing these generations and, unless the page is gone, report the played audio."""
        self.flushed = max(self.flushed, generation)
        for number, sound in self.generations.items():
            if number <= generation and not sound.over:
                sound.over = True
                if not gone:
                    self._report(number, sound.played, "flushed")

    def cut(self) -> None:
        """Lose the page's socket: nothing more is played or reported."""
        for sound in self.generations.values():
            sound.over = True

    def stop(self) -> None:
        """Limit all audio to what was already sent, because the worker died."""
        for sound in self.generations.values():
            if not sound.over:
                sound.made = min(sound.made, sound.played + 400)
