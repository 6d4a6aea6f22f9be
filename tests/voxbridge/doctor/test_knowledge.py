"""The doctor's look at search in knowledge graphs: by what it goes, and what to do where it goes by words alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.knowledge.serving import serving
from tests.ports import free_port
from voxbridge.doctor import knowledge
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.config import Config

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return replace(Config(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path, models_port=free_port())


async def test_search_by_words_alone_is_told_with_its_reason(config: Config) -> None:
    nc = await connect_nats(config.nats_url, "doctor", pending=1_024, timeout_s=5)
    try:
        async with serving(config):
            (lost,) = await knowledge.on_the_bus(config, nc)
        off = replace(config, embeddings_model="off")
        async with serving(off):
            (chosen,) = await knowledge.on_the_bus(off, nc)
        assert await knowledge.on_the_bus(config, nc) == [], "the services' own findings tell of a lost service"
    finally:
        await nc.close()
    assert (lost.level, f"127.0.0.1:{config.models_port}" in lost.says) == ("WARN", True), lost
    assert "VOXBRIDGE_EMBEDDINGS_URL" in lost.do
    assert (chosen.level, "VOXBRIDGE_EMBEDDINGS_MODEL" in chosen.says) == ("OK", True), chosen
