"""Limits that the key of a publishing account sets to a session: its time, and the tokens of its models. Pure.

They end a session between two turns: what was asked is answered, and nothing more is taken.
"""

from __future__ import annotations

from typing import Final

from voxbridge.services.voice.core import ending
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.errors import Code
from voxbridge.shared.events.voice import Failure

TIMER: Final = "allowance"
PATIENCE_MS: Final = 1_000
"""Milliseconds after which a session that is busy at the end of its time is looked at again."""

OVERTIME_S: Final = 60
"""Seconds that an answer may go on after the end of the session's time."""


def begin(t: Transition) -> None:
    """Set the timer of a session whose time is limited."""
    key = t.state.request.key if t.state.request is not None else None
    if key is not None and key.seconds:
        t.set_timer(TIMER, key.seconds * 1_000)


def due(t: Transition) -> None:
    """End a session whose time is over, when its answer was heard."""
    request = t.state.request
    if request is None or request.key is None or t.state.phase != "open":
        return
    seconds = request.key.seconds
    over_s = (t.now - t.state.requested_at) // 1_000_000 - seconds
    if _busy(t) and over_s < OVERTIME_S:
        t.set_timer(TIMER, PATIENCE_MS)
        return
    message = f"The key of this page allows calls of {seconds} s. Begin another one."
    ending.end(t, "time_limit", Failure(code=Code.RATE_LIMITED, message=message, field="seconds"))


def settle(t: Transition) -> None:
    """End a session whose models have taken all the tokens that they may, when its answer was heard."""
    key = t.state.request.key if t.state.request is not None else None
    if key is None or not key.tokens or t.state.phase != "open" or t.counters.tokens < key.tokens or _busy(t):
        return
    message = f"The key of this page allows {key.tokens} tokens a call. Begin another one."
    ending.end(t, "token_limit", Failure(code=Code.RATE_LIMITED, message=message, field="tokens"))


def _busy(t: Transition) -> bool:
    """Tell whether an answer is being made or heard; words that the user is saying are answered no more."""
    return t.reply is not None or t.speech.cut is not None or bool(t.speech.trailing)
