"""Thoughts of a reasoning model, taken out of what it streams.

Many open models write what they think between tags, in the text itself, and servers pass it on. Nobody is to hear, read or keep it. A tag
may be cut anywhere by the stream. Pure; holds no more of a text than the beginning of a tag.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = ("think", "thinking", "thought", "thoughts", "reasoning")
_TAG: Final = re.compile(rf"<(?P<end>/?)(?:{'|'.join(sorted(_NAMES, key=len, reverse=True))})>", re.IGNORECASE)
_TAGS: Final = tuple(f"<{end}{name}>" for name in _NAMES for end in ("", "/"))


class Thoughts:
    """A stream of text that loses its thoughts."""

    def __init__(self) -> None:
        self._held = ""
        self._after = False
        self.inside = False
        """True while what comes is thought."""

    def take(self, text: str) -> str:
        """Return what of the text so far may be told and was not returned before."""
        self._held += text
        told: list[str] = []
        while (tag := _TAG.search(self._held)) is not None:
            if not self.inside:
                told.append(self._without_gap(self._held[: tag.start()]))
            self._after = self._after or bool(tag["end"])
            self._held, self.inside = self._held[tag.end() :], not tag["end"]
        start = self._held.rfind("<")
        begun = start >= 0 and any(one.startswith(self._held[start:].casefold()) for one in _TAGS)
        ready = self._held[:start] if begun else self._held
        self._held = self._held[start:] if begun else ""
        if not self.inside:
            told.append(self._without_gap(ready))
        return "".join(told)

    def rest(self) -> str:
        """Return what was held back at the end of the stream: the beginning of a tag that never came."""
        rest, self._held = self._held, ""
        return "" if self.inside else rest

    def _without_gap(self, text: str) -> str:
        """Return a text without the empty lines that follow a thought."""
        if not self._after:
            return text
        text = text.lstrip()
        self._after = not text
        return text
