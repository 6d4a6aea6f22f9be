"""A pack whose executor waits two seconds for a person's answer."""

from __future__ import annotations

from typing import Any

from voxbridge.services.tools.core import approvals
from voxbridge.services.tools.registry import function

approvals.EXPIRES_US = 2_000_000  # type: ignore[misc]  # two minutes are too long for a test


@function(effect="read")
async def patience() -> dict[str, Any]:
    """Say how long an answer is waited for."""
    return {"spoken": "Two seconds."}
