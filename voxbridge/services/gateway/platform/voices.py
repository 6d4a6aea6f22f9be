"""The voices that sessions of a key can have: a name that nobody has is answered with the default voice, and a notice.

Owns the question. Does not own the voices: those of the installation are asked of the models service, and kept for a minute. Nothing is
lost in a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from voxbridge.shared.agents import voices
from voxbridge.shared.errors import VoxbridgeError

KEPT_S: Final = 60.0


class Voices:
    """The voices of one gateway. `ask` returns those of the installation, each with its `id`."""

    def __init__(self, ask: Callable[[], Awaitable[Sequence[Mapping[str, str]]]]) -> None:
        self._ask = ask
        self._local: frozenset[str] = frozenset()
        self._asked_at = float("-inf")

    async def find(self, voice: str, mode: str) -> tuple[str, bool]:
        """Return the voice to use, empty for the default one, and whether the one that was wanted exists. An empty `mode`, and a models
        service that does not answer, let every name pass."""
        if not voice or not mode:
            return voice, True
        known = await self._known(mode)
        return (voice, True) if not known or voice in known else ("", False)

    async def _known(self, mode: str) -> frozenset[str]:
        if mode in voices.BY_PROVIDER:
            return voices.BY_PROVIDER[mode]
        now = asyncio.get_running_loop().time()
        if now - self._asked_at > KEPT_S:
            try:
                self._local = frozenset(one["id"] for one in await self._ask())
                self._asked_at = now
            except VoxbridgeError:
                return frozenset()
        return self._local
