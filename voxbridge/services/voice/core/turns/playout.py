"""Calculation of how much of a reply was heard, from the audio made of its pieces and the ms that were played. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core.state import Piece, Reply

REPORT_EVERY_MS: Final = 1_100
"""Milliseconds that a client may have played since its last report: while playing, it reports each second."""

MS_PER_CHARACTER: Final = 65
"""Milliseconds of audio per character, about what a voice takes; for pieces whose audio is not finished."""

STARVED_MS: Final = 1_500
"""Milliseconds by which the clock must run ahead of the audio made until the client counts as waiting for more. Above 1 s, because a
realtime model's audio is counted each second."""

_SENTENCE_ENDS: Final = (".", "!", "?", "…", "。", "！", "？")
_AFTER_END: Final = " \"'”’)]"


def split(pieces: Sequence[Piece], played_ms: int) -> tuple[str, str]:
    """Return `(heard, unheard)` text. A piece that was cut is split between words; a word heard in part counts as unheard."""
    heard: list[str] = []
    unheard: list[str] = []
    left = played_ms
    for piece in pieces:
        length = duration(piece)
        if left >= length > 0:
            heard.append(piece.text)
        elif left <= 0 or length == 0:
            unheard.append(piece.text)
        else:
            words = piece.text.split()
            characters = len(piece.text) * left / length
            said, used = 0, 0
            for word in words:
                used += len(word)
                if used > characters:
                    break
                used += 1
                said += 1
            heard.append(" ".join(words[:said]))
            unheard.append(" ".join(words[said:]))
        left -= length
    return " ".join(filter(None, heard)), " ".join(filter(None, unheard))


def resume(pieces: Sequence[Piece], played_ms: int) -> tuple[str, str, int]:
    """Return `(heard, unheard, index)`: the text as in `split`, and the piece to go on with, so that a sentence that was heard in part is
    said again from its start."""
    again = 0
    left = played_ms
    for index, piece in enumerate(pieces):
        length = duration(piece)
        if length == 0 or left < length:
            break
        left -= length
        if index + 1 == len(pieces) or piece.text.rstrip(_AFTER_END).endswith(_SENTENCE_ENDS):
            again = index + 1
    return (*split(pieces, played_ms), again)


def text(pieces: Sequence[Piece]) -> str:
    """Return the words of pieces, without fillers."""
    return " ".join(filter(None, (piece.text for piece in pieces)))


def has_words(pieces: Sequence[Piece]) -> bool:
    """Check whether there are pieces other than fillers."""
    return any(not piece.filler for piece in pieces)


def fillers(pieces: Sequence[Piece], played_ms: int | None = None) -> str:
    """Return the fillers that were heard to their end; without `played_ms`, all that were made."""
    found, left = [], played_ms
    for piece in pieces:
        length = duration(piece)
        if piece.filler and length and (left is None or left >= length):
            found.append(piece.filler)
        left = left - length if left is not None else None
    return " ".join(found)


def newest(pieces: Sequence[Piece]) -> tuple[tuple[Piece, ...], Piece]:
    """Return `(earlier, last)` for a realtime model's reply; behind a filler, `last` is a new, empty piece."""
    if not pieces or pieces[-1].filler:
        return tuple(pieces), Piece(text="", done=True)
    return tuple(pieces[:-1]), pieces[-1]


def model_ms(pieces: Sequence[Piece], played_ms: int | None = None) -> int:
    """Return the ms of audio without fillers; with `played_ms`, only those that were played."""
    found, left = 0, played_ms
    for piece in pieces:
        length = piece.ms if left is None else max(0, min(left, duration(piece)))
        found += 0 if piece.filler else length
        left = left - length if left is not None else None
    return found


def without_fillers(pieces: Sequence[Piece], first: int) -> tuple[tuple[Piece, ...], int]:
    """Return the pieces other than fillers, which are not said again, and the index among them at which the current round begins."""
    kept = tuple(piece for piece in pieces if not piece.filler)
    return kept, sum(not piece.filler for piece in pieces[:first])


def duration(piece: Piece) -> int:
    """Return the ms of audio in a piece: estimated while it is being made, 0 before."""
    if piece.done:
        return piece.ms
    return max(piece.ms, len(piece.text) * MS_PER_CHARACTER) if piece.ms else 0


def made_ms(reply: Reply) -> int:
    """Return the ms of audio made of a reply so far."""
    return sum(piece.ms for piece in reply.pieces)


def after_a_wait(reply: Reply, now: int) -> Reply:
    """Return the reply when more of it gets audio. If all earlier audio was played, the silence since then is excluded by moving `sent`."""
    if reply.playback.sent is None:
        return reply
    return replace(reply, playback=replace(reply.playback, sent=max(reply.playback.sent, now - made_ms(reply) * 1_000), quiet=False))


def resumed(reply: Reply, now: int) -> Reply:
    """Return the reply when more of it was made just now. If all earlier audio was played well before, count playback from now on."""
    since = reply.playback.played_at if reply.playback.played_at is not None else reply.playback.sent
    if since is None or not reply.playback.playing:
        return reply
    made = made_ms(reply)
    if reply.playback.played_ms + (now - since) // 1_000 < made + STARVED_MS:
        return reply
    return replace(reply, playback=replace(reply.playback, played_ms=max(reply.playback.played_ms, made), played_at=now))


def estimate(reply: Reply, now: int) -> int:
    """Return the ms played by `now`, from the client's last report or by the clock since the first frame was sent."""
    if reply.playback.played_at is not None:
        since = (now - reply.playback.played_at) // 1_000 if reply.playback.playing else 0
        played = reply.playback.played_ms + min(REPORT_EVERY_MS, since)
    elif reply.playback.sent is not None:
        played = (now - reply.playback.sent) // 1_000
    else:
        played = 0
    return max(0, min(played, made_ms(reply)))
