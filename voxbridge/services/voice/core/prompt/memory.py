"""History of the conversation for the next model: what each side said, and the results of calls. Pure.

`State.history` holds what was heard, not what was made; each call is followed by its result. What no longer fits is kept as a summary
(`State.earlier`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.core.state import Reply
from voxbridge.services.voice.core.transition import Transition

HISTORY_LIMIT: Final = 400
HISTORY_KEPT: Final = 300
"""Number of messages kept when the history is shortened; the removed ones are summarised (`State.earlier`)."""

RESULT_LIMIT: Final = 4_000
"""Characters of a call's result that the model is given; the log has the whole result."""


def remember_round(t: Transition, reply: Reply) -> None:
    """Put a round's words, calls and results into the history, a result for every call."""
    text = " ".join(filter(None, [reply.round.before, *(piece.text for piece in reply.pieces[reply.round.first_piece :])]))
    results = dict(t.pending.results)
    _remember(
        t,
        out.Message(role="assistant", text=text, uses=reply.round.uses),
        *(out.Message(role="tool", call_id=use.call_id, text=as_text(results.get(use.call_id, {}))) for use in reply.round.uses),
    )
    t.pending.results = ()


def remember_text(t: Transition, text: str) -> None:
    """Add words of the agent to the conversation."""
    if text:
        _remember(t, out.Message(role="assistant", text=text))


def remember_user(t: Transition, text: str, *, at: int | None = None) -> None:
    """Put what the user said into the history: at the end, or behind the first `at` messages that ever came into it."""
    t.conversation.asked += 1
    said = out.Message(role="user", text=text)
    later = t.conversation.remembered - at if at is not None else 0
    if later <= 0:
        _remember(t, said)
        return
    place = max(0, len(t.conversation.history) - later)
    while place > 0 and t.conversation.history[place].role == "tool":  # a call and its result stay together
        place -= 1
    t.conversation.history = (*t.conversation.history[:place], said, *t.conversation.history[place:])
    t.conversation.remembered += 1


def remember_more(t: Transition, text: str) -> None:
    """Append what the user went on to say to the last message of the history, which holds the earlier part of the turn."""
    *before, last = t.conversation.history
    t.conversation.history = (*before, replace(last, text=f"{last.text} {text}"))


def last_words(t: Transition) -> str:
    """Return the last message of the history."""
    return t.conversation.history[-1].text


def remember_note(t: Transition, text: str) -> None:
    """Put a note for the agent into the history, as a message of the user."""
    t.conversation.asked += 1
    _remember(t, out.Message(role="user", text=text))


def remember_call(t: Transition, use: out.ToolUse, result: dict[str, Any]) -> None:
    """Put a call and its result into the history."""
    _remember(t, out.Message(role="assistant", uses=(use,)), out.Message(role="tool", call_id=use.call_id, text=as_text(result)))


def as_text(result: dict[str, Any]) -> str:
    """Return a call's result as text for a model: of a long result, the beginning and the full length."""
    text = _json(result)
    return text if len(text) <= RESULT_LIMIT else f"{text[:RESULT_LIMIT]}… (the first {RESULT_LIMIT:,} of {len(text):,} characters)"


def _remember(t: Transition, *messages: out.Message) -> None:
    """Append to the history; if it is too long, remove whole turns from its beginning."""
    t.conversation.remembered += len(messages)
    history = (*t.conversation.history, *messages)
    if len(history) > HISTORY_LIMIT:
        kept = range(len(history) - HISTORY_KEPT, len(history))
        start = next((index for index in kept if history[index].role == "user"), kept.start)
        t.conversation.earlier = prompt.forget(history[:start], t.conversation.earlier)
        history = history[start:]
    t.conversation.history = history


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
