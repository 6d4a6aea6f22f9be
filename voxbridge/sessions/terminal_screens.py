"""Removing what a closed terminal showed, as part of `voxbridge erase`.

Asks the terminals service; where the installation is at rest, removes the files. Does not own them (`voxbridge.services.terminals.tape`).
"""

from __future__ import annotations

import shutil

from nats.aio.client import Client

from voxbridge.services.terminals.folder import SCREENS, place
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST
from voxbridge.shared.terminals.questions import Forget


async def forget(nc: Client, config: Config, life: str, *, by: str) -> str:
    """Remove what a terminal showed. Return why that could not be done, in words; empty if it was. Raises `CONFLICT` while it lives."""
    try:
        await ask(nc, LOCAL_HOST, Forget(by=by, life=life))
    except VoxbridgeError as error:
        if error.code != Code.UNAVAILABLE:
            raise
        if config.nats_url:
            return f"what the terminal showed, which goes in {config.terminal_screens_hours} h at most ({error.message})"
        try:
            shutil.rmtree(place(config.terminals_path) / SCREENS / life)
        except FileNotFoundError:
            return ""
        except OSError as failure:
            return f"what the terminal showed, in {config.terminals_path} ({failure.strerror})"
    return ""
