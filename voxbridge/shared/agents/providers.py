"""The providers that agents talk to, and the environment variables that may hold their keys.

Owns the names. Does not own the keys (`voxbridge.shared.secrets.provider_keys`) nor which process is given these variables
(`voxbridge.supervisor.environment`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from voxbridge.shared.setting import KEY_PREFIX

PROVIDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "assemblyai": ("ASSEMBLYAI_API_KEY",),
    "elevenlabs": ("ELEVENLABS_API_KEY",),
}
"""The built-in providers with their environment variables; the first variable that is set counts."""


def variables(provider: str) -> tuple[str, ...]:
    """Return the environment variables that may hold the key of a provider or of a named endpoint."""
    return PROVIDERS.get(provider) or (f"{KEY_PREFIX}{provider.upper().replace('-', '_')}",)
