"""The conversation of a session, as its models know it."""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.services.voice.core.outputs import Message
from voxbridge.shared.events.voice import Usage


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of what was said before the history begins, and the size of the conversation it stands for."""

    text: str = ""
    characters: int = 0


NOTHING: Final = Earlier()


class Conversation(msgspec.Struct, kw_only=True):
    """The history for the next model."""

    history: tuple[Message, ...] = ()
    earlier: Earlier = NOTHING
    """Summary of what was said before `history` begins."""

    remembered: int = 0
    """Number of messages ever put into the history."""

    asked: int = 0
    """Number of user messages ever put into the history."""

    uncounted: Usage = Usage()
    """Tokens of a realtime model that no completed turn has counted yet."""
