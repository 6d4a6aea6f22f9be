"""Modes of a bridge over terminals: what the user says goes to the agent, into the active terminal, or is the name of a key. Pure.

An agent that has `switch_mode` is in the mode `ai` until the user names another one, or until a call of the function says so. In the
others no model is asked: the words are the argument of a call. An answer to an open question and an order to a tour stay what they are in
every mode. The next agent of a handoff begins in `ai` (`agents.enter`).
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
    if all(function.name != SWITCH for function in t.team.functions):
        return None
    wanted = spoken.mode(text)
    if wanted is not None:
        return Order(name=SWITCH, arguments={"mode": wanted})
    if t.pending.steered.mode == "chat":
        return Order(name=TYPE, arguments={"text": text}) if len(text) <= TEXT_LIMIT else TOO_LONG
    if t.pending.steered.mode == "key":
        pressed = spoken.pressed(text)
        return NO_KEY if pressed is None else Order(name=PRESS, arguments={"key": pressed.key, "times": pressed.times})
    return None


def switched(t: Transition, name: str, result: dict[str, Any]) -> None:
    """Note from the result of a call which mode it is now."""
    if name == SWITCH and result.get("mode") in get_args(spoken.Mode):
        t.pending.steered = replace(t.pending.steered, mode=result["mode"])
