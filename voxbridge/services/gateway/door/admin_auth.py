"""The check for administrators: the owner of this machine, or a client that has the token.

Owns the rule and the token's file. Does not own the guard of Host and Origin, which comes first
(`voxbridge.services.gateway.door.origin_guard`). The token is read on each check, so that a new file counts at once. Nothing is lost in a
crash here.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Final

from voxbridge.services.gateway.door import tokens
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.secret_file import admin_token_file

_SCHEME: Final = "bearer"
_log = logging.getLogger(__name__)


def owner_alone(config: Config) -> bool:
    """Tell whether only users of this machine can reach the gateway: it listens on loopback, and no other Host or Origin is allowed (as
    behind a proxy)."""
    return is_loopback(config.host) and not config.allowed_hosts.strip() and not config.allowed_origins.strip()


def is_loopback(host: str) -> bool:
    """Tell whether a listening address is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Admins:
    """The administrator check of one gateway. Makes the token's file where a token is needed and there is none."""

    def __init__(self, config: Config) -> None:
        self.open = owner_alone(config)
        self._file = admin_token_file(config)
        if not self.open:
            try:
                self._file.ensure()
            except VoxbridgeError as error:
                _log.error("%s Until then nobody can administer.", error.message)

    def check(self, authorization: str | None, *, through: bool = False) -> None:
        """Raise `UNAUTHENTICATED` unless the caller is an administrator, by this `Authorization` header or by using this machine. Raises
        `UNAVAILABLE` when the token's file cannot be used. A request that came `through` a proxy is never the machine owner's, whatever its
        address is."""
        if self.open and not through:
            return
        token = self._file.ensure() if self.open else self._file.read()
        scheme, _, given = (authorization or "").partition(" ")
        if not tokens.fits(given.strip(), tokens.hash_of(token) if token else "") or scheme.lower() != _SCHEME:
            raise VoxbridgeError(
                Code.UNAUTHENTICATED,
                "A token is needed (`Authorization: Bearer`): one of `voxbridge token`, or that of VOXBRIDGE_ADMIN_TOKEN_FILE.",
                field="Authorization",
            )
