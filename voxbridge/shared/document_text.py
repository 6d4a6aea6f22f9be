"""The text of a document by its kind: plain text, HTML, PDF.

Owns what a reader would see of each. Does not own where documents come from (the knowledge pack of the tools service, `voxbridge ingest`),
nor their passages (`voxbridge.services.knowledge`). What strangers wrote is to be read in a process of its own: a parser may take for ever,
or more memory than there is.
"""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final, NamedTuple

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import TEXT_LIMIT

if TYPE_CHECKING:
    from pypdf import PdfReader

SUFFIXES: Final = (
    ".md",
    ".markdown",
    ".txt",
    ".rst",
    ".adoc",
    ".html",
    ".htm",
    ".pdf",
    ".csv",
    ".json",
    ".yaml",
    ".yml",
    ".py",
    ".ts",
    ".js",
)
"""Endings of the files of a folder that are read."""

PARSED: Final = (".html", ".htm", ".pdf")
"""Endings of the files that a parser reads; the others are text as they are."""

PDF_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of a PDF. Most of them are pictures and fonts; its text is bounded by `TEXT_LIMIT` as that of others."""

PAGES_LIMIT: Final = 2_000

_TITLE_LIMIT: Final = 200
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BLOCKS: Final = frozenset({"p", "div", "li", "tr", "br", "section", "article", "blockquote", "pre", "table", "ul", "ol", "main"})
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}


class Text(NamedTuple):
    """Text of a document, and its title where it states one."""

    title: str
    text: str


def content_limit(name: str) -> int:
    """Return the most bytes that a file may have, by its name."""
    return PDF_LIMIT if name.lower().endswith(".pdf") else TEXT_LIMIT


def text_of(name: str, content: bytes) -> Text:
    """Return the text of a file. Raises `INVALID_ARGUMENT` for bytes that are not what its name says, and `TOO_LARGE`."""
    if len(content) > (limit := content_limit(name)):
        raise VoxbridgeError(Code.TOO_LARGE, f"{name} has more than {limit:,} bytes. Choose a smaller file.", field="path", limit=limit)
    if name.lower().endswith(".pdf"):
        return read_pdf(name, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{name} is not text in UTF-8 (byte {error.start}). Choose a text file, or convert it."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path") from error
    if "\0" in text:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} holds binary data. Choose a text file.", field="path")
    return read_html(text) if name.lower().endswith(PARSED) else Text("", text)


def read_html(text: str) -> Text:
    """Return the title of a page and its visible text, headings marked as Markdown has them."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.text).split("\n"))
    return Text(" ".join("".join(reader.title).split())[:_TITLE_LIMIT], "\n".join(lines).strip())


def read_pdf(name: str, content: bytes) -> Text:
    """Return the title and the text of a PDF, page by page. Raises as `text_of`; a scan without text is `INVALID_ARGUMENT`."""
    try:
        import pypdf  # a quarter of a second that only PDFs are worth
    except ModuleNotFoundError as error:
        raise _unread(name, "PDFs need the package pypdf: install voxbridge[tools]") from error
    try:
        return _pages(name, pypdf.PdfReader(io.BytesIO(content)))
    except (VoxbridgeError, MemoryError):
        raise
    except Exception as error:  # whatever a broken file makes of the parser: it has no bound on what it raises
        raise _unread(name, f"it is not a PDF that can be read ({type(error).__name__})") from error


def _pages(name: str, reader: PdfReader) -> Text:
    if reader.is_encrypted and not reader.decrypt(""):
        raise _unread(name, "it is protected by a password. Save it without one")
    if len(reader.pages) > PAGES_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"{name} has more than {PAGES_LIMIT:,} pages. Split it.", field="path", limit=PAGES_LIMIT)
    pages, size = [], 0
    for page in reader.pages:
        pages.append(_cleaned(page.extract_text()))
        size += len(pages[-1].encode())
        if size > TEXT_LIMIT:
            message = f"The text of {name} has more than {TEXT_LIMIT:,} bytes. Split it."
            raise VoxbridgeError(Code.TOO_LARGE, message, field="path", limit=TEXT_LIMIT)
    if not size:
        raise _unread(name, "it has pictures of text, and no text. Have it read by a program for that (OCR) first")
    title = " ".join(str(getattr(reader.metadata, "title", None) or "").split())[:_TITLE_LIMIT]
    return Text(title, "\n\n".join(page for page in pages if page))


def _cleaned(text: str) -> str:
    """Return the text of a page without what UTF-8 has no bytes for, and with its hyphens at the ends of lines joined."""
    lines = [" ".join(line.split()) for line in text.encode("utf-8", "ignore").decode().replace("\0", "").split("\n")]
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("-") and joined[-1][-2:-1].isalpha() and line[:1].islower():
            joined[-1] = joined[-1][:-1] + line
        else:
            joined.append(line)
    return "\n".join(joined).strip()


def _unread(name: str, why: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} cannot be read: {why}.", field="path")


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
