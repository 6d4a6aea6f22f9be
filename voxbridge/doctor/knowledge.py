"""Check of the knowledge service: by what graphs are searched.

Owns the question and the finding. Changes nothing. A service that does not answer is told by the services' own findings.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nats.aio.client import Client

from voxbridge.doctor.finding import Finding, ok, warn
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.knowledge import ListGraphs, ask
from voxbridge.shared.secrets.access_tokens import LOCAL

AREA: Final = "knowledge"
ANSWER_S: Final = 4.0
OFF: Final = "off"
WORDS: Final = "words"


async def on_the_bus(config: Config, nc: Client) -> list[Finding]:
    """Return the finding about search; none when the service does not answer."""
    try:
        async with asyncio.timeout(ANSWER_S):
            told = await ask(nc, ListGraphs(account=LOCAL))
    except (VoxbridgeError, TimeoutError):
        return []
    if told.by != WORDS:
        return [ok(AREA, "search", f"by {told.by}")]
    if config.embeddings_model == OFF:
        return [ok(AREA, "search", "by words alone, since VOXBRIDGE_EMBEDDINGS_MODEL is off.")]
    url = config.embeddings_url or config.models_base_url
    says = f"by words alone: embeddings cannot be had from {url}. A question that uses none of a document's words does not find it."
    return [warn(AREA, "search", says, "Look at that service and at VOXBRIDGE_EMBEDDINGS_URL; nothing needs to be ingested again.")]
