"""Interruptions of a realtime model by sounds without words, such as a cough: the model goes on with what was not heard. Pure.

A provider stops its model at any sound that it takes for a voice, and waits for words. If none come and the model stays silent, it is
asked to go on after the words that were heard. The model knows its response up to there: it trims the rest itself, or was told where it
was cut (`outputs.CutShort`). As with the cascade, the continuation answers no turn and begins none.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core.state import RealtimeState
from voxbridge.services.voice.core.transition import Transition

TIMER: Final = "noise"
WAIT_MS: Final = 3_000
"""Milliseconds to wait for words after the response was cut off; transcripts are delayed."""

SURE_MS: Final = 1_500
"""Milliseconds until the next check while the user speaks, the client is away or the connection is not ready."""


def watch(t: Transition) -> None:
    """Check, after each input, whether an interruption is still without words."""
    state, realtime = t.state, t.state.realtime
    if state.speech.broken is None:
        return
    settled = t.reply is not None or state.speech.cut is not None or state.team.handoff is not None or state.phase != "open"
    if (
        realtime is None
        or settled
        or realtime.owed.question
        or realtime.hearing.turn
        or realtime.tool_calls.open
        or realtime.owed.go_on
        or realtime.owed.announces
        or _words(realtime)
    ):
        state.speech.broken = None
        t.cancel_timers(TIMER)
    elif not state.speech.broken[1]:
        state.speech.broken = (state.speech.broken[0], True)
        t.set_timer(TIMER, WAIT_MS)


def _words(realtime: RealtimeState) -> bool:
    return any(text.strip() for _, text in realtime.hearing.words)


def due(t: Transition) -> None:
    """Handle the timer: have the model go on, unless the user speaks or the model cannot be told yet."""
    realtime = t.state.realtime
    if t.speech.broken is None or realtime is None:
        return
    if realtime.hearing.speaking or realtime.hearing.active or not realtime.ready or t.client.away_since:
        t.set_timer(TIMER, SURE_MS)
    else:
        go_on(t)


def go_on(t: Transition) -> None:
    """Have the model go on as soon as it can be told: the interruption had no words."""
    if t.speech.broken is None:
        return
    heard, t.speech.broken = t.speech.broken[0], None
    t.cancel_timers(TIMER)
    asked = "" if heard else next((one.text for one in reversed(t.conversation.history) if one.role == "user"), "")
    t.owed = replace(t.owed, go_on=True, said=heard, question=asked, repeated=False, asking=False, turn=0)
    t.hearing = replace(t.hearing, words=())
    t.realtime = replace(t.realtime, awaited=True)
