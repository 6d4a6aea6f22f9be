"""Presence of the client: lost, back, connected over another socket. Pure."""

from __future__ import annotations

from typing import Final

from voxbridge.services.voice.core.realtime import faults
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import interruption, playout, turns
from voxbridge.shared.events import gateway

GRACE_MS: Final = 10_000
"""Milliseconds a session waits for a disconnected client that cannot resume it; a client that can has `resume_window_s`."""


def away(d: Draft) -> None:
    """Record that the client is lost, and keep what it has not heard until it is back."""
    if d.client.away_since or d.state.phase != "open":
        return
    d.client.away_since = d.now
    d.set_timer("grace", window_ms(d))
    if d.state.realtime is not None:
        faults.pause(d, "disconnect")
    else:
        interruption.lose_sight(d)


def back(d: Draft) -> None:
    """Record that the client is there again, and ask it how much it heard of a paused reply."""
    d.cancel_timers("grace")
    away, d.client.away_since, d.client.presumed = d.client.away_since, 0, False
    if away and d.reply is not None:
        d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
        interruption.ask(d)


def window_ms(d: Draft) -> int:
    """Return the ms for which a lost client may come back."""
    return d.settings.resume_window_s * 1_000 if d.client.reports_playback else GRACE_MS


def connected(d: Draft, event: gateway.ClientConnected) -> None:
    """Attach a client's socket, and go on where the client stopped hearing."""
    state = d.state
    state.client.gateway, state.client.connection = event.gateway, event.connection
    if event.resumed and not state.client.away_since:  # the loss of its previous socket was not noticed
        if state.realtime is not None:
            faults.pause(d, "disconnect")
        else:
            interruption.pause(d, "disconnect")
    unplayed, state.speech.unplayed = state.speech.unplayed, None
    back(d)
    if d.reply is not None:
        return
    if event.resumed and unplayed is not None and d.utterance is None:
        _, _, again = playout.resume(unplayed.pieces, unplayed.playback.played_ms)
        rest = " ".join(piece.text for piece in unplayed.pieces[again:])
        if state.realtime is not None and rest:  # the realtime model says it, in the same voice as before
            turns.notice(d, rest)
        elif rest:
            turns.say(d, rest, turn=0)
