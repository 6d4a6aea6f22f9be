"""Prompt of a language model: the standing instructions, and as much of the conversation as fits. Pure.

The instructions come first and never change within a session, so that an endpoint can cache them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from voxbridge.services.voice.core.prompt import token_estimate
from voxbridge.services.voice.core.state import NOTHING, Earlier
from voxbridge.shared.agents.model import Agent, identity
from voxbridge.shared.agents.notes import note
from voxbridge.shared.language.conversation import Message

PERSONA: Final = (
    "You are a friendly voice assistant who also tells stories. You are heard, not read: answer in one or two short spoken sentences, "
    "in plain words, without lists, markup or emoji. If you do not know something, say so."
)
WINDOW_CHARACTERS: Final = 6_000
"""Characters of conversation sent to the installation's own models and to endpoints that it names: about 1,500 tokens. All sizes here are
in characters of English; other scripts and figures take more (`token_estimate`)."""

WINDOWS: Final = {"anthropic": 100_000, "gemini": 100_000, "openai": 100_000}
"""The same for vendors' models, by provider: about 25,000 tokens."""

REALTIME_WINDOWS: Final = {"gemini": 100_000, "openai": 64_000}
"""The same for realtime models. OpenAI's hold 32,000 tokens, including all that is spoken later."""

SUMMARY_SHARE: Final = 5
"""Divisor of a window: if a conversation does not fit, this part of the window holds a summary of what was said before."""

STEPS: Final = 3
"""Divisor of the rest of a window: its beginning moves on by this part at a time. Requests then begin alike for many turns, and an
endpoint can cache that beginning."""

EARLIER_CHARACTERS: Final = 20_000
"""Size of the summary kept of what was said before the history begins."""

LINE_SHARE: Final = 8
"""Divisor of a summary: one line takes at most this part of it."""

SURPLUS: Final = 2
"""Divisor of a window: the last turn may exceed the window by this part of it; what goes beyond is shortened."""

RESULT_SHARE: Final = 8
"""Divisor of a window: results of calls are shortened before anything else, but not below this part of it."""

SHORTER: Final = "{}… (shortened)"
MIDDLE: Final = "{} … {}"

MANNER: Final = "You are heard, not read: answer in one or two short spoken sentences, in plain words, without lists, markup or emoji."
SUMMARY_CHARACTERS: Final = 2_000
"""Characters of conversation told to a model over a connection that knows the rest."""

BEFORE: Final = note("This was said before, shortened:\n{}\nFrom here on it is word for word.") + "\n\n{}"
_GAP: Final = "…"
_SPEAKERS: Final = {"user": "User", "assistant": "You"}


class Aside(NamedTuple):
    """A text for the model that nobody said, in front of the message of the history with this index."""

    text: str
    before: int


def instructions(custom: str, agent: Agent | None = None) -> str:
    """Return the system prompt of an agent; `custom` is what the session's client adds to it."""
    if agent is None or not agent.name:
        return "\n\n".join(filter(None, [PERSONA, custom.strip()]))
    language = f"Speak {agent.language} unless the user speaks another language." if agent.language else ""
    return "\n\n".join(filter(None, [agent.prompt.strip() or PERSONA, MANNER, language, identity(agent), custom.strip()]))


def told(history: Sequence[Message], *, newest: int) -> str:
    """Return the newest exchanges, from the user's `newest`-th last message on, as lines of text; empty for none."""
    start = len(history)
    for index in range(len(history) - 1, -1, -1):
        if newest <= 0:
            break
        start = index
        newest -= history[index].role == "user"
    lines = [f"{_SPEAKERS[one.role]}: {one.text}" for one in history[start:] if one.role in _SPEAKERS and one.text]
    return "\n".join(lines)[-SUMMARY_CHARACTERS:]


def room(agent: Agent) -> int:
    """Return how much of the conversation an agent's model is given, in characters of English."""
    if agent.realtime is not None and agent.speaks_itself:
        return REALTIME_WINDOWS.get(agent.realtime.provider, WINDOW_CHARACTERS)
    return WINDOWS.get(agent.llm.provider, WINDOW_CHARACTERS)


