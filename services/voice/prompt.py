"""What the language model is told: the standing instructions, and as much of the conversation as it can hold. Pure.

The instructions come first and never change within a session, so that an endpoint can keep them warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.voice.outputs import Message

PERSONA: Final = (
    "You are a friendly voice assistant who also tells stories. You are heard, not read: answer in one or two short spoken sentences, "
    "in plain words, without lists, markup or emoji. If you do not know something, say so."
)
WINDOW_CHARACTERS: Final = 6_000
"""Of conversation sent with a request: about 1,500 tokens."""


def instructions(custom: str) -> str:
    """The system prompt of a session."""
    return f"{PERSONA}\n\n{custom.strip()}" if custom.strip() else PERSONA


def window(system: str, history: Sequence[Message]) -> tuple[Message, ...]:
    """The system prompt and the newest whole turns that fit; at least the last turn. User messages in a row are one."""
    start = len(history)
    used = 0
    for index in range(len(history) - 1, -1, -1):
        used += len(history[index].text) + sum(len(str(use.arguments)) for use in history[index].uses)
        if used > WINDOW_CHARACTERS and start < len(history):
            break
        if history[index].role == "user":
            start = index
    recent: list[Message] = [Message(role="system", text=system)]
    for message in history[start:]:
        if message.role == "user" and recent[-1].role == "user":
            recent[-1] = Message(role="user", text=f"{recent[-1].text} {message.text}")
        else:
            recent.append(message)
    return tuple(recent)
