"""The conversation of a session, as its models know it."""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.shared.awareness import view
from voxbridge.shared.awareness.view import View
from voxbridge.shared.events.voice import Usage
from voxbridge.shared.language.conversation import Message


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of what was said before the history begins, and the size of the conversation it stands for."""

    text: str = ""
    characters: int = 0


NOTHING: Final = Earlier()


class ScreenPart(msgspec.Struct, frozen=True, kw_only=True):
    """Part of the prompt that tells of the user's screen, behind the first `remembered` messages that ever came into the history."""

    text: str
    remembered: int


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of the user's screen, and the part of it that the models of this session are told."""

    known: View = view.NOTHING
    told: View = view.NOTHING
    told_at: int = 0
    """Time at which it was told last, µs; 0 if it never was."""

    parts: tuple[ScreenPart, ...] = ()
    """Messages of the prompt that tell of it, the newest last. A model would read a conversation again from where one of them is taken
    out, so an earlier one may stay."""

    @property
    def text(self) -> str:
        """Return what was told last; empty for nothing."""
        return self.parts[-1].text if self.parts else ""


class Conversation(msgspec.Struct, kw_only=True):
    """The history for the next model."""

    history: tuple[Message, ...] = ()
    earlier: Earlier = NOTHING
    """Summary of what was said before `history` begins."""

    screen: Screen = Screen()

    remembered: int = 0
    """Number of messages ever put into the history."""

    asked: int = 0
    """Number of user messages ever put into the history."""

    uncounted: Usage = Usage()
    """Tokens of a realtime model that no completed turn has counted yet."""
