"""Entries of a transcript: words said and heard in a session, one for each event of the log, except that a user's words of one turn share
an entry. Pure."""

from __future__ import annotations

from typing import Any

from voxbridge.shared import events


def entry(recorded: events.Recorded, before: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the entry of an event, None for an event without words. If the event continues the user's words of `before`, the entry ahead
    of it, the result is that entry with more words and the same `seq`, and replaces it."""
    event = recorded.event
    place = {"seq": recorded.seq, "at_ms": recorded.ts // 1_000}
    if isinstance(event, events.voice.UserSaid):
        if event.continues and before is not None and (before["role"], before["turn"]) == ("user", event.turn):
            return {**before, "text": f"{before['text']} {event.text}"}
        return {**place, "role": "user", "turn": event.turn, "text": event.text}
    if isinstance(event, events.voice.AgentSaid):
        who = {name: value for name, value in (("agent", event.agent), ("voice", event.voice)) if value and event.agent}
        if not (event.text or event.unheard):
            return None  # a filler that covered a wait
        said = {"turn": event.turn, "text": event.text, "unheard": event.unheard, "interrupted": event.interrupted}
        return {**place, "role": "assistant", **said, **who}
    return None
