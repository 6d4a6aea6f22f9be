"""nats-server's configuration: one form of it for `voxbridge up`, for containers and for tests.

Owns the content of the file besides the accounts (`voxbridge.shared.bus.accounts`): addresses, limits, the store. Does not own the secrets.
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
"""Account that JetStream was in before it got one of its own: the default of a server without accounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Address that a server listens on, and the limits of what it stores."""

    listen: str
    store: str
    sync_interval: str = "always"
    max_file_store: str = "16GB"
    max_memory_store: str = AUDIO_MEMORY
    more: str = ""
    """Further lines."""


def configuration(place: Place, identities: Mapping[str, str], *, system: str = "") -> str:
    """Return the text of the file. `identities` holds what each user signs in with (`voxbridge.shared.bus.permissions.users`); `system` is
    the user that may ask the server about itself."""
    # The server reads an unquoted number followed by `m` as millions.
    limits = f'sync_interval: "{place.sync_interval}", max_file_store: {place.max_file_store}, max_memory_store: {place.max_memory_store}'
    return f"""server_name: "voxbridge"
listen: "{place.listen}"
max_payload: 1MB
max_pending: 64MB
write_deadline: "5s"
{place.more}jetstream {{ store_dir: {json.dumps(place.store, ensure_ascii=False)}, {limits} }}
{accounts(users(identities), system=f"{{ {system} }}" if system else "")}"""


def adopt_store(store: Path) -> bool:
    """Move the store of an earlier release without accounts to the account of the log; return whether there was one. The server must not be
    running."""
    old, new = store / "jetstream" / _GLOBAL, store / "jetstream" / LOG
    if not old.is_dir() or new.exists():
        return False
    old.rename(new)
    return True
