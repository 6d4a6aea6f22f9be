"""Small parts of a session's state: what waits to be told, who hands over to whom, and where the microphone is."""

from __future__ import annotations

from typing import Literal

import msgspec


class Note(msgspec.Struct, frozen=True):
    """Text that waits for a connection."""

    text: str
    respond: bool


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff under way."""

    source: str
    target: str
    at: int
    """When it started, µs."""

    note: str = ""
    """What the one who goes on is told."""

    back: bool = False
    """The source could not be reached, and the target is who had handed over to it."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A model that has shown no sign of life for a while, and why, once that is known."""

    effect: int
    part: Literal["stt", "llm", "tts"]
    cause: str = ""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Where one microphone frame lies: it ends at this sample of the session."""

    samples: int
    sequence: int
    time_ms: int
