"""Guided tours by voice: plain words start one, and steer the one that is shown, before any model is asked. Pure.

The page shows the tour and answers `steer_tour`: its words are said as they are. What is not plain goes to the model, which has the same
functions. A barge-in stops the words of a step, and the tour stays where it is until somebody says how to go on.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core.state.reply import Order
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.tours import orders

START: Final = "start_guided_tour"
STEER: Final = "steer_tour"


def meant(t: Transition, text: str) -> Order | None:
    """Return the call by which the user's words start or steer a tour; None if they are for the model."""
    step = orders.steered(text) if t.pending.steered.touring and _has(t, STEER) else None
    if step is not None:
        return Order(name=STEER, arguments={"action": step})
    page = orders.started(text) if _has(t, START) else None
    return None if page is None else Order(name=START, arguments={"page": page} if page else {})


def began(t: Transition) -> None:
    """Note that the page shows a tour."""
    t.pending.steered = replace(t.pending.steered, touring=True)


def steered(t: Transition, result: dict[str, Any]) -> None:
    """Note from a page's answer whether it still shows a tour."""
    if isinstance(result.get("touring"), bool):
        t.pending.steered = replace(t.pending.steered, touring=result["touring"])


def _has(t: Transition, name: str) -> bool:
    return any(function.name == name for function in t.team.functions)
