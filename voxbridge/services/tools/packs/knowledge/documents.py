"""Documents that a source stands for: a file or a folder of the workspace, or a page of the web.

Owns what is read of each and as what. What strangers wrote in HTML is parsed in a child process. Does not own the passages, which the
knowledge service makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import worker
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import BODY_LIMIT
from voxbridge.shared.knowledge import TEXT_LIMIT
from voxbridge.shared.workspace import Place

SUFFIXES: Final = (".md", ".markdown", ".txt", ".rst", ".adoc", ".html", ".htm", ".csv", ".json", ".yaml", ".yml", ".py", ".ts", ".js")
"""Endings of the files of a folder that are read."""

FILES_LIMIT: Final = 500
"""Files of a folder that are read."""

_TEXTS: Final = ("application/json", "application/xhtml+xml", "application/xml", "application/yaml")
_HTML: Final = (".html", ".htm")
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BLOCKS: Final = frozenset({"p", "div", "li", "tr", "br", "section", "article", "blockquote", "pre", "table", "ul", "ol", "main"})
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}


class Read(NamedTuple):
    """A document: where it is from, its title and its text; or why it could not be read."""

    source: str
    title: str
    text: str = ""
    why: str = ""


class Documents(NamedTuple):
    """The documents of a source: how many, and each in turn."""

    total: int
    each: AsyncIterator[Read]


async def documents(source: str, ctx: Context) -> Documents:
    """Return the documents that a source stands for. Raises `NOT_FOUND` and `INVALID_ARGUMENT` for what is none."""
    if source.lower().startswith(("http://", "https://")):
        return Documents(1, _page(source, ctx))
    place = await asyncio.to_thread(ctx.workspace.find, source)
    if place.kind == "file":
        return Documents(1, _files((place,), ctx))
    found = await asyncio.to_thread(ctx.workspace.listing, place, suffixes=SUFFIXES)
    if not found.places:
        message = f"The folder {place.name} has no file that can be read. Those that can end in {', '.join(SUFFIXES)}."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="source")
    if len(found.places) > FILES_LIMIT:
        message = f"The folder {place.name} has {len(found.places)} files; {FILES_LIMIT} are taken at a time. Name a folder in it."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="source", limit=FILES_LIMIT)
    return Documents(len(found.places), _files(found.places, ctx))


async def _page(url: str, ctx: Context) -> AsyncIterator[Read]:
    fetched = await ctx.fetcher.fetch(url, accept="text/html, text/*;q=0.9")
    if fetched.status != HTTPStatus.OK:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{url[:200]} answered with status {fetched.status}.", field="source", retryable=False)
    if fetched.cut:
        message = f"The page has more than {BODY_LIMIT} bytes. Put its text into a file of the workspace."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="source", limit=BODY_LIMIT)
    kind = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind.startswith("text/") and kind not in _TEXTS:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The page is {kind or 'of an unknown kind'}, and not text.", field="source")
    text, title = fetched.body.decode("utf-8", "replace"), urlsplit(fetched.url).hostname or url
    if "html" in kind:
        found = await ctx.in_child(read_html, text=text)
        text, title = str(found["text"]), str(found["title"]) or title
    yield Read(url, title, text)


async def _files(places: tuple[Place, ...], ctx: Context) -> AsyncIterator[Read]:
    for place in places:
        title = place.name.rpartition("/")[2]
        try:
            text = await asyncio.to_thread(ctx.workspace.read_text, place, limit=TEXT_LIMIT)
            if place.name.lower().endswith(_HTML):
                found = await ctx.in_child(read_html, text=text)
                text, title = str(found["text"]), str(found["title"]) or title
            yield Read(place.name, title, text)
        except VoxbridgeError as error:
            if len(places) == 1:
                raise
            yield Read(place.name, title, why=error.message)


@worker(timeout_s=15)
def read_html(text: str) -> dict[str, str]:
    """Return the title of a page and its visible text, headings marked as Markdown has them."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.text).split("\n"))
    return {"title": " ".join("".join(reader.title).split())[:200], "text": "\n".join(lines).strip()}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.text: list[str] = []
        self._hidden = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._in_title = tag == "title"
        self._hidden += tag in _UNSEEN
        if tag in _HEADINGS:
            self.text.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag in _BLOCKS:
            self.text.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in _UNSEEN:
            self._hidden = max(0, self._hidden - 1)
        if tag in _HEADINGS or tag in _BLOCKS:
            self.text.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            self.text.append(data)
