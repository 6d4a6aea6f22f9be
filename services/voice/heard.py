"""How much of a reply was heard: from the audio made of its pieces and the ms that were played. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.voice.state import Piece, Reply

MS_PER_CHARACTER: Final = 65
"""For a piece whose audio is not finished: about what a voice takes."""

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


def duration(piece: Piece) -> int:
    """ms of audio in a piece; estimated while it is being made, 0 before."""
    if piece.done:
        return piece.ms
    return max(piece.ms, len(piece.text) * MS_PER_CHARACTER) if piece.ms else 0


def made_ms(reply: Reply) -> int:
    """ms of audio made of a reply so far."""
    return sum(piece.ms for piece in reply.pieces)


def estimate(reply: Reply, now: int) -> int:
    """ms that were played by `now`, by the client's last report or by the clock since the first frame left."""
    if reply.played_at is not None:
        since = (now - reply.played_at) // 1_000 if reply.playing else 0
        played = reply.played_ms + since
    elif reply.sent is not None:
        played = (now - reply.sent) // 1_000
    else:
        played = 0
    return max(0, min(played, made_ms(reply)))
