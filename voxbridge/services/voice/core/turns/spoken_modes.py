"""Modes of a bridge over terminals: what the user says goes to the agent, into the active terminal, or is the name of a key. Pure.

An agent that has `switch_mode` is in the mode `ai` until the user names another one, or until a call of the function says so. In the
others no model is asked: the words are the argument of a call. An answer to an open question and an order to a tour stay what they are in
every mode. With AUTO off, what is said is a draft: it is shown, and the user sends it as a typed text, changed or not. The next agent of a
handoff begins in `ai` with AUTO on (`agents.enter`).
"""

from __future__ import annotations

from typing import Any, Final, get_args

from msgspec.structs import replace

from voxbridge.services.voice.core.state.reply import Order
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared import spoken_modes as spoken

SWITCH: Final = "switch_mode"
TYPE: Final = "type_into_terminal"
PRESS: Final = "send_key"
NO_KEY: Final = "I know no key of that name. Say escape, enter, up, down, control C, yes or no."
TEXT_LIMIT: Final = 4_000
"""Characters that are typed at once."""

TOO_LONG: Final = f"That is more than {TEXT_LIMIT} characters, so none of it was typed."


def meant(t: Transition, text: str) -> Order | str | None:
    """Return the call that the user's words make in this mode, or what the agent says to them; None if they are for the model."""
    switch = _switch(t, text)
    if switch is not None:
        return switch
    if not _has_modes(t):
        return None
    if t.pending.steered.mode == "chat":
        return Order(name=TYPE, arguments={"text": text}) if len(text) <= TEXT_LIMIT else TOO_LONG
    if t.pending.steered.mode == "key":
        pressed = spoken.pressed(text)
        return NO_KEY if pressed is None else Order(name=PRESS, arguments={"key": pressed.key, "times": pressed.times})
    return None


def is_draft(t: Transition, text: str) -> bool:
    """Tell whether what was said is for the user to send by hand. An answer to an open question, and an order to a mode, never is."""
    steered = t.pending.steered
    return not steered.auto and not t.pending.questions and not steered.touring and _switch(t, text) is None


def switched(t: Transition, name: str, result: dict[str, Any]) -> None:
    """Note from the result of a call which mode it is now."""
    if name == SWITCH and result.get("mode") in get_args(spoken.Mode):
        t.pending.steered = replace(t.pending.steered, mode=result["mode"], auto=result.get("auto") is not False)


def _has_modes(t: Transition) -> bool:
    return any(function.name == SWITCH for function in t.team.functions)


def _switch(t: Transition, text: str) -> Order | None:
    """Return the call that the user's words make if they name a mode, or AUTO."""
    if not _has_modes(t):
        return None
    mode, auto, now = spoken.mode(text), spoken.auto(text), t.pending.steered
    if mode is None and auto is None:
        return None
    return Order(name=SWITCH, arguments={"mode": mode or now.mode, "auto": now.auto if auto is None else auto})
