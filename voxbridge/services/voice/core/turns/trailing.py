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
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import playout
from voxbridge.shared.events import voice as ev

TIMER: Final = "trailed"
LIMIT: Final = 8
"""Number of replies that may trail; beyond it, the oldest is assumed to have been heard."""

MARGIN_MS: Final = 3_000
"""Milliseconds to wait for the client's report after a reply's end by the clock."""

Close = Callable[[Draft, Reply, ev.TurnReason], None]
"""Function that ends the turn of a reply."""


def follow(d: Draft, reply: Reply, close: Close) -> None:
    """Let a reply that is completely made trail, because another one follows it."""
    if d.team.output == "text" or not playout.made_ms(reply):
        _whole(d, reply, close)
        return
    d.speech.trailing = (*d.speech.trailing, reply)
    if len(d.speech.trailing) > LIMIT:
        _whole(d, d.speech.trailing[0], close)
    d.set_timer(TIMER, left_ms(d) + MARGIN_MS)


def left_ms(d: Draft) -> int:
    """Return the ms of trailing audio that are still to be heard, by the clock."""
    if not d.speech.trailing:
        return 0
    return sum(playout.made_ms(one) for one in d.speech.trailing) - playout.estimate(d.speech.trailing[0], d.now)


def heard_to_the_end(d: Draft, close: Close) -> None:
    """Record all trailing replies as heard: by the clock, or because the reply after them was heard."""
    for reply in d.speech.trailing:
        _whole(d, reply, close)


def reported(d: Draft, generation: int, played_ms: int, state: str, close: Close) -> None:
    """Apply the client's report of how far it played a generation: earlier generations were played to their end."""
    for reply in d.speech.trailing:
        if reply.generation == generation and state == "flushed":
            _cut(d, reply, played_ms, close)
        elif reply.generation < generation if state != "finished" else reply.generation <= generation:
            _whole(d, reply, close)
        elif reply.generation == generation:
            _put(
                d,
                replace(
                    reply,
                    playback=replace(reply.playback, playing=True, played_ms=max(reply.playback.played_ms, played_ms), played_at=d.now),
                ),
            )


def sent(d: Draft, generation: int, close: Close) -> None:
    """Record that the first frame of a generation was sent; without playback reports, earlier generations count as heard."""
    for reply in d.speech.trailing:
        if reply.generation == generation:
            _put(d, replace(reply, playback=replace(reply.playback, sent=d.now, playing=not d.client.reports_playback)))
        elif reply.generation < generation and not d.client.reports_playback:
            _whole(d, reply, close)


def cut(d: Draft, close: Close) -> None:
    """Cut off all trailing replies. Their heard part is estimated by the clock since the client's last report."""
    for reply in d.speech.trailing:
        _cut(d, reply, playout.estimate(reply, d.now), close)


def recall(d: Draft) -> None:
    """Make the last trailing reply the current one, if there is no other: it is still being heard."""
    if d.speech.reply is None and d.speech.trailing:
        *before, last = d.speech.trailing
        d.speech.trailing = tuple(before)
        d.speech.reply = replace(last, goes_on=False)
        if not before:
            d.cancel_timers(TIMER)


def _whole(d: Draft, reply: Reply, close: Close) -> None:
    _forget(d, reply)
    text, filler = playout.text(reply.pieces), playout.fillers(reply.pieces)
    if text or filler:
        spoken = playout.made_ms(reply) if d.team.output == "audio" else None
        d.append(said(d, reply, text, played_ms=spoken, filler=filler))
    if not reply.goes_on:
        close(d, reply, "failed" if reply.failed else "completed")


def _cut(d: Draft, reply: Reply, played_ms: int, close: Close) -> None:
    _forget(d, reply)
    played_ms = min(played_ms, playout.made_ms(reply))
    text, unheard = playout.split(reply.pieces, played_ms)
    if not unheard and (text or played_ms == playout.made_ms(reply)):
        _whole(d, reply, close)
        return
    filler = playout.fillers(reply.pieces, played_ms)
    if unheard or filler:
        d.append(said(d, reply, text, unheard=unheard, interrupted=True, played_ms=played_ms, filler=filler))
    if unheard:
        shorten(d, reply, text)
    realtime, whole = d.state.realtime, playout.text(reply.pieces)
    if realtime is not None and reply.goes_on and realtime.owed.said.endswith(whole):
        d.state.realtime = replace(realtime, owed=replace(realtime.owed, said=f"{realtime.owed.said.removesuffix(whole)}{text}".strip()))
    if not reply.goes_on:
        close(d, reply, "interrupted")


def shorten(d: Draft, reply: Reply, text: str) -> None:
    """Shorten a reply in the history to `text`."""
    whole = " ".join(filter(None, [reply.round.before, playout.text(reply.pieces[reply.round.first_piece :])]))
    heard_of_it = " ".join(filter(None, [reply.round.before, text]))
    history = list(d.conversation.history)
    for index in range(len(history) - 1, -1, -1):
        if history[index].role == "assistant" and history[index].text == whole and not history[index].uses:
            history[index : index + 1] = [replace(history[index], text=heard_of_it)] if heard_of_it else []
            d.conversation.remembered += len(history) - len(d.conversation.history)
            d.conversation.history = tuple(history)
            return


def said(
    d: Draft, reply: Reply, text: str, *, unheard: str = "", interrupted: bool = False, played_ms: int | None = None, filler: str = ""
) -> ev.AgentSaid:
    """Build the event that records what was heard of a reply."""
    return ev.AgentSaid(
        text=text,
        unheard=unheard,
        turn=reply.turn,
        generation=reply.generation,
        interrupted=interrupted,
        played_ms=played_ms,
        output=d.team.output,
        agent=reply.speaker.agent,
        voice=reply.speaker.voice,
        apology=reply.kind == "apology",
        filler=filler,
    )


def _forget(d: Draft, reply: Reply) -> None:
    d.speech.trailing = tuple(one for one in d.speech.trailing if one.generation != reply.generation)
    if not d.speech.trailing:
        d.cancel_timers(TIMER)


def _put(d: Draft, reply: Reply) -> None:
    d.speech.trailing = tuple(reply if one.generation == reply.generation else one for one in d.speech.trailing)
