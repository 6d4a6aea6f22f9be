"""Macros by voice: the user's own words start one, before any model is asked. Pure.

Words that are a trigger start their macro at once. Words that are only like one have it read back first, and the user's plain yes starts
it. The call is made like one of a model, and its result is said as it is.
"""

from __future__ import annotations

from voxbridge.services.voice.core.agents import RUN_MACRO
from voxbridge.services.voice.core.state.reply import Order
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent
from voxbridge.shared.macros.triggers import Match, match


def meant(t: Transition, text: str, language: str) -> Match | str:
    """Return the macro that the user's words start, or the question whether one was meant; empty if they are for the model."""
    if not t.team.macros or all(function.name != RUN_MACRO for function in t.team.functions):
        return ""
    found = match(text, t.team.macros)
    if found is None:
        return ""
    if found.sure:
        return found
    return "" if t.pending.questions else consent.offers(t, found, language)


def order(macro: Match) -> Order:
    """Return the call that runs a macro, in the mode that was said."""
    inputs = {"inputs": dict(macro.inputs)} if macro.inputs else {}
    return Order(name=RUN_MACRO, arguments={"name": macro.name, **inputs, **({macro.mode: True} if macro.mode else {})})
