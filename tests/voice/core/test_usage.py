"""Cost of turns, by the model that speaks."""

from __future__ import annotations

from voxbridge.services.voice.core.state import Settings, State, Team
from voxbridge.services.voice.core.turns import usage
from voxbridge.shared.events.voice import Usage

PRICES = {"gemini-3.8-live": (3.0, 12.0), "claude-sonnet-5": (3.0, 15.5)}


def running(model: str) -> State:
    return State(sid="s", team=Team(model=model), settings=Settings(prices=PRICES))


def test_tokens_are_counted_at_the_price_of_the_model_that_speaks() -> None:
    spoken = usage.counted(running("gemini-3.8-live"), 1_000, 200)
    assert spoken == Usage(input_tokens=1_000, output_tokens=200, microdollars=5_400)
    advised = usage.counted(running("claude-sonnet-5"), 7, 3)
    assert advised.microdollars == round(7 * 3 + 3 * 15.5)
    assert usage.added(spoken, advised) == Usage(input_tokens=1_007, output_tokens=203, microdollars=5_468)


def test_a_model_without_a_price_costs_tokens_alone() -> None:
    assert usage.counted(running("qwen"), 5, 6) == Usage(input_tokens=5, output_tokens=6)
