"""The table of vectors that the models service brings, in this process."""

from __future__ import annotations

from collections.abc import Sequence

from voxbridge.services.knowledge.store.vectors import Floats
from voxbridge.services.models.embedding import static


class Table:
    """An embedder that asks no service. `model` may be told otherwise, to be another one."""

    def __init__(self, model: str = "") -> None:
        self.model = model or static.table().model
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> tuple[str, Floats]:
        """Return the model and the vectors of texts."""
        self.texts += len(texts)
        return self.model, static.table().embed(texts)[0]
