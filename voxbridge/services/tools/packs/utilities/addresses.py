"""Facts about IP addresses and networks that follow from the number itself."""

from __future__ import annotations

import ipaddress
from typing import Any

from voxbridge.services.tools.packs.utilities.bounds import refused

_KINDS = (
    ("is_unspecified", "unspecified"),
    ("is_loopback", "loopback"),
    ("is_link_local", "link-local"),
    ("is_multicast", "multicast"),
    ("is_reserved", "reserved"),
    ("is_private", "private"),
    ("is_global", "public"),
)


def described(text: str) -> dict[str, Any]:
    """Return the facts about an address, or about a network with a slash. Raises `INVALID_ARGUMENT`."""
    wanted = text.strip()
    try:
        return _network(ipaddress.ip_network(wanted, strict=False)) if "/" in wanted else _address(ipaddress.ip_address(wanted.strip("[]")))
    except ValueError as error:
        message = f"{text[:60]!r} is not an IP address. Write it as 192.0.2.1, 2001:db8::1 or 10.0.0.0/8."
        raise refused(message, "address") from error


def _address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> dict[str, Any]:
    kind = "shared by customers of a provider" if address in ipaddress.ip_network("100.64.0.0/10") else _kind(address)
    result: dict[str, Any] = {
        "address": address.compressed,
        "version": address.version,
        "kind": kind,
        "number": str(int(address)),
        "reverse_name": address.reverse_pointer,
    }
    if isinstance(address, ipaddress.IPv6Address):
        result["written_out"] = address.exploded
        teredo = address.teredo
        inside = {"mapped": address.ipv4_mapped, "6to4": address.sixtofour, "teredo_client": teredo[1] if teredo else None}
        result["holds_ipv4"] = {name: str(one) for name, one in inside.items() if one is not None}
    return result | {"spoken": f"It is a {kind} IPv{address.version} address."}


def _network(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> dict[str, Any]:
    plain = network.version == 4 and network.prefixlen < 31
    usable = network.num_addresses - 2 if plain else network.num_addresses
    return {
        "network": network.compressed,
        "version": network.version,
        "kind": _kind(network.network_address),
        "mask": str(network.netmask),
        "first": str(network[1] if plain else network[0]),
        "last": str(network[-2] if plain else network[-1]),
        "broadcast": str(network.broadcast_address) if plain else "",
        "addresses": str(network.num_addresses),
        "usable": str(usable),
        "spoken": f"It is a network with {usable:,} usable addresses.",
    }


def _kind(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return next((name for attribute, name in _KINDS if getattr(address, attribute)), "reserved")
