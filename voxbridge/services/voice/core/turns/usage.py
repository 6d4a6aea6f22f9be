"""Cost of turns: tokens as the model's endpoint counted them, and money if the installation knows the model's prices. Pure."""

from __future__ import annotations

from voxbridge.services.voice.core.state import Stamps, State
from voxbridge.shared.events import voice as ev
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


def latency(stamps: Stamps) -> ev.Latency:
    """Return the stamps as ms after the end of speech."""
    start = stamps.speech_ended
    if start is None:
        return ev.Latency()
    names = ("end_of_turn", "stt_final", "llm_first_token", "first_sentence", "tts_first_audio", "first_audio_sent", "first_audio_heard")
    found = {name: getattr(stamps, name) for name in names}
    return ev.Latency(**{name: (at - start) // 1_000 for name, at in found.items() if at is not None})
