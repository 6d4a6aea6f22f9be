"""What turns cost: tokens as the model's endpoint counted them, and money where the installation knows the model's prices. Pure."""

from __future__ import annotations

from voxbridge.services.voice.core.state import State
from voxbridge.shared.events.voice import Usage


def counted(state: State, input_tokens: int, output_tokens: int) -> Usage:
    """Tokens of the model that speaks now. A price in US$ for a million tokens is one in millionths of a US$ for each."""
    into, out = state.prices.get(state.model, (0.0, 0.0))
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, microdollars=round(input_tokens * into + output_tokens * out))


def added(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        microdollars=one.microdollars + other.microdollars,
    )
