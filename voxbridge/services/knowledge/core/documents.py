"""Pieces of a document: its passages, each with the entities that the rules find in it. Pure.

The same title and text give the same pieces, so what a graph holds can be made again from its documents and compared.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from voxbridge.services.knowledge.core.entities import Found, certain_names, found_in
from voxbridge.services.knowledge.core.passages import Passage, passages


class Piece(NamedTuple):
    """A passage, and what the rules find in it."""

    passage: Passage
    found: Found


def pieces(title: str, text: str, common: Collection[str]) -> list[Piece]:
    """Return the pieces of a document in their order; none for a text without a word. `common` is as in `certain_names`."""
    found = passages(title, text)
    names = certain_names("\n\n".join(passage.text for passage in found), common)
    return [Piece(passage, found_in(passage.text, passage.headings, names)) for passage in found]
