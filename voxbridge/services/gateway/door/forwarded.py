"""The origin of a request behind proxies: forwarding headers, and which proxies are trusted.

Owns both rules. Any forwarding header proves that a request did not come from this machine's owner. The sender it names is believed only
from trusted proxies. Nothing is kept here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address

Headers = Iterable[tuple[bytes, bytes]]
"""Headers as in ASGI: names in lower case."""

CHAIN: Final = 16
"""Addresses of `X-Forwarded-For` that are read, from the last one backwards."""

_PREFIX: Final = b"x-forwarded-"
_NAMES: Final = frozenset(
    b"forwarded via x-real-ip x-client-ip x-cluster-client-ip x-original-host x-original-forwarded-for true-client-ip cf-connecting-ip "
    b"cf-ray cdn-loop fastly-client-ip x-envoy-external-address x-proxyuser-ip".split()
)
_FOR: Final = b"x-forwarded-for"
_SUBNET: Final = 64
"""Bits of an IPv6 prefix that identify one subscriber."""


def forwarded(headers: Headers) -> bool:
    """Tell whether a proxy stands between the sender of this request and the gateway."""
    return any(name in _NAMES or name.startswith(_PREFIX) for name, _ in headers)


def address(text: str) -> IPv4 | IPv6 | None:
    """Parse an address of a peer or a header, with or without a port and a zone. An IPv4 address mapped into IPv6 becomes IPv4."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6) else found


class Proxies:
    """The proxies that are trusted to name the origin of a request."""

    def __init__(self, config: Config) -> None:
        listed = [part.strip() for part in config.trusted_proxies.split(",") if part.strip()]
        try:
            self._networks = [ipaddress.ip_network(part, strict=False) for part in listed]
        except ValueError as error:
            name = "VOXBRIDGE_TRUSTED_PROXIES"
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} names addresses or networks: {error}.", field=name) from None

    def trusts(self, peer: IPv4 | IPv6) -> bool:
        """Tell whether this address is a trusted proxy."""
        return any(peer in network for network in self._networks)

    def origin(self, peer: IPv4 | IPv6, headers: Headers) -> IPv4 | IPv6:
        """Return the origin of a request: the last address of its chain that is not a trusted proxy."""
        if not self.trusts(peer):
            return peer
        chain = ",".join(value.decode("latin-1") for name, value in headers if name == _FOR).split(",")[-CHAIN:]
        for text in reversed(chain):
            found = address(text)
            if found is None:
                return peer
            if not self.trusts(found):
                return found
            peer = found
        return peer


def subscriber(peer: IPv4 | IPv6) -> str:
    """Return the key that identifies a sender: its IPv4 address, or the /64 network of its IPv6 address."""
    return str(ipaddress.ip_network((peer, _SUBNET), strict=False)) if isinstance(peer, IPv6) else str(peer)
