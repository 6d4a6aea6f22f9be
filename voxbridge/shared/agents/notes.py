"""Notes in a conversation: what a language model is told in the place of the user, and the user did not say.

Owns how a note is written, and how the user's own words are told from notes. Does not own what is noted (`voxbridge.services.voice.core`).
"""

from __future__ import annotations

from typing import Final

_BEGINS: Final = "(Note: "


def note(text: str) -> str:
    """Return a text as a note."""
    return f"{_BEGINS}{text})"


def without_notes(text: str) -> str:
    """Return what is left of a user's message without its notes. A note ends with its bracket, or with the message where brackets within it
    do not match."""
    kept, rest = [], text
    while True:
        before, begins, rest = rest.partition(_BEGINS)
        kept.append(before.strip())
        if not begins:
            return " ".join(filter(None, kept))
        rest = rest[_end(rest) :]


def _end(text: str) -> int:
    """Return the index behind the bracket that closes a note, of which this is the text."""
    depth = 1
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return index + 1
    return len(text)
