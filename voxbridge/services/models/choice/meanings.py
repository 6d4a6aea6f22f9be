"""Meanings of words as short vectors: words that are used alike are near to each other.

The table beside this module is made by `deploy.meanings` of what the language model of the default set knows of its own words (English,
Apache-2.0). Without it, and for words that it does not have, the router goes by how words are written and how they sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice import features
from voxbridge.services.models.choice.features import Floats

DIMENSIONS: Final = 96


class Meanings:
    """A table of words and their vectors."""

    def __init__(self, words: Sequence[str], vectors: npt.NDArray[np.int8]) -> None:
        """Take a row of `vectors` for each word."""
        self._rows = {word: row for row, word in enumerate(words)}
        self._vectors = vectors

    @property
    def known(self) -> int:
        """Number of words that it has."""
        return len(self._rows)

    def of(self, text: str, rare: Floats) -> Floats:
        """Return the meaning of a text, of length 1; zeros where no word of it is known. `rare` is as `features.rarity` returns it."""
        found = np.zeros(DIMENSIONS, np.float32)
        for word in features.words(text):
            row = self._rows.get(word)
            if row is not None:
                vector = self._vectors[row].astype(np.float32)
                found += vector * (features.rarity_of(word, rare) / max(float(np.linalg.norm(vector)), 1.0))
        length = float(np.linalg.norm(found))
        return found / length if length else found


NONE: Final = Meanings((), np.zeros((0, DIMENSIONS), np.int8))
"""A table without words."""
