"""Figures into words for the speech model, in a thread where there are any: the rules take a fifth of a second to load.

Owns no rule (`speakable`). A crash loses nothing.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import Any


async def speakable(text: str, language: str) -> str:
    """What a voice is given to say for a piece of a reply."""
    rules = await _rules()
    said: str = rules.speakable(text, language)
    return said or text


async def prepare() -> None:
    """Load the rules now."""
    await _rules()


async def _rules() -> Any:
    # Not by `sys.modules`, which has a module before it is loaded.
    if "rules" not in _loaded:
        _loaded["rules"] = await asyncio.to_thread(importlib.import_module, "voxbridge.services.voice.speakable.text")
    return _loaded["rules"]


_loaded: dict[str, Any] = {}
