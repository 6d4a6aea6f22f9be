"""A pack with one function that does nothing, so that a call of it costs what every call costs."""

from __future__ import annotations

from typing import Any

from voxbridge.services.tools.registry import function


@function(effect="read")
async def nothing() -> dict[str, Any]:
    """Do nothing."""
    return {}
