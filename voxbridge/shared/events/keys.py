"""Events of an account's keys and of what its owner approved, which the gateway writes into the account's log."""

from __future__ import annotations

from voxbridge.shared.events.envelope import Event, event
from voxbridge.shared.platform.handlers import Configuration
from voxbridge.shared.platform.keys import Key


@event("key.made", writer="gateway")
class KeyMade(Event, frozen=True, kw_only=True):
    """A key was made. `hash` is the SHA-256, in hex, of its text, which stands nowhere."""

    key: Key
    hash: str


@event("key.rotated", writer="gateway")
class KeyRotated(Event, frozen=True, kw_only=True):
    """The key has another text. Its former texts count until `until_s` (Unix clock)."""

    key_id: str
    hash: str
    until_s: int


@event("key.revoked", writer="gateway")
class KeyRevoked(Event, frozen=True, kw_only=True):
    """The key counts no more, from here on; calls that it opened go on to their limits."""

    key_id: str


@event("key.used", writer="gateway")
class KeyUsed(Event, frozen=True, kw_only=True):
    """A socket of a session that was opened with the key has closed: what it took."""

    key_id: str
    session: str
    seconds: int
    tokens: int


@event("configuration.approved", writer="gateway")
class ConfigurationApproved(Event, frozen=True, kw_only=True):
    """The owner of the account lets pages with its live keys configure this. `by` is `admin`, or the id of a secret key."""

    digest: str
    configuration: Configuration
    by: str


@event("configuration.withdrawn", writer="gateway")
class ConfigurationWithdrawn(Event, frozen=True, kw_only=True):
    """An approval counts no more."""

    digest: str
