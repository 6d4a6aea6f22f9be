"""`/v1/embeddings` through OpenAI's own client, and the table behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from openai import APIStatusError, AsyncOpenAI

from deploy import sentence_vectors
from voxbridge.services.models.api import embeddings, errors
from voxbridge.services.models.embedding import static
from voxbridge.services.models.engines.admission import Line
from voxbridge.shared.errors import VoxbridgeError


@pytest.fixture
async def openai() -> AsyncIterator[AsyncOpenAI]:
    app = FastAPI()
    app.add_exception_handler(VoxbridgeError, errors.on_voxbridge)
    app.add_exception_handler(RequestValidationError, errors.on_validation)
    embeddings.add_to(app, Line("embedding", 1))
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
        AsyncOpenAI(base_url="http://models/v1", api_key="none", http_client=http, max_retries=0) as client,
    ):
        yield client


async def test_texts_that_mean_the_same_are_near_to_each_other(openai: AsyncOpenAI) -> None:
    texts = ["delete a file", "remove a document", "the weather in Lisbon"]
    answer = await openai.embeddings.create(model="embeddings", input=texts)  # the client asks for base64
    plain = await openai.embeddings.create(model=answer.model, input=texts, encoding_format="float")
    found = np.array([one.embedding for one in answer.data])
    assert np.allclose(found, np.array([one.embedding for one in plain.data]))
    near = found @ found.T
    assert np.allclose(np.diag(near), 1, atol=1e-5)
    assert near[0, 1] > 2 * near[0, 2]
    assert answer.model == f"{static.NAME}@{answer.model[-12:]}"
    assert answer.usage.total_tokens == 11


async def test_the_first_dimensions_are_those_that_count(openai: AsyncOpenAI) -> None:
    whole = (await openai.embeddings.create(model=static.NAME, input="a blue pump", encoding_format="float")).data[0].embedding
    short = (await openai.embeddings.create(model=static.NAME, input="a blue pump", dimensions=64)).data[0].embedding
    assert np.allclose(short, np.array(whole[:64]) / np.linalg.norm(whole[:64]), atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "status", "field"),
    [
        ({"model": "other"}, 404, "model"),
        ({"dimensions": 257}, 400, "dimensions"),
        ({"input": ["x"] * (embeddings.TEXTS_LIMIT + 1)}, 400, "input"),
        ({"input": "x" * (embeddings.TEXT_LIMIT + 1)}, 400, "input"),
        ({"input": []}, 400, "input"),
    ],
)
async def test_what_is_beyond_a_limit_is_refused_with_its_field(
    openai: AsyncOpenAI, wrong: dict[str, object], status: int, field: str
) -> None:
    with pytest.raises(APIStatusError) as refused:
        await openai.embeddings.create(**({"model": "embeddings", "input": "x"} | wrong))  # type: ignore[arg-type]
    assert refused.value.status_code == status
    assert field in refused.value.message
    at_the_limit = ["x" * embeddings.TEXT_LIMIT, *["y"] * (embeddings.TEXTS_LIMIT - 1)]
    assert len((await openai.embeddings.create(model="embeddings", input=at_the_limit)).data) == embeddings.TEXTS_LIMIT


def test_a_text_without_known_words_has_no_direction() -> None:
    found, pieces = static.table().embed(["Ω", "", "word"])
    assert [round(float(np.linalg.norm(row)), 5) for row in found] == [0, 0, 1]
    assert pieces == 2


def test_the_table_is_made_of_the_bytes_that_are_named(tmp_path: Path) -> None:
    from click.testing import CliRunner

    for name in sentence_vectors.FILES:
        (tmp_path / name).write_bytes(b"other bytes")
    refused = CliRunner().invoke(sentence_vectors.main, [str(tmp_path)])
    assert refused.exit_code == 1
    assert "model.safetensors has SHA-256" in refused.output
