"""A limit on how often a growing text is sent to a client: each message holds the whole text, so several words share one message.

Owns the rate, and the text held back. Does not own how a text is composed (`voxbridge.shared.bus.partials`). A crash here loses only texts
that the next message would replace. Pure.
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.bus.partials import Composer

EVERY_S: Final = 0.1
"""Seconds between two messages with the same text: a reader sees no difference, and a long text is sent at most ten times a second."""


class Captions:
    """The captions of one connection. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._composer = Composer()
        self._shown: dict[str, tuple[tuple[int, int], float]] = {}
        self._held: dict[str, PartialTranscript] = {}

    def take(self, piece: PartialTranscript, now: float) -> list[PartialTranscript]:
        """Take a piece from the bus, and return the texts to show now. A text that begins is shown at once. One that grows is held until it
        is `due`, and replaces its held version."""
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
        """Return when the first held text is due; None when none is held."""
        return min((self._shown[role][1] + EVERY_S for role in self._held), default=None)

    def release(self, now: float, *, early: bool = False) -> list[PartialTranscript]:
        """Return the held texts that are due by now. With `early`, return all held texts, because the next message must follow them."""
        texts = [text for role, text in self._held.items() if early or self._shown[role][1] + EVERY_S <= now]
        for text in texts:
            del self._held[text.role]
            self._shown[text.role] = _about(text), now
        return texts


def _about(text: PartialTranscript) -> tuple[int, int]:
    return text.turn, text.generation
