"""Removing the knowledge graphs of an account, as part of `voxbridge erase`.

Asks the knowledge service; where the installation is at rest, removes the files. Does not own the graphs (`voxbridge.services.knowledge`).
"""

from __future__ import annotations

import fcntl
import os
import shutil

from nats.aio.client import Client

from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.knowledge import Forget, ask


async def forget(nc: Client, config: Config, account: str) -> str:
    """Remove all graphs of an account. Return why that could not be done, in words; empty if it was."""
    try:
        await ask(nc, Forget(account=account))
    except VoxbridgeError as error:
        if config.nats_url:
            return f"the knowledge graphs of {account} ({error.message})"
        return _at_rest(config, account)
    return ""


def _at_rest(config: Config, account: str) -> str:
    folder = config.knowledge_path
    if not folder.is_dir():
        return ""
    try:
        held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder / subjects.account_log(account)[1:], ignore_errors=False)
        finally:
            os.close(held)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"the knowledge graphs in {folder} ({error.strerror})"
    return ""
