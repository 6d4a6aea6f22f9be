"""Documents that a source stands for: a file or a folder of the workspace, a page of the web, or a text that was given.

Owns which files and pages are read. HTML and PDF are parsed in a child process. Does not own what of them is text
(`voxbridge.shared.document_text`), nor the passages, which the knowledge service makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import worker
from voxbridge.shared.document_text import PARSED, SUFFIXES, content_limit, text_of
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import BODY_LIMIT
from voxbridge.shared.workspace import Place

FILES_LIMIT: Final = 500
"""Files of a folder that are read."""

_TEXTS: Final = ("application/json", "application/xhtml+xml", "application/xml", "application/yaml")
_PDF: Final = "application/pdf"


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


def given(name: str, text: str) -> Documents:
    """Return a text as the one document of that name."""

    async def each() -> AsyncIterator[Read]:
        yield Read(name, name, text)

    return Documents(1, each())


async def _page(url: str, ctx: Context) -> AsyncIterator[Read]:
    fetched = await ctx.fetcher.fetch(url, accept="text/html, text/*;q=0.9, application/pdf;q=0.8")
    if fetched.status != HTTPStatus.OK:
        raise VoxbridgeError(Code.UNAVAILABLE, f"{url[:200]} answered with status {fetched.status}.", field="source", retryable=False)
    if fetched.cut:
        message = f"The page has more than {BODY_LIMIT} bytes. Put its text into a file of the workspace."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="source", limit=BODY_LIMIT)
    kind = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind.startswith("text/") and kind not in (*_TEXTS, _PDF):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The page is {kind or 'of an unknown kind'}, and not text.", field="source")
    host = urlsplit(fetched.url).hostname or url
    if kind == _PDF:
        yield await _parsed(url, host, f"{host}.pdf", fetched.body, ctx)
        return
    text = fetched.body.decode("utf-8", "replace")
    yield await _parsed(url, host, f"{host}.html", text.encode(), ctx) if "html" in kind else Read(url, host, text)


async def _files(places: tuple[Place, ...], ctx: Context) -> AsyncIterator[Read]:
    for place in places:
        title = place.name.rpartition("/")[2]
        try:
            content = await asyncio.to_thread(ctx.workspace.read_bytes, place, limit=content_limit(title))
            if title.lower().endswith(PARSED):
                yield await _parsed(place.name, title, title, content, ctx)
            else:
                yield Read(place.name, title, text_of(title, content).text)
        except VoxbridgeError as error:
            if len(places) == 1:
                raise
            yield Read(place.name, title, why=error.message)


async def _parsed(source: str, title: str, name: str, content: bytes, ctx: Context) -> Read:
    found = await ctx.in_child(read_document, name=name, content=content)
    return Read(source, str(found["title"]) or title, str(found["text"]))


@worker(timeout_s=60, memory_mb=512)
def read_document(name: str, content: bytes) -> dict[str, str]:
    """Return the title and the text of a document that a parser has to read."""
    return text_of(name, content)._asdict()
