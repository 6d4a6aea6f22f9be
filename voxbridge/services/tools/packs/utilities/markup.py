"""Markdown to HTML that is safe to show: HTML in it stays text, and links lead to the web or to mail alone."""

from __future__ import annotations


def to_html(text: str) -> str:
    """Return Markdown (CommonMark with tables and strikethrough) as HTML."""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("js-default", {"html": False, "linkify": False}).render(text))
