"""The user's screen as a session's models are told of it: when, and where in the conversation. Pure.

A cascade is told in a message of its own that stands where the conversation was when it was told. The installation's own model reads it
before it is asked. An earlier message stays, since the model would read all that was said behind it again: the newer one says that it holds
instead. Where no entry of a kind is left, as of a source that was switched off, nothing earlier stays. A realtime model is told as content,
since it cannot forget: at most once a minute, and again over a connection that does not know. Owns no words
(`voxbridge.shared.awareness.prompt`).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import agents
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt.prompt import Aside, room, window
from voxbridge.services.voice.core.state import ScreenPart, State
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.awareness import prompt
from voxbridge.shared.awareness.view import View

TIMER: Final = "screen"
PARTS: Final = 3
"""Messages that tell of the screen, at most: the one after them stands alone."""

GAP_MS: Final = 5_000
"""Milliseconds between two times that the model of a cascade is told: a page that is only passed is not read."""

REALTIME_GAP_MS: Final = 60_000
BUSY_MS: Final = 1_000
"""Milliseconds after which a model that was busy is told."""


def know(t: Transition, view: View) -> None:
    """Take what is known now, and tell the models when it is time."""
    screen = t.conversation.screen
    if t.state.request is None or t.state.request.mode == "echo":
        return
    t.conversation.screen = replace(screen, known=view)
    if view == screen.told:
        t.cancel_timers(TIMER)
        return
    gap = REALTIME_GAP_MS if t.state.realtime is not None else GAP_MS
    wait = gap - (t.now - screen.told_at) // 1_000 if screen.told_at else 0
    if wait > 0:
        t.set_timer(TIMER, wait)
    else:
        due(t)


def due(t: Transition) -> None:
    """Tell the models, unless a cascade is at work: its request would begin otherwise than the one before."""
    screen = t.conversation.screen
    if t.state.phase != "open" or screen.known == screen.told:
        return
    if t.state.realtime is None and (t.reply is not None or t.utterance is not None):
        t.set_timer(TIMER, BUSY_MS)
    else:
        _tell(t)
        _read_ahead(t)


def turn_begins(t: Transition) -> None:
    """Tell a cascade before the user's next words come into its history: the answer may depend on the page that was just opened."""
    screen = t.conversation.screen
    if t.state.realtime is None and screen.known != screen.told:
        t.cancel_timers(TIMER)
        _tell(t)


def connected(t: Transition) -> None:
    """Tell a realtime model over a connection that does not know what the one before was told."""
    screen = t.conversation.screen
    if screen.text and t.state.realtime is not None:
        t.outputs.append(out.Say(t.state.realtime.effect, screen.text, respond=False))


def asides(state: State) -> tuple[Aside, ...]:
    """Return the parts of the prompt, and their places in the history as it is now."""
    conversation = state.conversation
    gone = conversation.remembered - len(conversation.history)
    return tuple(Aside(one.text, one.remembered - gone) for one in conversation.screen.parts)


def _tell(t: Transition) -> None:
    screen = t.conversation.screen
    earlier = _earlier(t)
    text = prompt.part(screen.known, t.now, again=bool(earlier))
    realtime = t.state.realtime
    if realtime is not None and realtime.ready:
        t.outputs.append(out.Say(realtime.effect, text or prompt.EMPTIED, respond=False))
    parts = (*earlier, ScreenPart(text=text, remembered=t.conversation.remembered)) if text else ()
    t.conversation.screen = replace(screen, told=screen.known, told_at=t.now, parts=parts)


def _earlier(t: Transition) -> tuple[ScreenPart, ...]:
    """Return the parts that may stay when a new one is told."""
    screen = t.conversation.screen
    parts = tuple(one for one in screen.parts if one.remembered < t.conversation.remembered)
    gone = any(had and not had & has for had, has in zip(_entries(screen.told), _entries(screen.known), strict=True))
    return () if t.state.realtime is not None or gone or len(parts) >= PARTS else parts


def _entries(view: View) -> tuple[set[str], set[str], set[str]]:
    return {one.id for one in view.pages}, {one.id for one in view.errors}, {one.key for one in view.context}


def _read_ahead(t: Transition) -> None:
    agent = t.team.agent
    if agents.thinks_here(agent) and t.conversation.screen.text:
        conversation = t.conversation
        messages = window(
            t.team.instructions, conversation.history, limit=room(agent), earlier=conversation.earlier, asides=asides(t.state)
        )
        shared = agents.shared(t.state)
        t.outputs.append(out.ReadAhead(model=t.team.model, messages=messages, functions=t.team.functions, shared=shared))
