"""Presence of the client: lost, back, connected over another socket. Pure."""

from __future__ import annotations

from typing import Final

from voxbridge.services.voice.core.realtime import faults
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import paused_reply, playout, turns
from voxbridge.shared.events import gateway

GRACE_MS: Final = 10_000
"""Milliseconds a session waits for a disconnected client that cannot resume it; a client that can has `resume_window_s`."""


def away(t: Transition) -> None:
    """Record that the client is lost, and keep what it has not heard until it is back."""
    if t.client.away_since or t.state.phase != "open":
        return
    t.client.away_since = t.now
    t.set_timer("grace", window_ms(t))
    if t.state.realtime is not None:
        faults.pause(t, "disconnect")
    else:
        paused_reply.lose_sight(t)


def back(t: Transition) -> None:
    """Record that the client is there again, and ask it how much it heard of a paused reply."""
    t.cancel_timers("grace")
    away, t.client.away_since, t.client.presumed = t.client.away_since, 0, False
    if away and t.reply is not None:
        t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
        paused_reply.ask(t)


def window_ms(t: Transition) -> int:
    """Return the ms for which a lost client may come back."""
    return t.settings.resume_window_s * 1_000 if t.client.reports_playback else GRACE_MS


def connected(t: Transition, event: gateway.ClientConnected) -> None:
    """Attach a client's socket, and go on where the client stopped hearing."""
    state = t.state
    state.client.gateway, state.client.connection = event.gateway, event.connection
    if event.resumed and not state.client.away_since:  # the loss of its previous socket was not noticed
        if state.realtime is not None:
            faults.pause(t, "disconnect")
        else:
            paused_reply.pause(t, "disconnect")
    unplayed, state.speech.unplayed = state.speech.unplayed, None
    back(t)
    if t.reply is not None:
        return
    if event.resumed and unplayed is not None and t.utterance is None:
        _, _, again = playout.resume(unplayed.pieces, unplayed.playback.played_ms)
        rest = " ".join(piece.text for piece in unplayed.pieces[again:])
        if state.realtime is not None and rest:  # the realtime model says it, in the same voice as before
            turns.notice(t, rest)
        elif rest:
            turns.say(t, rest, turn=0)
