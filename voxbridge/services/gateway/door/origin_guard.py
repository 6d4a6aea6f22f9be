"""The guard of the gateway: exact allow-lists of Host and Origin, checked before everything else.

Owns the check and its 403. A page of another site can reach a server on loopback. Its Origin gives it away, or its Host where a foreign
name was pointed at this machine.
"""

from __future__ import annotations

from typing import Any, Final

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_SAFE: Final = frozenset({"GET", "HEAD"})


class Guard:
    """The allow-lists of one listening address."""

    def __init__(self, config: Config) -> None:
        listed = _listed(config.allowed_hosts)
        with_port = {f"{name}:{config.port}" for name in (*_LOOPBACK, *listed) if not _has_port(name)}
        self._hosts = with_port | frozenset(listed) | frozenset(_LOOPBACK if config.port == 80 else ())
        own = {f"http://{name}:{config.port}" for name in _LOOPBACK}
        if config.port == 80:
            own |= {f"http://{name}" for name in _LOOPBACK}
        self._origins = frozenset(own) | frozenset(_listed(config.allowed_origins))

    def check(self, scope: dict[str, Any], *, any_origin: bool = False) -> None:
        """Raise `FORBIDDEN_ORIGIN` unless the Host and, where it matters, the Origin of this request are allowed. `any_origin`:
        another rule judges the Origin."""
        hosts, origins = [], []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise VoxbridgeError(
                Code.FORBIDDEN_ORIGIN,
                f"Host {_shown(hosts)} is not allowed. Name it in VOXBRIDGE_ALLOWED_HOSTS if it is yours.",
                field="Host",
            )
        if any_origin or not origins or (scope["type"] == "http" and scope["method"] in _SAFE):
            return
        if len(origins) != 1 or origins[0].lower() not in self._origins:
            raise VoxbridgeError(
                Code.FORBIDDEN_ORIGIN,
                f"Origin {_shown(origins)} is not allowed. Name it in VOXBRIDGE_ALLOWED_ORIGINS if it is yours.",
                field="Origin",
            )


def _listed(text: str) -> list[str]:
    return [part.strip().rstrip("/").lower() for part in text.split(",") if part.strip()]


def _has_port(name: str) -> bool:
    return name.rpartition("]")[2].count(":") == 1


def _shown(values: list[str]) -> str:
    return ", ".join(repr(value[:128]) for value in values) if values else "(none)"
