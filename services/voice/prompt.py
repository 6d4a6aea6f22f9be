"""What the language model is told: the standing instructions, and as much of the conversation as it can hold. Pure.

The instructions come first and never change within a session, so that an endpoint can keep them warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.voice.outputs import Message
from shared.agents import Agent, identity

PERSONA: Final = (
    "You are a friendly voice assistant who also tells stories. You are heard, not read: answer in one or two short spoken sentences, "
    "in plain words, without lists, markup or emoji. If you do not know something, say so."
)
WINDOW_CHARACTERS: Final = 6_000
"""Of conversation sent with a request: about 1,500 tokens."""


MANNER: Final = "You are heard, not read: answer in one or two short spoken sentences, in plain words, without lists, markup or emoji."
SUMMARY_CHARACTERS: Final = 2_000
"""Of conversation told to a model that cannot be given its turns."""


def instructions(custom: str, agent: Agent | None = None) -> str:
    """The system prompt of an agent; `custom` is what the session's client adds to it."""
    if agent is None or not agent.name:
        return "\n\n".join(filter(None, [PERSONA, custom.strip()]))
    language = f"Speak {agent.language} unless the user speaks another language." if agent.language else ""
    return "\n\n".join(filter(None, [agent.prompt.strip() or PERSONA, MANNER, language, identity(agent), custom.strip()]))


def told(history: Sequence[Message], *, newest: int) -> str:
    """The newest exchanges, from the user's `newest`-th last words on, as lines of text; empty for none."""
    start = len(history)
    for index in range(len(history) - 1, -1, -1):
        if newest <= 0:
            break
        start = index
        newest -= history[index].role == "user"
    names = {"user": "User", "assistant": "You"}
    lines = [f"{names[one.role]}: {one.text}" for one in history[start:] if one.role in names and one.text]
    return "\n".join(lines)[-SUMMARY_CHARACTERS:]


def with_summary(system: str, history: Sequence[Message]) -> str:
    """The system prompt, and what was said so far, shortened."""
    return f"{system}\n\n## The conversation so far\nIt was interrupted by a fault and goes on now.\n{told(history, newest=len(history))}"


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
