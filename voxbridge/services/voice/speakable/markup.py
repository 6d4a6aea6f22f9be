"""Conversion of markup, pictures and identifiers to plain words, line by line. Pure.

A reply is spoken in pieces, mostly lines and sentences, so a span or a table is rarely seen whole: a parser of documents would
take its halves for plain text. Each mark is therefore removed where it stands, and half of a pair is treated like the whole.

Owns what is said of Markdown, HTML tags, emoji and code; not amounts (`rules`), signs and addresses (`names`). A crash
here loses nothing.
"""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"^\s*(?:`{3,}|~{3,})[ \t]*[\w+.#-]*[ \t]*$", re.MULTILINE)
_RULE: Final = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
_TABLE_RULE: Final = re.compile(
    r"^[ \t]*\|[ \t]*:?-+:?[ \t]*\|?[ \t]*$|^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$", re.MULTILINE
)
_ROW: Final = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.MULTILINE)
_LINE_START: Final = re.compile(r"^[ \t]*(?:>[ \t]*|#{1,6}[ \t]+|[-*+•‣◦▪][ \t]+(?:\[[ xX]\][ \t]+)?)*", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[\"'(][^\"')]*[\"')])?\)")
_REFERENCE: Final = re.compile(r"\[\^\w{1,20}\]|(?<=\])\[[\w -]{0,40}\]")
_LINK_END: Final = re.compile(r"\]\([^()\s]*\)")
_AUTOLINK: Final = re.compile(r"<((?:https?://|mailto:)?[^<>\s]+[@:.][^<>\s]+)>")
_TAG: Final = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]{0,200}>", re.DOTALL)
_THOUGHT: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""Thoughts of a model that a whole text still has; a stream loses them before it is cut into pieces."""

_ENTITIES: Final = {"nbsp": " ", "lt": "<", "gt": ">", "quot": '"', "#39": "'"}
_ENTITY: Final = re.compile(rf"&(?:amp;)*(?:({'|'.join(_ENTITIES)});)?")
_CODE: Final = re.compile(r"(`+)([^`]+)\1")
_PICTURE: Final = (
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u25a0-\u25ff\u200d\u20e3\u2060\ufe00-\ufe0f\ufffc\U000e0020-\U000e007f]"
)
_PICTURES: Final = re.compile(rf"\s*{_PICTURE}+(?=[.,!?…;:])|{_PICTURE}+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CAMEL: Final = re.compile(r"\b[a-z]{2,}[a-z0-9]*(?:[A-Z][a-z0-9]+)+\b")
_ESCAPE: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_TIMES: Final = re.compile(r"(?<=[0-9])(\s*)\*(?=\s*[0-9])")
_MARKS: Final = re.compile(r"[*`#~]+")
_CELL: Final = re.compile(r"(?:\s*\|)+\s*")
_CELL_AT_END: Final = re.compile(r"^[\s|]+|[\s|]+$")
_ANGLES: Final = re.compile(r"(?<!\s)[<>]|[<>](?!\s)")
_BETWEEN: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])|[\[\]\\{}]+")


def unmarked(text: str) -> str:
    """Remove line marks, links, tags, code ticks and pictures from a text; signs that a rule may read as words stay."""
    if _has_lines(text):
        text = _FENCE.sub("", text)
        text = _RULE.sub("", text)
        text = _TABLE_RULE.sub("", text)
        text = _ROW.sub(lambda row: ", ".join(filter(None, map(str.strip, row[1].split("|")))), text)
        text = _LINE_START.sub("", text)
    if "[" in text or "]" in text:
        text = _REFERENCE.sub("", text)
        text = _LINK.sub(r"\1", text)
        text = _LINK_END.sub("]", text)
    if "<" in text:
        text = _THOUGHT.sub(" ", text)
        text = _AUTOLINK.sub(r"\1", text)
        text = _TAG.sub(" ", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: _ENTITIES.get(entity[1], "&"), text)
    if "`" in text:
        text = _CODE.sub(lambda code: _HUMP.sub(" ", code[2]), text)
    text = text.replace("~~", "")
    text = _CAMEL.sub(lambda word: _HUMP.sub(" ", word[0]), text)
    text = _PICTURES.sub("", text) if not text.isascii() else text
    return _ESCAPE.sub("", text)


def bare(text: str) -> str:
    """Remove every mark that is left in a text: what no rule has read is dropped, and what stood between two words becomes a space."""
    text = _TIMES.sub(r"\1×", _BETWEEN.sub(" ", text))
    text = _MARKS.sub("", text).replace("_", "")
    text = _CELL.sub(", ", _CELL_AT_END.sub("", text)) if "|" in text else text
    return _ANGLES.sub(" ", text)


def written(text: str) -> str:
    """Return a piece as it is shown and remembered: without markup and pictures, figures unchanged; empty if nothing is left to say."""
    return " ".join(bare(unmarked(text)).split())


def _has_lines(text: str) -> bool:
    """Tell whether a line starts with something other than a letter or a digit, which is where line marks stand."""
    return any(line and not line[0].isalnum() for line in map(str.lstrip, text.splitlines()))
