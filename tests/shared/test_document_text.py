"""The text of documents by their kind."""

from __future__ import annotations

import io
from contextlib import suppress

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pdf import pdf
from voxbridge.shared.document_text import PAGES_LIMIT, PDF_LIMIT, read_html, text_of
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import TEXT_LIMIT

PAGE = (
    "<html><head><title>Bees &amp; co</title><style>p{}</style></head><body><h1>Hives</h1><p>A hive has<br>one queen.</p>"
    "<script>alert(1)</script></body></html>"
)


def refused(name: str, content: bytes) -> VoxbridgeError:
    """Return the error of a document that cannot be read."""
    with pytest.raises(VoxbridgeError) as refusal:
        text_of(name, content)
    return refusal.value


def test_a_page_is_read_without_what_nobody_sees() -> None:
    assert text_of("bees.html", PAGE.encode()) == ("Bees & co", "# Hives\n\n\n\nA hive has\n\none queen.")
    assert read_html("<script>" * 1_000 + "x").text == ""


def test_a_pdf_is_read_page_by_page_with_its_words_whole() -> None:
    content = pdf("The warranty of the mower lasts se-\nven years.\nAsk Anna.", "Second page.", title="Mower  manual")
    assert text_of("Manual.PDF", content) == ("Mower manual", "The warranty of the mower lasts seven years.\nAsk Anna.\n\nSecond page.")


def test_plain_text_is_taken_as_it_is() -> None:
    assert text_of("a.md", "\ufeff# Größe\n".encode()) == ("", "# Größe\n")


def locked() -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Secret.")))
    writer.encrypt("open sesame", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("a.txt", b"\xff\xfe", Code.INVALID_ARGUMENT, "not text in UTF-8"),
        ("a.txt", b"a\0b", Code.INVALID_ARGUMENT, "binary data"),
        ("a.txt", b"x" * (TEXT_LIMIT + 1), Code.TOO_LARGE, f"{TEXT_LIMIT:,} bytes"),
        ("a.pdf", b"x" * (PDF_LIMIT + 1), Code.TOO_LARGE, f"{PDF_LIMIT:,} bytes"),
        ("a.pdf", b"no pdf", Code.INVALID_ARGUMENT, "not a PDF that can be read"),
        ("a.pdf", pdf("x")[:300], Code.INVALID_ARGUMENT, "not a PDF that can be read"),
        ("a.pdf", pdf(""), Code.INVALID_ARGUMENT, "pictures of text"),
        ("a.pdf", locked(), Code.INVALID_ARGUMENT, "password"),
        ("a.pdf", pdf(*["x"] * (PAGES_LIMIT + 1)), Code.TOO_LARGE, f"{PAGES_LIMIT:,} pages"),
        ("a.pdf", pdf(*["x" * 100_000] * 8), Code.TOO_LARGE, f"{TEXT_LIMIT:,} bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name_and_the_reason(name: str, content: bytes, code: Code, said: str) -> None:
    error = refused(name, content)
    assert (error.code, error.field) == (code, "path")
    assert name in error.message
    assert said in error.message


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=700))
def test_no_damage_to_a_pdf_raises_anything_else(noise: bytes, at: int) -> None:
    whole = pdf("One.", "Two.")
    with suppress(VoxbridgeError):
        assert text_of("a.pdf", whole[:at] + noise + whole[at + len(noise) :]).text
