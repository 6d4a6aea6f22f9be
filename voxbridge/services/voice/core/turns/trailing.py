"""Trailing replies: those still being heard while the next one is made. Pure.

A model produces audio faster than it is heard, and one agent's voice may follow another's. The next reply then begins while the one before
it trails. A trailing reply is in the history as it was made. Its heard part is recorded once it is known: by the client's report, when the
next reply begins to be heard, by the clock, or when the reply is cut off. After a cut, the history keeps only the heard part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core.state import Reply
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import playout
from voxbridge.shared.events import voice as ev

TIMER: Final = "trailed"
LIMIT: Final = 8
"""Number of replies that may trail; beyond it, the oldest is assumed to have been heard."""

MARGIN_MS: Final = 3_000
"""Milliseconds to wait for the client's report after a reply's end by the clock."""

Close = Callable[[Transition, Reply, ev.TurnReason], None]
"""Function that ends the turn of a reply."""


def follow(t: Transition, reply: Reply, close: Close) -> None:
    """Let a reply that is completely made trail, because another one follows it."""
    if t.team.output == "text" or not playout.made_ms(reply):
        _whole(t, reply, close)
        return
    t.speech.trailing = (*t.speech.trailing, reply)
    if len(t.speech.trailing) > LIMIT:
        _whole(t, t.speech.trailing[0], close)
    t.set_timer(TIMER, left_ms(t) + MARGIN_MS)


def left_ms(t: Transition) -> int:
    """Return the ms of trailing audio that are still to be heard, by the clock."""
    if not t.speech.trailing:
        return 0
    return sum(playout.made_ms(one) for one in t.speech.trailing) - playout.estimate(t.speech.trailing[0], t.now)


def heard_to_the_end(t: Transition, close: Close) -> None:
    """Record all trailing replies as heard: by the clock, or because the reply after them was heard."""
    for reply in t.speech.trailing:
        _whole(t, reply, close)


def reported(t: Transition, generation: int, played_ms: int, state: str, close: Close) -> None:
    """Apply the client's report of how far it played a generation: earlier generations were played to their end."""
    for reply in t.speech.trailing:
        if reply.generation == generation and state == "flushed":
            _cut(t, reply, played_ms, close)
        elif reply.generation < generation if state != "finished" else reply.generation <= generation:
            _whole(t, reply, close)
        elif reply.generation == generation:
            _put(
                t,
                replace(
                    reply,
                    playback=replace(reply.playback, playing=True, played_ms=max(reply.playback.played_ms, played_ms), played_at=t.now),
                ),
            )


def sent(t: Transition, generation: int, close: Close) -> None:
    """Record that the first frame of a generation was sent; without playback reports, earlier generations count as heard."""
    for reply in t.speech.trailing:
        if reply.generation == generation:
            _put(t, replace(reply, playback=replace(reply.playback, sent=t.now, playing=not t.client.reports_playback)))
        elif reply.generation < generation and not t.client.reports_playback:
            _whole(t, reply, close)


def cut(t: Transition, close: Close) -> None:
    """Cut off all trailing replies. Their heard part is estimated by the clock since the client's last report."""
    for reply in t.speech.trailing:
        _cut(t, reply, playout.estimate(reply, t.now), close)


def recall(t: Transition) -> None:
    """Make the last trailing reply the current one, if there is no other: it is still being heard."""
    if t.speech.reply is None and t.speech.trailing:
        *before, last = t.speech.trailing
        t.speech.trailing = tuple(before)
        t.speech.reply = replace(last, goes_on=False)
        if not before:
            t.cancel_timers(TIMER)


def _whole(t: Transition, reply: Reply, close: Close) -> None:
    _forget(t, reply)
    text, filler = playout.text(reply.pieces), playout.fillers(reply.pieces)
    if text or filler:
        spoken = playout.made_ms(reply) if t.team.output == "audio" else None
        t.append(said(t, reply, text, played_ms=spoken, filler=filler))
    if not reply.goes_on:
        close(t, reply, "failed" if reply.failed else "completed")


def _cut(t: Transition, reply: Reply, played_ms: int, close: Close) -> None:
    _forget(t, reply)
    played_ms = min(played_ms, playout.made_ms(reply))
    text, unheard = playout.split(reply.pieces, played_ms)
    if not unheard and (text or played_ms == playout.made_ms(reply)):
        _whole(t, reply, close)
        return
    filler = playout.fillers(reply.pieces, played_ms)
    if unheard or filler:
        t.append(said(t, reply, text, unheard=unheard, interrupted=True, played_ms=played_ms, filler=filler))
    if unheard:
        shorten(t, reply, text)
    realtime, whole = t.state.realtime, playout.text(reply.pieces)
    if realtime is not None and reply.goes_on and realtime.owed.said.endswith(whole):
        t.state.realtime = replace(realtime, owed=replace(realtime.owed, said=f"{realtime.owed.said.removesuffix(whole)}{text}".strip()))
    if not reply.goes_on:
        close(t, reply, "interrupted")


def shorten(t: Transition, reply: Reply, text: str) -> None:
    """Shorten a reply in the history to `text`."""
    whole = " ".join(filter(None, [reply.round.before, playout.text(reply.pieces[reply.round.first_piece :])]))
    heard_of_it = " ".join(filter(None, [reply.round.before, text]))
    history = list(t.conversation.history)
    for index in range(len(history) - 1, -1, -1):
        if history[index].role == "assistant" and history[index].text == whole and not history[index].uses:
            history[index : index + 1] = [replace(history[index], text=heard_of_it)] if heard_of_it else []
            t.conversation.remembered += len(history) - len(t.conversation.history)
            t.conversation.history = tuple(history)
            return


def said(
    t: Transition, reply: Reply, text: str, *, unheard: str = "", interrupted: bool = False, played_ms: int | None = None, filler: str = ""
) -> ev.AgentSaid:
    """Build the event that records what was heard of a reply."""
    return ev.AgentSaid(
        text=text,
        unheard=unheard,
        turn=reply.turn,
        generation=reply.generation,
        interrupted=interrupted,
        played_ms=played_ms,
        output=t.team.output,
        agent=reply.speaker.agent,
        voice=reply.speaker.voice,
        apology=reply.kind == "apology",
        filler=filler,
    )


def _forget(t: Transition, reply: Reply) -> None:
    t.speech.trailing = tuple(one for one in t.speech.trailing if one.generation != reply.generation)
    if not t.speech.trailing:
        t.cancel_timers(TIMER)


def _put(t: Transition, reply: Reply) -> None:
    t.speech.trailing = tuple(reply if one.generation == reply.generation else one for one in t.speech.trailing)
