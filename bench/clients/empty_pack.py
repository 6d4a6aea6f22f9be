"""A pack of functions that do nothing, so that a call of one costs what every call costs; `linger` does so for a moment."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from voxbridge.services.tools.registry import function

LINGER_S: Final = 0.2


@function(effect="read")
async def nothing() -> dict[str, Any]:
    """Do nothing."""
    return {}


@function(effect="read", timeout_s=10)
async def linger() -> dict[str, Any]:
    """Do nothing, for a moment."""
    await asyncio.sleep(LINGER_S)
    return {}
