"""Small parts of a session's state: the summary of its beginning, notes for a connection, a handoff, a late model, the microphone."""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of what was said before the history begins, and the size of the conversation it stands for."""

    text: str = ""
    characters: int = 0


NOTHING: Final = Earlier()


class Note(msgspec.Struct, frozen=True):
    """Text to be sent to a model once its connection is ready."""

    text: str
    respond: bool


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff in progress."""

    source: str
    target: str
    at: int
    """Start time, µs."""

    note: str = ""
    """Note for the agent that takes over."""

    back: bool = False
    """True if the source could not be reached and returns the conversation to the agent that had handed over to it."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A model that has produced nothing for a while, and the cause once it is known."""

    effect: int
    part: Literal["stt", "llm", "tts"]
    cause: str = ""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Position of one microphone frame: it ends at this sample of the session."""

    samples: int
    sequence: int
    time_ms: int
