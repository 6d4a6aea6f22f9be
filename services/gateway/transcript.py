"""A transcript's entries: what was said and heard in a session, one for each fact of the log. Pure."""

from __future__ import annotations

from typing import Any

from shared import events


def entry(recorded: events.Recorded) -> dict[str, Any] | None:
    """The entry of an event; nothing for one that says nothing."""
    event = recorded.event
    place = {"seq": recorded.seq, "at_ms": recorded.ts // 1_000}
    if isinstance(event, events.voice.UserSaid):
        return {**place, "role": "user", "turn": event.turn, "text": event.text}
    if isinstance(event, events.voice.AgentSaid):
        who = {name: value for name, value in (("agent", event.agent), ("voice", event.voice)) if value and event.agent}
        if not (event.text or event.unheard):
            return None  # words that covered a wait
        said = {"turn": event.turn, "text": event.text, "unheard": event.unheard, "interrupted": event.interrupted}
        return {**place, "role": "assistant", **said, **who}
    return None
