"""How often a client is shown a text that grows: every message to a client has all of it, so words come together in one.

Owns the rate, and the text that waits for its time. Does not own what a text is made of (`voxbridge.shared.bus.partials`). A crash here
loses what is shown next anyway. Pure.
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.bus.partials import Composer

EVERY_S: Final = 0.1
"""Between two messages with the same text: a reader sees no difference, and a long text costs no more than ten times itself a second."""


class Captions:
    """Of one connection. Times are seconds of a clock that does not jump."""

    def __init__(self) -> None:
        self._composer = Composer()
        self._shown: dict[str, tuple[tuple[int, int], float]] = {}
        self._held: dict[str, PartialTranscript] = {}

    def take(self, piece: PartialTranscript, now: float) -> list[PartialTranscript]:
        """Return what is to be shown now that this piece came from the bus. A text that begins waits for nothing; one that goes on
        is held until it is `due`, in place of what was held of it before."""
        text = self._composer.take(piece)
        if text is None:
            return []
        held = self._held.pop(text.role, None)
        before = [held] if held is not None and _about(held) != _about(text) else []
        about, at = self._shown.get(text.role, (None, 0.0))
        if about == _about(text) and now - at < EVERY_S:
            self._held[text.role] = text
            return before
        self._shown[text.role] = _about(text), now
        return [*before, text]

    def due(self) -> float | None:
        """Return when the first of what is held is to be shown; nothing when nothing is."""
        return min((self._shown[role][1] + EVERY_S for role in self._held), default=None)

    def release(self, now: float, *, early: bool = False) -> list[PartialTranscript]:
        """Return what is held and due by now; all that is held where it is `early`: something else is told next, and stays behind it."""
        texts = [text for role, text in self._held.items() if early or self._shown[role][1] + EVERY_S <= now]
        for text in texts:
            del self._held[text.role]
            self._shown[text.role] = _about(text), now
        return texts


def _about(text: PartialTranscript) -> tuple[int, int]:
    return text.turn, text.generation
