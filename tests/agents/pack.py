"""A function that a person must approve."""

from __future__ import annotations

from typing import Any

from voxbridge.services.tools.registry import function


@function(effect="destructive")
async def forget_all() -> dict[str, Any]:
    """Forget all that is known."""
    return {"spoken": "Gone."}
