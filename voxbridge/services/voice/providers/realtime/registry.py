"""The realtime models by the name of their provider, each loaded when it is first needed.

A vendor's SDK takes a second or more of CPU to load, which a worker that replaces a dead one does not have. So the SDKs of the
providers with keys are loaded in the background, right after the start, and those of the others are not preloaded.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from voxbridge.services.voice.providers.realtime.base import RealtimeModel
from voxbridge.shared.agents.model import Realtime

_PLACES: Final[dict[Realtime, tuple[str, str]]] = {
    "gemini": ("voxbridge.services.voice.providers.realtime.gemini.connection", "Gemini"),
    "openai": ("voxbridge.services.voice.providers.realtime.openai.model", "OpenAIRealtime"),
}
"""Module and class of each provider. A new provider is a line here, a class, and a row of `capabilities`."""

# At debug level this logger writes each header and each message: keys, handles, and what is said.
logging.getLogger("websockets.client").setLevel(logging.INFO)


class Vendors:
    """The realtime models of one process. `keys` returns the key of a provider by name."""

    def __init__(self, keys: Callable[[str], Awaitable[str]]) -> None:
        self._keys = keys
        self._models: dict[str, RealtimeModel] = {}
        self._loading = asyncio.Lock()

    async def get(self, provider: str) -> RealtimeModel | None:
        """Return the model of a provider, loading it first if needed; None for an unknown provider."""
        place = {str(name): where for name, where in _PLACES.items()}.get(provider)
        if place is None:
            return None
        async with self._loading:
            if provider not in self._models:
                made: Any = await asyncio.to_thread(_load, *place)
                self._models[provider] = made(self._keys)
        return self._models[provider]

    async def prepare(self, providers: Iterable[str]) -> None:
        """Load these providers now."""
        for provider in providers:
            model = await self.get(provider)
            if model is not None:
                await model.prepare()

    async def close(self) -> None:
        """Release the resources that connections share."""
        await asyncio.gather(*(model.close() for model in self._models.values()))


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
