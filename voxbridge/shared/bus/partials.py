"""Growing texts on the bus: most messages carry only what is new, and now and then one carries the whole text.

Owns what of a text is sent, and how a listener composes the text again. Does not own what is said (`voxbridge/services/voice`), or how
often it is shown (`voxbridge/services/gateway/core/captions.py`). The bus may lose a message, and a listener may begin in the middle: a
piece that does not join on to what was heard shows nothing, and the next message with the whole text repairs that. A crash loses nothing:
the worker that takes over the session begins with a whole text.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from voxbridge.shared.bus.moments import PartialTranscript

LIMIT: Final = 64 * 1024
"""Code points of a text that are shown before it is final: as many as the longest transcription has."""
ENVELOPE: Final = 64
"""Approximate bytes of a message besides its text."""


class _Sent(msgspec.Struct, frozen=True):
    about: tuple[int, int]
    text: str
    spent: int
    """Bytes of the pieces since the whole text was last sent."""


class Pieces:
    """Sender's state: what was sent of the newest text of each role."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def cut(self, told: PartialTranscript) -> PartialTranscript:
        """Return what to send of a text so far: its new part, or the whole text. The whole is due when the pieces since the last one took
        as much as it takes: so a text of any length costs at most twice what its pieces cost, and a loss is soon repaired."""
        about, text = (told.turn, told.generation), told.text[:LIMIT]
        before = self._sent.get(told.role)
        offset = 0
        if before is not None and before.about == about and before.spent < ENVELOPE + len(text):
            offset = _same(before.text, text)
        if before is None or not offset:
            self._sent[told.role] = _Sent(about, text, 0)
            return msgspec.structs.replace(told, text=text)
        piece = text[offset:]
        self._sent[told.role] = _Sent(about, text, before.spent + ENVELOPE + len(piece))
        return msgspec.structs.replace(told, text=piece, offset=offset, check=_check(text))

    def forget(self) -> None:
        """Send the whole of each text with its next message: a new listener subscribed."""
        self._sent.clear()


class Composer:
    """Listener's state: the newest text of each role, as far as it was heard."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[tuple[int, int], str]] = {}

    def take(self, piece: PartialTranscript) -> PartialTranscript | None:
        """Return the text so far; None when it is not known, because a message before this piece was lost."""
        about, text = (piece.turn, piece.generation), piece.text
        if piece.offset:
            before, known = self._heard.get(piece.role, (about, ""))
            text = known[: piece.offset] + piece.text
            if before != about or piece.offset > len(known) or len(text) > LIMIT or _check(text) != piece.check:
                return None
        self._heard[piece.role] = about, text[:LIMIT]
        return msgspec.structs.replace(piece, text=text[:LIMIT], offset=0, check=0)


def _same(before: str, text: str) -> int:
    if text.startswith(before):
        return len(before)
    return next((at for at, (old, new) in enumerate(zip(before, text, strict=False)) if old != new), len(text))


def _check(text: str) -> int:
    return zlib.crc32(text.encode())
