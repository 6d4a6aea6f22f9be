"""A knowledge service on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voxbridge.services.knowledge.library import common_words
from voxbridge.services.knowledge.replaying import differences
from voxbridge.services.knowledge.service import KnowledgeService, build
from voxbridge.services.knowledge.store.graph_file import GraphFile
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.ids import new_process_id
from voxbridge.shared.knowledge import Asks, asking
from voxbridge.shared.service.process import connected


def replayed(config: Config) -> None:
    """Fail unless every graph is what is made of its documents again."""
    for path in config.knowledge_path.glob("*/*.sqlite"):
        try:
            graph = GraphFile(path)
        except VoxbridgeError:  # a test has broken it
            continue
        assert differences(graph, common_words()) == []
        graph.close()


@asynccontextmanager
async def serving(config: Config) -> AsyncIterator[tuple[KnowledgeService, Asks]]:
    """Run the service; yield it and a way to ask it."""
    async with connected(config, "knowledge", new_process_id("knowledge"), SystemClock()) as resources:
        service = await build(resources)
        await resources.events_nc.flush()  # the server knows all subscriptions now
        running = asyncio.create_task(service.serve())
        try:
            yield service, asking(resources.events_nc)
        finally:
            await service.drain()
            await running
            replayed(config)
