"""The prebuilt voices of Gemini Live that Voxbridge offers. Pure data.

Names and styles are those of Google's list of prebuilt voices, the genders those of the same voices in Google Cloud's text to speech
(docs/protocol.md says more). A model takes any name, so a voice that is not listed here can be asked for too.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice; sessions ask for it by `id`."""

    id: str
    name: str
    gender: Literal["Male", "Female"]
    style: str


def _voice(name: str, gender: Literal["Male", "Female"], style: str) -> Voice:
    return Voice(id=name, name=name, gender=gender, style=style)


GEMINI: Final[tuple[Voice, ...]] = (
    _voice("Puck", "Male", "Upbeat, lively"),
    _voice("Charon", "Male", "Informative, steady"),
    _voice("Kore", "Female", "Firm"),
    _voice("Fenrir", "Male", "Excitable"),
    _voice("Aoede", "Female", "Breezy"),
    _voice("Leda", "Female", "Youthful"),
    _voice("Orus", "Male", "Firm"),
    _voice("Zephyr", "Female", "Bright"),
    _voice("Callirrhoe", "Female", "Easy-going"),
    _voice("Autonoe", "Female", "Bright"),
    _voice("Enceladus", "Male", "Breathy"),
    _voice("Iapetus", "Male", "Clear"),
    _voice("Umbriel", "Male", "Easy-going"),
    _voice("Algieba", "Male", "Smooth"),
    _voice("Despina", "Female", "Smooth"),
    _voice("Erinome", "Female", "Clear"),
)

OPENAI: Final = ("alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar")
"""Voices of OpenAI Realtime."""

BY_PROVIDER: Final = {"gemini": frozenset(one.id for one in GEMINI), "openai": frozenset(OPENAI)}
"""Names of the voices of models that speak themselves."""
