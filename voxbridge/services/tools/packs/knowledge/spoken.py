"""Words of the agent about knowledge: few, with the source. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from voxbridge.shared.knowledge import Node, Passage

TEXT_LIMIT: Final = 600
"""Characters of a passage in a result."""

SPOKEN_LIMIT: Final = 240
_END: Final = re.compile(r"(?<=[.!?])\s")
_WORD: Final = re.compile(r"\w+")


def passage(found: Passage) -> dict[str, Any]:
    """Return a passage as a result has it."""
    text = found.text if len(found.text) <= TEXT_LIMIT else found.text[: TEXT_LIMIT - 1] + "…"
    heading = " > ".join(found.headings)[:200]
    return {"database": found.graph, "source": found.source, "heading": heading, "line": found.line, "text": text, "score": found.score}


def node(found: Node) -> dict[str, Any]:
    """Return an entity as a result has it."""
    return {
        "database": found.graph,
        "kind": found.kind,
        "name": found.name,
        "passages": found.passages,
        "related": list(found.related),
        "told_by": found.told_by,
    }


def best_sentence(query: str, found: Passage) -> str:
    """Return the sentence of a passage that has most of the question's words, and where it is from."""
    asked = {word.casefold() for word in _WORD.findall(query)}
    sentences = [" ".join(one.split()) for one in _END.split(found.text) if one.strip()]
    best = max(sentences, key=lambda one: len(asked & {word.casefold() for word in _WORD.findall(one)}))
    cut = best if len(best) <= SPOKEN_LIMIT else best[: SPOKEN_LIMIT - 1].rsplit(" ", 1)[0] + "…"
    return f"{cut} That is from {title(found)}."


def title(found: Passage) -> str:
    """Return the name of a document as it is spoken."""
    name = found.title or found.source
    return name.rpartition("/")[2] or name


def counted(number: int, word: str) -> str:
    """Return a number with its word, in the plural where it is one."""
    return f"{number} {word}{'' if number == 1 else 's'}"
