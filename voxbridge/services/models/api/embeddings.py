"""`/v1/embeddings`: vectors of texts, as OpenAI's API has it.

Owns the route and the form of its answer. Does not own the vectors (`embedding`). A crash loses the requests in progress; clients ask
again.
"""

from __future__ import annotations

import asyncio
import base64
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from voxbridge.services.models.embedding import static, wordllama
from voxbridge.services.models.engines.admission import Line
from voxbridge.shared.errors import Code, VoxbridgeError

TEXTS_LIMIT: Final = 512
"""Texts of a request."""

TEXT_LIMIT: Final = 8_192
"""Characters of a text."""

FEW: Final = 4
NICE: Final = 5
"""Priority of the thread that embeds: speech and answers come first."""

ALIAS: Final = "embeddings"
Text = Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]


class EmbeddingRequest(BaseModel):
    """Texts to embed. `dimensions` keeps the first components, brought to length 1 again."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=TEXTS_LIMIT)]
    model: Annotated[str, Field(max_length=128)] = ALIAS
    dimensions: Annotated[int, Field(ge=1, le=4_096)] | None = None
    encoding_format: Literal["float", "base64"] = "float"


def add_to(app: FastAPI, line: Line, table: str = "") -> None:
    """Add the route, for the table that a setting names. One request at a time is worked on; `line` bounds those that wait. More than `FEW`
    texts, which no question of a call has, are embedded behind whatever a call needs."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="embedding", initializer=_yield_to_calls)

    @app.post("/v1/embeddings", tags=["embeddings"], response_class=JSONResponse)
    async def embeddings(body: EmbeddingRequest) -> Response:
        """A vector for each text. `model` of the answer names the table with its digest: vectors of two tables are not comparable."""
        async with line.enter():
            few = isinstance(body.input, str) or len(body.input) <= FEW
            found = await asyncio.get_running_loop().run_in_executor(None if few else thread, _embedded, body, table)
        return Response(found, media_type="application/json")


def _yield_to_calls() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def _embedded(body: EmbeddingRequest, setting: str) -> bytes:
    table = wordllama.chosen(setting)
    if body.model not in (ALIAS, table.name, table.model):
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no model {body.model!r} here for this; use {ALIAS} or {table.name}.", field="model")
    if body.dimensions is not None and body.dimensions > table.dimensions:
        message = f"A vector has {table.dimensions} dimensions at most."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="dimensions", limit=table.dimensions)
    vectors, pieces = table.embed([body.input] if isinstance(body.input, str) else body.input)
    if body.dimensions is not None:
        vectors = static.shortened(vectors, body.dimensions)
    rows: list[Any] = (
        vectors.tolist() if body.encoding_format == "float" else [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    )
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": pieces, "total_tokens": pieces}
    return msgspec.json.encode({"object": "list", "data": data, "model": table.model, "usage": usage})
