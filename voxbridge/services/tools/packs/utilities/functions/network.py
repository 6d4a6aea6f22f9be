"""Addresses on the network."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.utilities import addresses, probes
from voxbridge.services.tools.registry import function
from voxbridge.shared.fetch import URL_LIMIT


@function(timeout_s=5, effect="read", listed=False)
def describe_ip(address: Annotated[str, Meta(min_length=1, max_length=60)]) -> dict[str, Any]:
    """Tell the facts about an IP address or a network.

    Args:
        address: Such as 192.0.2.1, 2001:db8::1 or 10.0.0.0/8.

    Examples:
        is this a private IP address
        what kind of address is that
        how many hosts fit into this subnet
        first and last address of the network
        explain this CIDR block
        what is the netmask of a slash twenty six
        is 10 dot 1 dot 2 dot 3 private
        what network is 172 dot 16 dot 0 dot 4 in
        facts on the address 8 dot 8 dot 8 dot 8
    """
    return addresses.described(address)


@function(timeout_s=15, effect="read", listed=False)
async def probe_url(
    url: Annotated[str, Meta(min_length=1, max_length=URL_LIMIT)], ctx: Context, method: Literal["GET", "HEAD"] = "GET"
) -> dict[str, Any]:
    """Ask whether a web address answers, with which status and how fast.

    Args:
        url: The address, with https://.
        method: HEAD asks for no content.

    Examples:
        is this website up
        check whether the site answers
        what status does that URL return
        where does this link redirect to
        how fast does my homepage respond
        ping the web server
        is the API reachable
        is wikipedia dot org up
        can you reach our server
        does the page at shop dot com load
        see whether the site is down
        test if python dot org responds
        is it just me or is the website offline
    """
    return probes.told(await ctx.fetcher.fetch(url, method=method))
