"""Runtime file of `voxbridge up`, which tells other commands on its machine where its servers are.

Owns the file `runtime.json` of the data folder, readable by its owner only: the URLs hold passwords. It counts only while the folder's lock
is held, so a file left behind by a crash misleads no command.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.shared.config import Config

_NAME: Final = "runtime.json"


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A running product. The URLs carry credentials."""

    pid: int
    url: str
    nats_url: str
    redis_url: str
    port: int
    models_port: int


def tell(config: Config, url: str) -> None:
    """Write the file; `config` has the URLs of the servers in use."""
    runtime = Runtime(
        pid=os.getpid(),
        url=url,
        nats_url=config.nats_url,
        redis_url=config.redis_url,
        port=config.port,
        models_port=config.models_port,
    )
    path = config.data_dir / _NAME
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(runtime))
    fresh.replace(path)


def forget(folder: Path) -> None:
    """Remove the file."""
    (folder / _NAME).unlink(missing_ok=True)


def told(folder: Path) -> Runtime | None:
    """Return the content of the file, if it exists and can be read."""
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=Runtime)
    except (OSError, msgspec.DecodeError):
        return None
