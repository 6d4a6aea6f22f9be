"""Makes `voxbridge/services/knowledge/common_words.txt`, by which the rules know that "Prices" that begins a sentence is not a name.

    python -m pip install gguf
    python -m deploy.common_words ~/.cache/voxbridge/models/qwen2.5-coder-1.5b/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf

The list has the words that the tokenizer of the default set's language model (Apache-2.0) has as one token in lower case, unless it has
them with a capital and an earlier number: tokens are numbered by how often they were seen, and "Lisbon" is seen before "lisbon".
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

import click

WORDS: Final = Path(__file__).parents[1] / "voxbridge" / "services" / "knowledge" / "common_words.txt"
_WORD: Final = re.compile(r"Ġ([A-Za-z]{2,24})")


@click.command()
@click.argument("weights", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(weights: Path) -> None:
    """Read the tokens of WEIGHTS, and write the list."""
    field = importlib.import_module("gguf").GGUFReader(weights).fields["tokenizer.ggml.tokens"]
    numbers: dict[str, int] = {}
    for number, at in enumerate(field.data):
        match = _WORD.fullmatch(bytes(field.parts[at]).decode())
        if match:
            numbers.setdefault(match[1], number)
    last = len(field.data)
    found = sorted(word for word, number in numbers.items() if word.islower() and number < numbers.get(word.capitalize(), last))
    WORDS.write_text("\n".join(found) + "\n", encoding="ascii")
    click.echo(f"{WORDS.name}: {len(found)} words, {WORDS.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
