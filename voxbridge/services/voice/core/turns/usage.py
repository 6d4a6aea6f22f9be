"""Cost of turns: tokens as the model's endpoint counted them, and money if the installation knows the model's prices. Pure."""

from __future__ import annotations

from voxbridge.services.voice.core.state import State
from voxbridge.shared.events.voice import Usage


def counted(state: State, input_tokens: int, output_tokens: int) -> Usage:
    """Return the usage of the current model for these tokens. US$ per million tokens equals millionths of a US$ per token."""
    into, out = state.settings.prices.get(state.team.model, (0.0, 0.0))
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, microdollars=round(input_tokens * into + output_tokens * out))


def added(one: Usage, other: Usage) -> Usage:
    """Return the sum of both."""
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        microdollars=one.microdollars + other.microdollars,
    )
