"""A reply in writing. Pure.

Owns how a written reply is shown while it grows, and telling clients that ask for it the whole text of a reply as soon as it is known,
before its sound ends.
"""

from __future__ import annotations

import re
from typing import Final

from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.speakable import markup
from voxbridge.shared.bus.moments import GreetingBegun, ReplyWritten

_UNFINISHED: Final = re.compile(r"!?\[[^\[\]]*(?:\](?:\([^()]*)?)?$|<[^<>\s]*$|&\w*$")
"""Link, tag or entity that a growing text breaks off in."""


def so_far(pieces: str, rest: str) -> str:
    """Return a reply as it is shown while it is written: its pieces and the beginning of the next one, without the link or tag that it
    breaks off in."""
    return " ".join(filter(None, [pieces, markup.written(_UNFINISHED.sub("", rest))]))


def tell(t: Transition) -> None:
    """Tell the text of the current reply, if no more of it will come and the client does not have it. A reply that goes on as a new
    generation, after a fault, is told once."""
    reply = t.reply
    if reply is None or not reply.closed or reply.filler or not _is_asked_for(t.state):
        return
    words = (reply.round.before, *(piece.text for piece in reply.pieces), reply.round.unsplit)
    text = " ".join(filter(None, (one.strip() for one in words)))
    turn, known = t.display.written
    if not text or (turn == reply.turn and known.endswith(text)):
        return
    t.display.written = (reply.turn, text)
    called, names = t.display.called
    t.tell(ReplyWritten(text, turn=reply.turn, generation=reply.generation, calls=names if called == reply.turn else ()))


def greet(t: Transition, text: str) -> None:
    """Tell the greeting, which begins now."""
    if _is_asked_for(t.state):
        t.display.written = (0, text)  # its words are told once
        t.tell(GreetingBegun(text))


def _is_asked_for(state: State) -> bool:
    return state.request is not None and state.request.client.chat
