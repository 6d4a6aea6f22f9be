"""The environment of each service that `voxbridge up` starts: the settings, and only those secrets that the service works with.

Owns which service is given which variable. Does not own the settings (`voxbridge.shared.config`) nor how a process is started
(`voxbridge.supervisor.children`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.bus.permissions import RIGHTS, VALKEY_KEYS
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.setting import KEY_PREFIX, PREFIX
from voxbridge.supervisor.children import child_environment

_PROVIDERS: Final = frozenset(name for names in PROVIDERS.values() for name in names)
_MODELS: Final = frozenset(f"{PREFIX}{part}_KEY" for part in ("STT", "LLM", "TTS"))
_EMBEDDINGS: Final = frozenset({f"{PREFIX}EMBEDDINGS_KEY"})
_SERVERS: Final = frozenset(f"{PREFIX}{part}" for part in ("NATS_URL", "NATS_SEED_FILE", "REDIS_URL", "REDIS_PASSWORD_FILE"))
_FILES: Final = frozenset(f"{PREFIX}{part}_FILE" for part in ("VAULT_KEY", "ADMIN_TOKEN"))
_SECRETS: Final = frozenset({f"{PREFIX}SECRETS_KEY_FILE"})
"""The key that opens secrets of accounts, which the tools alone work with."""

_TAKEN: Final[Mapping[str, frozenset[str]]] = {
    "voice": frozenset({f"{PREFIX}ADMIN_TOKEN_FILE"}) | _EMBEDDINGS | _SECRETS,
    "gateway": _MODELS | _EMBEDDINGS | _PROVIDERS | {f"{PREFIX}VAULT_KEY_FILE"} | _SECRETS,
    "tools": _MODELS | _EMBEDDINGS | _FILES | _PROVIDERS,
    "knowledge": (_MODELS - {f"{PREFIX}LLM_KEY"}) | _FILES | _PROVIDERS | _SECRETS,
    "awareness": _MODELS | _EMBEDDINGS | _FILES | _PROVIDERS | _SECRETS,
    "terminals": _MODELS | _EMBEDDINGS | _FILES | _PROVIDERS | _SECRETS,
    "models": _MODELS | _EMBEDDINGS | _FILES | _PROVIDERS | _SERVERS | _SECRETS,
}
"""Variables that a service is not given."""

ENDPOINT_KEYS: Final = ("voice",)
"""The services that are given the keys of named endpoints."""


def of_service(service: str, config: Config, bus: NatsServer | None = None, store: ValkeyServer | None = None) -> dict[str, str]:
    """Return the environment of a service; it signs in to those servers that are given as itself."""
    asked = {name.strip() for name in config.tool_keys.split(",")} if service == "tools" else set()
    env = child_environment(config.as_env(), PREFIX)
    for name, value in os.environ.items():
        if name.startswith(KEY_PREFIX) and (service in ENDPOINT_KEYS or name in asked):
            env[name] = value
    if bus is not None and service in RIGHTS:
        env[f"{PREFIX}NATS_URL"] = bus.url_of(service)
    if store is not None and service in VALKEY_KEYS:
        env[f"{PREFIX}REDIS_URL"] = store.url_of(service)
    return {name: value for name, value in env.items() if name not in _TAKEN[service] or name in asked}
