"""The vectors of a graph's passages: one row of whole numbers of a byte for each, in files beside the graph's, compared one by one.

Owns how vectors are kept and searched. Does not own how a text becomes one (`Embedder`). Made from the graph's file as the index of words
is: notes the version and the model that it has seen, takes what changed since, and begins again where the model is another one. A crash
leaves rows beyond those that are noted, which are cut off. Everything blocks; one thread at a time may use it.

100,000 passages of 256 numbers are 26 MB, mapped; comparing all takes 5 ms of one processor, so there is no other index to keep.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from voxbridge.services.knowledge.store.graph_file import GraphFile, Kept
from voxbridge.shared.errors import Code, VoxbridgeError

FORMAT: Final = 1
BATCH: Final = 128
"""Passages that are embedded at a time."""

COMPACT: Final = 1_000
"""Rows from which on files that are mostly of removed passages are made again."""

FEW: Final = 8
USUAL: Final = 0.12
"""Passages, and their nearness to any question, that count in a graph's average beside its own: one passage alone is not an average."""

_BLOCK: Final = 1_024
"""Rows that are compared at a time, so that their floats stay in the cache of the processor."""

_NOTED: Final = "seen.json"
Floats = npt.NDArray[np.float32]


class Embedder(Protocol):
    """A way to make vectors of texts."""

    def embed(self, texts: Sequence[str]) -> tuple[str, Floats]:
        """Return what names the model, and a row of length 1 for each text. Raises `UNAVAILABLE`."""


class Noted(msgspec.Struct, frozen=True):
    """Contents of the files: their format, the model, the length of a row, rows, and the graph's version up to which they go.

    `upto` is the id of the last passage that was taken, so that a long way is gone in steps.
    """

    format: int = FORMAT
    model: str = ""
    dimensions: int = 0
    rows: int = 0
    version: int = -1
    upto: int = 0


