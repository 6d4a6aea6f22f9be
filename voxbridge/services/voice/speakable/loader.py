"""Loading of the rules that turn figures into words for the speech model: it takes a fifth of a second, and runs in a thread.

Owns no rule (`speakable`). A crash loses nothing.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import Any


async def speakable(text: str, language: str) -> str:
    """Return the text that the speech model is given for a piece of a reply."""
    rules = await _rules()
    said: str = rules.speakable(text, language)
    return said or text


async def prepare() -> None:
    """Load the rules now."""
    await _rules()


async def _rules() -> Any:
    # `sys.modules` cannot tell: it has a module before it is loaded.
    if "rules" not in _loaded:
        _loaded["rules"] = await asyncio.to_thread(importlib.import_module, "voxbridge.services.voice.speakable.text")
    return _loaded["rules"]


_loaded: dict[str, Any] = {}
