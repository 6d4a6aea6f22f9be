"""Makes `voxbridge/services/models/choice/meanings.npz`, by which the router knows that "scrap" is near to "delete".

    python -m pip install gguf
    python -m deploy.meanings ~/.cache/voxbridge/models/qwen2.5-coder-1.5b/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf

The table is made of what the language model of the default set knows of its own words (Qwen2.5-Coder-1.5B-Instruct, Apache-2.0): the
vectors of its tokens that are one English word, in their first principal components, as whole numbers of a byte. The same weights
give the same file.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

TABLE: Final = Path(__file__).parents[1] / "voxbridge" / "services" / "models" / "choice" / "meanings.npz"
WORDS: Final = 24_000
"""Words of the table: those with the lowest numbers, which are the most frequent ones."""

DIMENSIONS: Final = 96
SHARED: Final = 1
"""First components that are left out: they say how frequent a word is, not what it means."""

_WORD: Final = re.compile(r"Ġ([A-Za-z]{1,24})")
_BLOCK: Final = 4_000


@click.command()
@click.argument("weights", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(weights: Path) -> None:
    """Read the vectors of words from WEIGHTS, and write the table."""
    words, vectors = _words(importlib.import_module("gguf"), weights)
    middle = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(middle.T @ middle / len(middle))
    found = (middle @ directions[:, ::-1][:, SHARED : SHARED + DIMENSIONS])[:WORDS]
    largest = np.abs(found).max(axis=1, keepdims=True)
    table = np.round(found / np.where(largest, largest, 1) * 127).astype(np.int8)
    np.savez_compressed(TABLE, words=np.frombuffer("\n".join(words[:WORDS]).encode(), np.uint8), vectors=table)
    click.echo(f"{TABLE.name}: {len(table)} words, {TABLE.stat().st_size:,} bytes.")


def _words(gguf: Any, weights: Path) -> tuple[list[str], Any]:
    """Return the words that are one token, and their vectors."""
    reader = gguf.GGUFReader(weights)
    field = reader.fields["tokenizer.ggml.tokens"]
    numbers: dict[str, int] = {}
    for number, at in enumerate(field.data):
        match = _WORD.fullmatch(bytes(field.parts[at]).decode())
        if match and (match[1].lower() not in numbers or match[1].islower()):
            numbers[match[1].lower()] = number
    tensor = next(one for one in reader.tensors if one.name == "token_embd.weight")
    rows = np.array(list(numbers.values()))
    blocks = [gguf.dequantize(tensor.data[rows[start : start + _BLOCK]], tensor.tensor_type) for start in range(0, len(rows), _BLOCK)]
    return list(numbers), np.concatenate(blocks).astype(np.float32)


if __name__ == "__main__":
    main()
