"""How much of a reply was heard: from the audio made of its pieces and the ms that were played. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from voxbridge.services.voice.core.state import Piece, Reply

REPORT_EVERY_MS: Final = 1_100
"""A client that plays reports each second: what it played after its last report is at most this."""

MS_PER_CHARACTER: Final = 65
"""For a piece whose audio is not finished: about what a voice takes."""

STARVED_MS: Final = 1_500
"""By the clock a client has played this much more than there is: it waits for more. A realtime model's sound is counted each second."""

_SENTENCE_ENDS: Final = (".", "!", "?", "…", "。", "！", "？")
_AFTER_END: Final = " \"'”’)]"


def split(pieces: Sequence[Piece], played_ms: int) -> tuple[str, str]:
    """`(heard, unheard)`. A piece that was cut is split between words; a word half heard was not heard."""
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
    """`(heard, unheard, index)`: with which piece to go on, so that the sentence that was heard in part is said from its start."""
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
    """The words of pieces, without those that cover a wait."""
    return " ".join(filter(None, (piece.text for piece in pieces)))


def has_words(pieces: Sequence[Piece]) -> bool:
    """Whether there is more than words that cover a wait."""
    return any(not piece.filler for piece in pieces)


def fillers(pieces: Sequence[Piece], played_ms: int | None = None) -> str:
    """The words that cover a wait and were heard to their end; without `played_ms`, all that were made."""
    found, left = [], played_ms
    for piece in pieces:
        length = duration(piece)
        if piece.filler and length and (left is None or left >= length):
            found.append(piece.filler)
        left = left - length if left is not None else None
    return " ".join(found)


def newest(pieces: Sequence[Piece]) -> tuple[tuple[Piece, ...], Piece]:
    """`(earlier, last)` of what a realtime model says: behind a filler it begins a piece anew."""
    if not pieces or pieces[-1].filler:
        return tuple(pieces), Piece(text="", done=True)
    return tuple(pieces[:-1]), pieces[-1]


def model_ms(pieces: Sequence[Piece], played_ms: int | None = None) -> int:
    """ms of audio that is the answer's own; with `played_ms`, of what was played."""
    found, left = 0, played_ms
    for piece in pieces:
        length = piece.ms if left is None else max(0, min(left, duration(piece)))
        found += 0 if piece.filler else length
        left = left - length if left is not None else None
    return found


def without_fillers(pieces: Sequence[Piece], first: int) -> tuple[tuple[Piece, ...], int]:
    """The pieces that are to be said again, and where the current round begins among them."""
    kept = tuple(piece for piece in pieces if not piece.filler)
    return kept, sum(not piece.filler for piece in pieces[:first])


def duration(piece: Piece) -> int:
    """ms of audio in a piece; estimated while it is being made, 0 before."""
    if piece.done:
        return piece.ms
    return max(piece.ms, len(piece.text) * MS_PER_CHARACTER) if piece.ms else 0


def made_ms(reply: Reply) -> int:
    """ms of audio made of a reply so far."""
    return sum(piece.ms for piece in reply.pieces)


def after_a_wait(reply: Reply, now: int) -> Reply:
    """The reply when more of it becomes sound: where all that there was has been played, the silence since then was none of it."""
    if reply.sent is None:
        return reply
    return msgspec.structs.replace(reply, sent=max(reply.sent, now - made_ms(reply) * 1_000), quiet=False)


def resumed(reply: Reply, now: int) -> Reply:
    """The reply, more of which was made just now: if all of it must have been played long before, it is heard from here on."""
    since = reply.played_at if reply.played_at is not None else reply.sent
    if since is None or not reply.playing:
        return reply
    made = made_ms(reply)
    if reply.played_ms + (now - since) // 1_000 < made + STARVED_MS:
        return reply
    return msgspec.structs.replace(reply, played_ms=max(reply.played_ms, made), played_at=now)


def estimate(reply: Reply, now: int) -> int:
    """ms that were played by `now`, by the client's last report or by the clock since the first frame left."""
    if reply.played_at is not None:
        since = (now - reply.played_at) // 1_000 if reply.playing else 0
        played = reply.played_ms + min(REPORT_EVERY_MS, since)
    elif reply.sent is not None:
        played = (now - reply.sent) // 1_000
    else:
        played = 0
    return max(0, min(played, made_ms(reply)))
