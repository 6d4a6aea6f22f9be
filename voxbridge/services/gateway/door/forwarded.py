"""Whom a request came from, where proxies stand between: forwarding headers, and which proxies are believed.

Owns both rules. A header that says a request was forwarded is always believed in one thing: that it did not come from this machine's
owner. Who sent it is believed of trusted proxies alone. Nothing is kept here.
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
"""As ASGI has them: names in lower case."""

CHAIN: Final = 16
"""Addresses of `X-Forwarded-For` that are looked at, from the last on."""

_PREFIX: Final = b"x-forwarded-"
_NAMES: Final = frozenset(
    b"forwarded via x-real-ip x-client-ip x-cluster-client-ip x-original-host x-original-forwarded-for true-client-ip cf-connecting-ip "
    b"cf-ray cdn-loop fastly-client-ip x-envoy-external-address x-proxyuser-ip".split()
)
_FOR: Final = b"x-forwarded-for"
_SUBNET: Final = 64
"""Bits of an IPv6 address that one subscriber has."""


def forwarded(headers: Headers) -> bool:
    """Whether somebody stands between the sender of this request and the gateway."""
    return any(name in _NAMES or name.startswith(_PREFIX) for name, _ in headers)


def address(text: str) -> IPv4 | IPv6 | None:
    """An address as a peer or a header says it: IPv4 also within IPv6, without its zone; with or without a port in a header."""
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
    """The proxies whose word is taken for where a request came from."""

    def __init__(self, config: Config) -> None:
        listed = [part.strip() for part in config.trusted_proxies.split(",") if part.strip()]
        try:
            self._networks = [ipaddress.ip_network(part, strict=False) for part in listed]
        except ValueError as error:
            name = "VOXBRIDGE_TRUSTED_PROXIES"
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} names addresses or networks: {error}.", field=name) from None

    def trusts(self, peer: IPv4 | IPv6) -> bool:
        """Whether this is one of them."""
        return any(peer in network for network in self._networks)

    def origin(self, peer: IPv4 | IPv6, headers: Headers) -> IPv4 | IPv6:
        """Where a request came from: the last address on its way that is no trusted proxy."""
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
    """What is counted as one sender: an IPv4 address, or the network that an IPv6 address is in."""
    return str(ipaddress.ip_network((peer, _SUBNET), strict=False)) if isinstance(peer, IPv6) else str(peer)
