"""What each realtime model can and cannot do, as data: nothing else in the voice service asks for a model's name. Pure.

Where the facts come from, and which of them were never seen live, says docs/providers.md. A model that is not in the table is
taken to be able to do as little as any of its provider.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Provider = Literal["gemini", "openai"]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """One model. Defaults are the cautious answers."""

    provider: Provider
    resumes: bool = False
    """Issues handles with which a new connection takes up the conversation."""

    resumes_with_changes: bool = False
    """A resumed conversation takes new instructions, voice and functions; else a handoff is seeded from the log."""

    late_content: bool = False
    """Takes text turns after its first own turn; else text goes in as realtime input, and history only with a new connection. One whose
    history is declared takes no other text turns before its first one either."""

    history: Literal["plain", "declared"] = "declared"
    """How Gemini takes the turns of the conversation so far: `declared` in the setup and ended as a turn, which is answered by nothing;
    or `plain`, as content that is told at any time. To declare it where that is not known costs an answer that nobody asked for; not
    to declare it where that is wanted costs the connection."""

    seeds_history: bool = True
    """A new connection takes the turns of the conversation so far; else they are told in the instructions."""

    truncates: bool = False
    """Can be told how much of a response was heard."""

    nonblocking_calls: Literal["no", "opt_in", "default"] = "no"
    connection_s: int = 600
    """How long a connection lasts at most, before the provider closes it."""

    warns: bool = False
    """Says before it closes a connection (GoAway)."""

    detects_voice: bool = False
    """Reports when the user begins and ceases to speak."""


GEMINI: Final = Capabilities(provider="gemini", resumes=True, warns=True)
OPENAI: Final = Capabilities(provider="openai", late_content=True, truncates=True, detects_voice=True, connection_s=3_600)

_GEMINI_25: Final = msgspec.structs.replace(GEMINI, resumes_with_changes=True, history="plain", nonblocking_calls="opt_in")
_GEMINI_38: Final = msgspec.structs.replace(GEMINI, late_content=True, nonblocking_calls="default")

DEFAULT_MODELS: Final[dict[str, str]] = {"gemini": "gemini-3.8-live", "openai": "gpt-realtime-2.1"}

DEFAULT_VOICES: Final[dict[str, str]] = {"gemini": "Puck", "openai": "marin"}
TEXT_MODELS: Final[dict[str, str]] = {"anthropic": "claude-sonnet-5", "gemini": "gemini-3.8-flash", "openai": "gpt-6-luna"}
"""What a cascade thinks with when an agent names a provider and no model."""

MODELS: Final[dict[str, Capabilities]] = {
    "gemini-2.5-flash-native-audio-preview-12-2025": _GEMINI_25,
    "gemini-2.5-flash-native-audio-latest": _GEMINI_25,
    "gemini-3.1-flash-live-preview": GEMINI,
    "gemini-3.8-live": _GEMINI_38,
    "gpt-realtime-2.1": OPENAI,
    "gpt-realtime": OPENAI,
}


def of(provider: str, model: str) -> Capabilities:
    """What a model can do; of one that is not known, what any of its provider can."""
    known = MODELS.get(model)
    if known is not None and known.provider == provider:
        return known
    return GEMINI if provider == "gemini" else OPENAI
