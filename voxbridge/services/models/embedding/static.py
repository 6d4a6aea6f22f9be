"""Vectors of texts from a table: the mean of the vectors of a text's word pieces, brought to length 1.

Owns the table and how a text is cut into pieces. The table is made by `deploy.sentence_vectors` of all-MiniLM-L6-v2 (Apache-2.0), which
has read each piece; English, and poor for other languages. 0.2 ms of one processor for a passage, 30 MB of memory. A crash loses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

NAME: Final = "all-minilm-l6-v2-static"
TABLE: Final = Path(__file__).with_name("table.npz")
_UNKNOWN: Final = "[UNK]"
Floats = npt.NDArray[np.float32]


class StaticVectors:
    """A table in memory: a row for each number that the tokenizer gives. `name` is what requests call it, `model` adds the digest of the
    bytes that it was read from: vectors of another model are not comparable."""

    def __init__(self, name: str, digest: str, vectors: Floats, tokenizer: Tokenizer) -> None:
        self.name, self.model = name, f"{name}@{digest[:12]}"
        self.dimensions: int = vectors.shape[1]
        self._vectors, self._tokenizer = vectors, tokenizer

    def embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        """Return a row of length 1 for each text (zeros for one without known words), and the number of pieces of all."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        pieces = 0
        for row, encoding in enumerate(self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)):
            pieces += len(encoding.ids)
            if encoding.ids:
                found[row] = self._vectors[encoding.ids].sum(axis=0)
        return _normal(found), pieces


def shortened(vectors: Floats, dimensions: int) -> Floats:
    """Return the first components of vectors: the table has the principal ones first."""
    return _normal(vectors[:, :dimensions])


def _normal(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths, lengths, 1)).astype(np.float32)


@cache
def table() -> StaticVectors:
    """Return the table of this release, read when it is asked for first. Blocks for some tenths of a second."""
    with np.load(TABLE) as found:
        pieces = found["pieces"].tobytes().decode().split("\n")
        scales = found["scales"].astype(np.float32)[:, None] / np.float32(127)
        vectors = found["vectors"].astype(np.float32) * scales
    nothing = np.zeros((1, vectors.shape[1]), np.float32)
    vocabulary = {piece: row for row, piece in enumerate(pieces)} | {_UNKNOWN: len(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return StaticVectors(NAME, hashlib.sha256(TABLE.read_bytes()).hexdigest(), np.vstack([vectors, nothing]), tokenizer)
