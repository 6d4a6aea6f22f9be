"""Makes `voxbridge/services/models/embedding/table.npz`, of which `/v1/embeddings` makes the vectors of texts.

    python -m deploy.sentence_vectors FOLDER

FOLDER has `model.safetensors`, `tokenizer.json` and `vocab.txt` of all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0), the bytes that
`FILES` names. Each word piece is read by the model as a sentence of its own; the table has what came out, in its first principal
components, weighted by how rare the piece is, as whole numbers of a byte. No model runs when a text is embedded. Apache-2.0 as the
weights are. The same weights give the same table.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import numpy.typing as npt

TABLE: Final = Path(__file__).parents[1] / "voxbridge" / "services" / "models" / "embedding" / "table.npz"
FILES: Final = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
DIMENSIONS: Final = 256
LAYERS, HEADS, WIDTH = 6, 12, 384
RARE: Final = 1e-4
"""Weight of a piece of frequency f: RARE / (RARE + f), where frequencies follow Zipf's law over the vocabulary's order."""

_BLOCK: Final = 2_000
Floats = npt.NDArray[np.float32]


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Read the weights in FOLDER, and write the table."""
    for name, digest in FILES.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != digest:
            raise click.ClickException(f"{name} has SHA-256 {found}, not {digest}.")
    pieces = (folder / "vocab.txt").read_text("utf-8").split("\n")[:-1]
    kept = [number for number, piece in enumerate(pieces) if _kept(piece)]
    vectors = _read(_weights(folder / "model.safetensors"), kept, pieces.index("[CLS]"), pieces.index("[SEP]"))
    table, scales = _shortened(vectors, np.array(kept))
    names = np.frombuffer("\n".join(pieces[number] for number in kept).encode(), np.uint8)
    TABLE.parent.mkdir(exist_ok=True)
    np.savez_compressed(TABLE, pieces=names, vectors=table, scales=scales)
    click.echo(f"{TABLE.name}: {len(table)} pieces, {TABLE.stat().st_size:,} bytes.")


def _kept(piece: str) -> bool:
    """Return whether a piece is one of Latin script, digits or a sign, and no mark of the model's."""
    return not (piece.startswith("[") and piece.endswith("]") and len(piece) > 1) and all(ord(letter) < 0x250 for letter in piece)


def _weights(path: Path) -> dict[str, Floats]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found: dict[str, Floats] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return found


def _read(weights: dict[str, Floats], kept: list[int], first: int, last: int) -> Floats:
    """Return what the model makes of each piece between its marks of a sentence: the mean over the three places."""
    blocks = []
    for start in range(0, len(kept), _BLOCK):
        rows = np.array([[first, number, last] for number in kept[start : start + _BLOCK]])
        blocks.append(_model(weights, rows).mean(axis=1))
    return np.concatenate(blocks)


def _model(weights: dict[str, Floats], rows: npt.NDArray[np.int64]) -> Floats:
    """Run the encoder over rows of tokens of equal length."""
    places = weights["embeddings.position_embeddings.weight"][: rows.shape[1]]
    state = weights["embeddings.word_embeddings.weight"][rows] + places + weights["embeddings.token_type_embeddings.weight"][0]
    state = _normal(weights, "embeddings.LayerNorm", state)
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query, key, value = (_heads(_dense(weights, f"{at}.attention.self.{name}", state)) for name in ("query", "key", "value"))
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(WIDTH / HEADS, dtype=np.float32)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = ((shares / shares.sum(axis=-1, keepdims=True)) @ value).swapaxes(1, 2).reshape(state.shape)
        state = _normal(weights, f"{at}.attention.output.LayerNorm", state + _dense(weights, f"{at}.attention.output.dense", seen))
        inner = _gelu(_dense(weights, f"{at}.intermediate.dense", state))
        state = _normal(weights, f"{at}.output.LayerNorm", state + _dense(weights, f"{at}.output.dense", inner))
    return state


def _dense(weights: dict[str, Floats], name: str, state: Floats) -> Floats:
    flat: Floats = state.reshape(-1, state.shape[-1]) @ weights[f"{name}.weight"].T  # one product: many small ones take ten times as long
    found: Floats = flat.reshape(*state.shape[:-1], -1) + weights[f"{name}.bias"]
    return found


def _heads(state: Floats) -> Floats:
    return state.reshape(*state.shape[:2], HEADS, -1).swapaxes(1, 2)


def _normal(weights: dict[str, Floats], name: str, state: Floats) -> Floats:
    middle = state - state.mean(axis=-1, keepdims=True)
    spread = np.sqrt((middle * middle).mean(axis=-1, keepdims=True) + 1e-12)
    found: Floats = middle / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return found


def _gelu(state: Floats) -> Floats:
    """Return x Φ(x), with the error function by formula 7.1.26 of Abramowitz and Stegun (1.5e-7)."""
    size = np.abs(state) / np.sqrt(2, dtype=np.float32)
    part = 1 / (1 + 0.3275911 * size)
    series = ((((1.061405429 * part - 1.453152027) * part + 1.421413741) * part - 0.284496736) * part + 0.254829592) * part
    error = np.sign(state) * (1 - series * np.exp(-size * size))
    found: Floats = (0.5 * state * (1 + error)).astype(np.float32)
    return found


def _shortened(vectors: Floats, ranks: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    """Return the first components of the vectors, weighted, as bytes and the length that 127 stands for."""
    middle = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh((middle.T @ middle).astype(np.float64) / len(middle))
    found: Any = middle @ directions[:, ::-1][:, :DIMENSIONS].astype(np.float32)
    frequency = 1 / (ranks + 2) / np.sum(1 / (ranks + 2))
    found *= (RARE / (RARE + frequency))[:, None]
    largest = np.abs(found).max(axis=1, keepdims=True)
    return np.round(found / largest * 127).astype(np.int8), largest[:, 0].astype(np.float16)


if __name__ == "__main__":
    main()
