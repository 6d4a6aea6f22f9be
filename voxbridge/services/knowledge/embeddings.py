"""Vectors from an OpenAI-compatible `/v1/embeddings`: the models service, or a vendor's by configuration.

Owns the request, its time-out and when it is not asked again. Does not own what is made of vectors. An endpoint that does not answer is
left alone for `PAUSE_S`, so that searches by words do not wait for it. Blocks.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import httpx2
import msgspec
import numpy as np

from voxbridge.services.knowledge.store.vectors import Floats
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

TIMEOUT_S: Final = 10.0
QUESTION_S: Final = 2.0
"""Seconds that a single text may take: somebody waits for what is searched, and words are there."""

CONNECT_S: Final = 1.0
PAUSE_S: Final = 5.0
OFF: Final = "off"
DIMENSIONS_LIMIT: Final = 4_096
_LONGEST: Final = 8_000
"""Characters of a text that are sent."""


class _Vector(msgspec.Struct):
    index: int
    embedding: str | list[float]


class _Answer(msgspec.Struct):
    data: list[_Vector]
    model: str = ""


class Endpoint:
    """An endpoint for vectors."""

    def __init__(self, url: str, model: str, key: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(base_url=url, headers=headers)
        self._url, self._model, self._clock = url, model, clock
        self._lock = threading.Lock()
        self._until = 0.0
        self._why = ""

    def embed(self, texts: Sequence[str]) -> tuple[str, Floats]:
        """Return what names the model, and a row of length 1 for each text. Raises `UNAVAILABLE`, at once for `PAUSE_S` after a failure."""
        with self._lock:
            if self._clock() < self._until:
                raise VoxbridgeError(Code.UNAVAILABLE, self._why, retryable=True)
        asked = {"model": self._model, "input": [text[:_LONGEST] or " " for text in texts], "encoding_format": "base64"}
        try:
            timeout = httpx2.Timeout(QUESTION_S if len(texts) == 1 else TIMEOUT_S, connect=CONNECT_S)
            response = self._client.post("embeddings", json=asked, timeout=timeout)
            response.raise_for_status()
            answer = msgspec.json.decode(response.content, type=_Answer)
            vectors = _rows(answer, len(texts))
        except (httpx2.HTTPError, msgspec.MsgspecError, ValueError) as error:
            with self._lock:
                self._until = self._clock() + PAUSE_S
                self._why = f"Embeddings cannot be had from {self._url}: {error or type(error).__name__}."
            raise VoxbridgeError(Code.UNAVAILABLE, self._why, retryable=True) from error
        return answer.model or self._model, vectors

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def endpoint(config: Config) -> Endpoint | None:
    """Return the endpoint of a configuration; None where embeddings are switched off."""
    if config.embeddings_model == OFF:
        return None
    return Endpoint(config.embeddings_url.rstrip("/") or config.models_base_url, config.embeddings_model, config.embeddings_key)


def _rows(answer: _Answer, count: int) -> Floats:
    """Return the vectors of an answer, in the order of the texts and of length 1. Raises `ValueError`."""
    ordered = sorted(answer.data, key=lambda one: one.index)
    if [one.index for one in ordered] != list(range(count)):
        raise ValueError(f"{len(ordered)} vectors came for {count} texts")
    rows = [_numbers(one.embedding) for one in ordered]
    if len({len(row) for row in rows}) != 1 or not 0 < len(rows[0]) <= DIMENSIONS_LIMIT:
        raise ValueError(f"the vectors have not one length of 1 to {DIMENSIONS_LIMIT}")
    found = np.stack(rows)
    if not np.isfinite(found).all():
        raise ValueError("the vectors are no numbers")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(lengths, lengths, 1)).astype(np.float32)


def _numbers(given: str | list[float]) -> Floats:
    # Some servers that call themselves compatible send numbers whatever was asked for.
    return np.frombuffer(base64.b64decode(given), "<f4").astype(np.float32) if isinstance(given, str) else np.array(given, np.float32)