def with_summary(system: str, history: Sequence[Message], *, limit: int = WINDOW_CHARACTERS, earlier: Earlier = NOTHING) -> str:
    """Return the system prompt with a summary of what was said so far."""
    said = shortened([earlier.text, *_lines(history)], limit // SUMMARY_SHARE)
    return f"{system}\n\n## The conversation so far\nIt was interrupted by a fault and goes on now.\n{said}"


def forget(history: Sequence[Message], earlier: Earlier) -> Earlier:
    """Return the summary of a conversation's beginning after `history`, the next part of it, is removed too."""
    text = shortened([earlier.text, *_lines(history)], EARLIER_CHARACTERS)
    return Earlier(text=text, characters=earlier.characters + sum(map(_size, history)))


def shortened(lines: Sequence[str], limit: int) -> str:
    """Return whole lines from the beginning and the end, within `limit`, with a mark for what is left out between them."""
    each = max(1, limit // LINE_SHARE)
    lines = [
        line if token_estimate.size(line) <= each else f"{token_estimate.first(line, each - token_estimate.size(_GAP))}{_GAP}"
        for line in "\n".join(filter(None, lines)).split("\n")
    ]
    if sum(token_estimate.size(line) + 1 for line in lines) <= limit:
        return "\n".join(lines)
    half = (limit - token_estimate.size(_GAP) - 2) // 2
    first, last = _taken(lines, half), _taken(lines[::-1], half)
    return "\n".join([*lines[:first], _GAP, *lines[len(lines) - last :]])


def begins(history: Sequence[Message], *, limit: int = WINDOW_CHARACTERS, earlier: Earlier = NOTHING) -> int:
    """Return the index at which the newest whole turns that fit begin, at the latest that of the last turn."""
    users = [index for index, message in enumerate(history) if message.role == "user"]
    if not users:
        return len(history)
    taken = [_size(message) for message in history]
    if not earlier.text and sum(taken[users[0] :]) <= limit:
        return users[0]
    rest = limit - limit // SUMMARY_SHARE
    step = max(1, rest // STEPS)
    # Count from the beginning of the conversation, to find the same place again after more was said.
    end = earlier.characters + sum(taken)
    bound = -(-max(0, end - rest) // step) * step
    at = earlier.characters
    for index, size in enumerate(taken):
        if at >= bound and history[index].role == "user":
            return index
        at += size
    return users[-1]


def is_cut(history: Sequence[Message], *, limit: int = WINDOW_CHARACTERS, earlier: Earlier = NOTHING) -> bool:
    """Check whether a model is given less than the full text of the conversation."""
    return bool(earlier.text) or any(one.role == "user" for one in history[: begins(history, limit=limit, earlier=earlier)])


def window(
    system: str, history: Sequence[Message], *, limit: int = WINDOW_CHARACTERS, earlier: Earlier = NOTHING, asides: Sequence[Aside] = ()
) -> tuple[Message, ...]:
    """Return the system prompt and the newest whole turns that fit. The last turn is always included, shortened if necessary. The first
    message holds a summary of what was said before, if anything was. Consecutive messages of a speaker are merged, up to a call and on
    either side of an aside, which is a message of its own. Of the asides that belong before these turns, the last one stands there."""
    start = begins(history, limit=limit, earlier=earlier)
    recent: list[Message] = [Message(role="system", text=system)]
    cut = is_cut(history, limit=limit, earlier=earlier)
    waiting = deque(one for one in asides if not cut or one.before >= start or one is asides[-1])
    placed: dict[int, list[Message]] = {}
    for index, message in enumerate(history[start:], start):
        if waiting and index >= waiting[0].before:
            placed[len(recent)] = [Message(role="user", text=waiting.popleft().text)]
            while waiting and index >= waiting[0].before:
                placed[len(recent)].append(Message(role="user", text=waiting.popleft().text))
            recent.append(message)
        elif message.role == recent[-1].role and message.role in _SPEAKERS and not recent[-1].uses:
            text = " ".join(filter(None, [recent[-1].text, message.text]))
            recent[-1] = Message(role=message.role, text=text, uses=message.uses)
        else:
            recent.append(message)
    if len(recent) > 1 and cut:
        room = limit // SUMMARY_SHARE - len(BEFORE)
        recent[1] = Message(role="user", text=BEFORE.format(shortened([earlier.text, *_lines(history[:start])], room), recent[1].text))
    fitted = _fitted(recent[1:], limit + limit // SURPLUS - sum(token_estimate.size(one.text) for one in asides))
    last = [Message(role="user", text=one.text) for one in waiting]
    behind = [one for index, message in enumerate(fitted, 1) for one in (*placed.get(index, ()), message)]
    return (recent[0], *behind, *last)


def _fitted(messages: Sequence[Message], limit: int) -> Sequence[Message]:
    """Return the messages, the longest of them shortened if they do not fit: results of calls first, then what was said."""
    taken = [_size(message) for message in messages]
    for roles, least in ((("tool",), limit // RESULT_SHARE), (("tool", "user", "assistant"), 0)):
        if sum(taken) <= limit:
            break
        chosen = [index for index, message in enumerate(messages) if message.role in roles]
        rest = limit - (sum(taken) - sum(taken[index] for index in chosen))
        most = max(least, token_estimate.level([taken[index] for index in chosen], rest))
        messages = [_short(message, most) if index in chosen else message for index, message in enumerate(messages)]
        taken = [_size(message) for message in messages]
    return messages


def _short(message: Message, most: int) -> Message:
    """Return a message of at most this size. A result keeps its beginning; other text also keeps its end, where a question stands."""
    over = _size(message) - most
    if over <= 0:
        return message
    room = token_estimate.size(message.text) - over
    if message.role == "tool":
        text = SHORTER.format(token_estimate.first(message.text, room - token_estimate.size(SHORTER)))
    else:
        room = (room - token_estimate.size(MIDDLE)) // 2
        text = MIDDLE.format(token_estimate.first(message.text, room), token_estimate.last(message.text, room))
    return replace(message, text=text)


def _lines(history: Sequence[Message]) -> list[str]:
    """Return what was said, one line per message, without the results of calls."""
    return [f"{_SPEAKERS[one.role]}: {' '.join(one.text.split())}" for one in history if one.role in _SPEAKERS and one.text]


def _size(message: Message) -> int:
    return token_estimate.size(message.text) + sum(token_estimate.size(str(use.arguments)) for use in message.uses)


def _taken(lines: Sequence[str], limit: int) -> int:
    """Return how many of these lines fit."""
    for count, line in enumerate(lines):
        limit -= token_estimate.size(line) + 1
        if limit < 0:
            return count
    return len(lines)
