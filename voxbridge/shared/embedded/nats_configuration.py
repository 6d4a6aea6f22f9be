"""nats-server's configuration: one form of it for `voxbridge up`, for containers and for tests.

Owns what stands in the file beside the accounts (`voxbridge.shared.bus.accounts`): addresses, bounds, the store. Does not own who has which
secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voxbridge.shared.bus.accounts import LOG, accounts
from voxbridge.shared.bus.permissions import users
from voxbridge.shared.log.streams import AUDIO_MEMORY

_GLOBAL: Final = "$G"
"""The account that JetStream was in before it got one of its own: what a server without accounts has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server listens and what it may keep."""

    listen: str
    store: str
    sync_interval: str = "always"
    max_file_store: str = "16GB"
    max_memory_store: str = AUDIO_MEMORY
    more: str = ""
    """Further lines."""


def configuration(place: Place, identities: Mapping[str, str], *, system: str = "") -> str:
    """The file, for what each user signs in with (`voxbridge.shared.bus.permissions.users`), and who may ask the server about itself."""
    # A number with `m` behind it is so many millions to the server, unless it is quoted.
    limits = f'sync_interval: "{place.sync_interval}", max_file_store: {place.max_file_store}, max_memory_store: {place.max_memory_store}'
    return f"""server_name: "voxbridge"
listen: "{place.listen}"
max_payload: 1MB
max_pending: 64MB
write_deadline: "5s"
{place.more}jetstream {{ store_dir: {json.dumps(place.store, ensure_ascii=False)}, {limits} }}
{accounts(users(identities), system=f"{{ {system} }}" if system else "")}"""


def adopt_store(store: Path) -> bool:
    """Give the account of the log what an earlier release stored without accounts; whether there was anything. For a server that is
    not running."""
    old, new = store / "jetstream" / _GLOBAL, store / "jetstream" / LOG
    if not old.is_dir() or new.exists():
        return False
    old.rename(new)
    return True
