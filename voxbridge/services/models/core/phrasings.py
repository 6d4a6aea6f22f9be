"""Requests for functions that bring none: what the model is asked, and what is kept of its answer. Pure.

The router learns from what people say. Functions of MCP servers and of pages have a description alone, which is written for models: no
request for "Turns on/opens a device or entity" has many words in common with it. So the local model writes some requests, once for each
description.
"""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from voxbridge.services.models.core import chatml, grammar
from voxbridge.services.models.core.chatml import Message, Prompt

NUMBER: Final = 10
"""Requests written for a function."""

SHORTEST, LONGEST = 6, 70
"""Characters of a request."""

DESCRIPTION_LIMIT: Final = 300
"""Characters of a description that the model is shown."""

MAX_TOKENS: Final = 320
GRAMMAR: Final = grammar.for_schema(
    {
        "type": "array",
        "items": {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST},
        "minItems": NUMBER,
        "maxItems": NUMBER,
    }
)

_SYSTEM: Final = "You write down what people say aloud to a voice assistant."
_EXAMPLES: Final = (
    (
        "set_timer",
        "Start a timer that speaks up when it ends.",
        (
            "set a timer for ten minutes", "wake me in half an hour", "remind me when the eggs are done", "start a five minute countdown",
            "tell me in two hours", "count down ninety seconds", "timer for the pasta please", "let me know after a quarter of an hour",
            "give me twenty minutes", "ping me in an hour",
        ),
    ),
    (
        "search_photos",
        "Searches the user's photo library by people, places and dates.",
        (
            "show me photos of Anna", "find the pictures from Rome", "which photos did I take last summer", "pull up my wedding pictures",
            "any shots of the dog", "look for the picture of our old car", "photos from last Christmas please",
            "do I have a picture of the Eiffel tower", "open the pictures with my brother", "search my photos for sunsets",
        ),
    ),
)  # fmt: skip


_NOT_SAID: Final = re.compile(r"[_{}<>\[\]|\\`]|\.\w+\(|https?:")
"""Marks of code and templates: nobody says them aloud."""


def prompt(name: str, description: str) -> Prompt:
    """Return the prompt for a function."""
    messages = [Message("system", _SYSTEM)]
    for example, about, said in _EXAMPLES:
        messages += [Message("user", _asked(example, about)), Message("assistant", json.dumps(said))]
    # Without a family it uses the slot of short prompts, and drives out no prompt of a conversation.
    return msgspec.structs.replace(chatml.render([*messages, Message("user", _asked(name, description))]), family="")


def _asked(name: str, description: str) -> str:
    about = " ".join(description.split())[:DESCRIPTION_LIMIT]
    called = re.sub(r"[_-]+", " ", name).strip()
    return f"The assistant can do this: {called}: {about}\nWrite {NUMBER} different things that people say when they want it."


def read(answer: str) -> tuple[str, ...]:
    """Return the requests of an answer, each once; none if it is not what was asked for."""
    try:
        found = msgspec.json.decode(answer, type=list[str])
    except msgspec.DecodeError:
        return ()
    said = (" ".join(one.split()) for one in found[:NUMBER])
    kept = {one.lower(): one for one in said if SHORTEST <= len(one) <= LONGEST and " " in one and _NOT_SAID.search(one) is None}
    return tuple(kept.values())
