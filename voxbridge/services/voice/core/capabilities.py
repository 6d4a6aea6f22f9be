"""Capabilities of each realtime model, as data: no other code in the voice service depends on a model's name. Pure.

docs/providers.md lists the sources of the facts, and which of them were never seen live. A model that is not in the table is assumed
to have no more capabilities than the least capable model of its provider.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

Provider = Literal["gemini", "openai"]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities of one model. Defaults are the cautious values."""

    provider: Provider
    resumes: bool = False
    """Issues handles with which a new connection resumes the conversation."""

    resumes_with_changes: bool = False
    """A resumed conversation accepts new instructions, voice and functions; otherwise a handoff is seeded from the log."""

    late_content: bool = False
    """Takes text turns after its own first turn; otherwise text is sent as realtime input, and history only with a new connection. A
    model with declared history takes no other text turns before its first turn either."""

    history: Literal["plain", "declared"] = "declared"
    """Form in which Gemini takes the turns of the conversation so far. `declared`: announced in the setup and ended as a turn, which the
    model does not answer. `plain`: sent as content at any time. Declaring it to a model that does not support that causes an unwanted
    answer; not declaring it to a model that requires it costs the connection."""

    seeds_history: bool = True
    """A new connection takes the turns of the conversation so far; otherwise they are put into the instructions."""

    truncates: bool = False
    """Can be told how much of a response was heard."""

    nonblocking_calls: Literal["no", "opt_in", "default"] = "no"
    connection_s: int = 600
    """Seconds a connection lasts at most before the provider closes it."""

    warns: bool = False
    """Announces that it will close a connection (GoAway)."""

    detects_voice: bool = False
    """Reports when the user begins and stops speaking."""


GEMINI: Final = Capabilities(provider="gemini", resumes=True, warns=True)
OPENAI: Final = Capabilities(provider="openai", late_content=True, truncates=True, detects_voice=True, connection_s=3_600)

_GEMINI_25: Final = replace(GEMINI, resumes_with_changes=True, history="plain", nonblocking_calls="opt_in")
_GEMINI_38: Final = replace(GEMINI, late_content=True, nonblocking_calls="default")

DEFAULT_MODELS: Final[dict[str, str]] = {"gemini": "gemini-3.8-live", "openai": "gpt-realtime-2.1"}

DEFAULT_VOICES: Final[dict[str, str]] = {"gemini": "Puck", "openai": "marin"}
TEXT_MODELS: Final[dict[str, str]] = {"anthropic": "claude-sonnet-5", "gemini": "gemini-3.8-flash", "openai": "gpt-6-luna"}
"""Language model of a cascade by provider, for an agent that names a provider and no model."""

MODELS: Final[dict[str, Capabilities]] = {
    "gemini-2.5-flash-native-audio-preview-12-2025": _GEMINI_25,
    "gemini-2.5-flash-native-audio-latest": _GEMINI_25,
    "gemini-3.1-flash-live-preview": GEMINI,
    "gemini-3.8-live": _GEMINI_38,
    "gpt-realtime-2.1": OPENAI,
    "gpt-realtime": OPENAI,
}


def of(provider: str, model: str) -> Capabilities:
    """Return the capabilities of a model; for an unknown model, those that any model of its provider has."""
    known = MODELS.get(model)
    if known is not None and known.provider == provider:
        return known
    return GEMINI if provider == "gemini" else OPENAI
