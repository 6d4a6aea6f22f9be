"""Markdown to HTML that is safe to show: HTML in it stays text, and links lead to the web or to mail alone."""

from __future__ import annotations

from typing import Final

from voxbridge.services.tools.packs.utilities.bounds import refused

BRACKETS_LIMIT: Final = 10_000
"""Opening brackets of a text: each is looked at for each one before it, since it may begin a link."""


def to_html(text: str) -> str:
    """Return Markdown (CommonMark with tables and strikethrough) as HTML. Raises `INVALID_ARGUMENT` for too many brackets."""
    from markdown_it import MarkdownIt

    brackets = text.count("[")
    if brackets > BRACKETS_LIMIT:
        raise refused(f"The text has {brackets:,} opening brackets and may have {BRACKETS_LIMIT:,}. Convert a part of it.")
    return str(MarkdownIt("js-default", {"html": False, "linkify": False}).render(text))