class Vectors:
    """The vectors of one graph."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noted: Noted | None = None
        self._ids: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._rows: npt.NDArray[np.int8] = np.zeros((0, 0), np.int8)
        self._live: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._sum: Floats = np.zeros(0, np.float32)
        self._seen = -1  # the version whose removed passages are left out

    @property
    def model(self) -> str:
        """Name of the model that the vectors are of; empty without any."""
        return self._noted.model if self._noted is not None else ""

    def behind(self, graph: GraphFile) -> bool:
        """Return whether the graph changed since."""
        return self._opened(graph).version != graph.version()

    def follow(self, graph: GraphFile, embedder: Embedder, steps: int) -> bool:
        """Take what changed in the graph, `steps` batches at most. Return whether all is taken.

        Raises `UNAVAILABLE` where there are no vectors now, or the disk does not take them.
        """
        self._opened(graph)
        self._forget(graph)
        noted = self._opened(graph)
        for _ in range(steps):
            version = graph.version()
            if noted.version == version:
                return True
            batch = list(islice(graph.passages_after(noted.upto), BATCH))
            if not batch:
                noted = self._note(msgspec.structs.replace(noted, version=version))
                break
            model, found = embedder.embed([_text(one) for one in batch])
            if noted.rows and (model, found.shape[1]) != (noted.model, noted.dimensions):
                self.clear()
                noted = self._opened(graph)  # of another model: begun again, with what was just embedded asked for once more
                continue
            noted = self._append(msgspec.structs.replace(noted, model=model, dimensions=found.shape[1]), batch, found)
        return noted.version == graph.version()

    def of(self, model: str, graph: GraphFile) -> bool:
        """Return whether the vectors are of this model. Those of another one are removed, to be made again."""
        noted = self._opened(graph)
        if model and noted.rows and noted.model != model:
            self.clear()
        return bool(model) and self.model == model

    def clear(self) -> None:
        """Remove the files."""
        self._noted = None
        self._rows, self._ids, self._live = np.zeros((0, 0), np.int8), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self._sum, self._seen = np.zeros(0, np.float32), -1
        shutil.rmtree(self._folder, ignore_errors=True)

    def near(self, question: Floats, count: int, also: Iterable[int] = ()) -> dict[int, float]:
        """Return how near passages are to a question, by id: 0 for the average one; the `count` nearest, and those of `also`. What the
        average is, a graph of many passages says itself (`FEW`)."""
        if not len(self._ids) or question.shape != self._sum.shape:
            return {}
        live = max(int(self._live.sum()), 1)
        # What all passages have in common says nothing about any of them.
        asked = question - self._sum / (127.0 * (live + FEW))
        scores = np.empty(len(self._ids), np.float32)
        floats = np.empty((_BLOCK, len(asked)), np.float32)
        asked = asked / np.float32(127)
        for start in range(0, len(scores), _BLOCK):
            block = self._rows[start : start + _BLOCK]
            np.copyto(floats[: len(block)], block)
            np.dot(floats[: len(block)], asked, out=scores[start : start + _BLOCK])
        if live < len(scores):
            scores[~self._live] = -np.inf
        best = np.argpartition(-scores, min(count, len(scores)) - 1)[:count]
        known = scores if live == len(scores) else scores[self._live]
        middle = (float(known.sum(dtype=np.float64)) + FEW * USUAL) / (live + FEW)
        return {int(self._ids[at]): float(scores[at]) - middle for at in {*best.tolist(), *self._places(also)} if self._live[at]}

    def _places(self, ids: Iterable[int]) -> list[int]:
        """Return the rows of passages; they are in the order of ids."""
        wanted = np.fromiter(ids, np.int64)
        places = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        return [int(at) for at, number in zip(places, wanted, strict=True) if self._ids[at] == number]

    # --- files ---

    def _opened(self, graph: GraphFile) -> Noted:
        if self._noted is not None:
            return self._noted
        try:
            noted = msgspec.json.decode((self._folder / _NOTED).read_bytes(), type=Noted)
            if noted.format != FORMAT or noted.version > graph.version():
                noted = Noted()
            self._map(noted)
        except (OSError, ValueError):
            noted = Noted()
        if not noted.rows:
            self.clear()
        self._noted = noted
        self._forget(graph)
        return self._noted

    def _map(self, noted: Noted) -> None:
        """Map the files, and cut off what was written after the note. Raises `ValueError` where there is less."""
        if not noted.rows:
            return
        for name, width in (("rows", noted.dimensions), ("ids", 8)):
            path, size = self._folder / name, noted.rows * width
            found = path.stat().st_size
            if found < size:
                raise ValueError(f"{name} is too short")
            if found > size:
                with path.open("r+b") as file:
                    file.truncate(size)
        self._ids = np.fromfile(self._folder / "ids", np.int64)
        self._rows = np.memmap(self._folder / "rows", np.int8, mode="r", shape=(noted.rows, noted.dimensions))

    def _append(self, noted: Noted, batch: Sequence[Kept], found: Floats) -> Noted:
        rows = np.clip(np.round(found * 127), -127, 127).astype(np.int8)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, data in (("rows", rows.tobytes()), ("ids", np.array([one.id for one in batch], np.int64).tobytes())):
                with (self._folder / name).open("ab") as file:
                    file.write(data)
            noted = msgspec.structs.replace(noted, rows=noted.rows + len(batch), upto=batch[-1].id)
            noted = self._note(noted)
            self._map(noted)
            self._live = np.append(self._live, np.ones(len(batch), np.bool_))
            self._sum = (self._sum if len(self._sum) else np.zeros(noted.dimensions, np.float32)) + rows.sum(axis=0, dtype=np.float32)
        except OSError as error:
            self._noted = None
            raise VoxbridgeError(Code.UNAVAILABLE, f"The vectors cannot be written now: {error}.", retryable=True) from error
        return noted

    def _note(self, noted: Noted) -> Noted:
        if noted.rows:
            new = self._folder / f"{_NOTED}.new"
            new.write_bytes(msgspec.json.encode(noted))
            new.replace(self._folder / _NOTED)
        self._noted = noted
        return noted

    def _forget(self, graph: GraphFile) -> None:
        """Leave passages out that the graph does not have any more; begin again where most are such."""
        version = graph.version()
        if self._seen == version or (self._seen >= 0 and not graph.removed_since(self._seen)):
            self._seen = version
            return
        self._live = np.isin(self._ids, graph.passage_ids())
        if len(self._live) > COMPACT and self._live.mean() < 1 / 2:
            self.clear()
            self._noted = Noted()
        self._sum = self._rows[self._live].sum(axis=0, dtype=np.float32) if len(self._ids) else np.zeros(0, np.float32)
        self._seen = version


def _text(kept: Kept) -> str:
    return " ".join((*kept.headings, kept.text))
