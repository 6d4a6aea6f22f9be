"""The life of a terminal in sentences, as the command line and Studio show it. Pure."""

from __future__ import annotations

from voxbridge.shared.events import terminals as told

_DOES = {
    "starting": "is starting",
    "idle": "waits for what comes next",
    "working": "works",
    "blocked": "asks something",
    "done": "is done",
    "dead": "has ended",
    "unknown": "does something that nobody can tell",
}
_ASKS = {"permission": "asks for permission", "question": "asks", "auth": "asks for a password or a login", "error": "has failed"}


def sentence(event: told.Happened) -> str:
    """Return what happened in a sentence of bounded length: the texts in an event are."""
    match event:
        case told.TerminalStarted(run=1):
            return f"{event.by} started {event.definition} in {event.directory}."
        case told.TerminalStarted():
            return f"{event.by} started it again (start {event.run})."
        case told.TerminalChanged(state=state):
            does = _ASKS.get(state.reason, _DOES[state.phase]) if state.phase in ("blocked", "done") else _DOES[state.phase]
            return f"It {does}: {state.words}" if state.words else f"It {does}."
        case told.TerminalSent(outcome="not_submitted"):
            return f"{event.by} sent {_what(event)}, which was not taken: {event.reason}"
        case told.TerminalSent():
            return f"{event.by} sent {_what(event)}. {event.proof}".rstrip()
        case told.TerminalTyped(connections=1):
            return f"Somebody typed {_bytes(event.size)}."
        case told.TerminalTyped():
            return f"People at {event.connections} windows typed {_bytes(event.size)}."
        case told.TerminalResized():
            return f"It has {event.columns} columns and {event.rows} rows."
        case told.TerminalRenamed():
            return f"{event.by} named it {event.name}."
        case told.TerminalSignalled():
            return f"{event.by} sent the signal {event.signal}."
        case told.TerminalEnded():
            return event.sentence or "It ended."
        case told.TerminalClosed(left=left):
            return f"{event.by} closed it." if not left else f"{event.by} closed it. These live on: {', '.join(left)}."
        case told.TerminalUnrecorded():
            return f"{event.count} more happenings are not in the log, which was away."
    return ""


def _what(event: told.TerminalSent) -> str:
    return f"the key {event.key}" if event.key else f"a text of {_bytes(event.size)}"


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size:,} bytes"
