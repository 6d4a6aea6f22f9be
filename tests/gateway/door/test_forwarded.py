"""The origin of a forwarded request."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.gateway.door.connection_limits import Lobby
from voxbridge.services.gateway.door.forwarded import CHAIN, Proxies, address, forwarded, subscriber
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

PROXIES = Proxies(Config(trusted_proxies="10.0.0.0/8, 2001:db8::1"))
PEER = ipaddress.ip_address("10.1.1.1")


def origin(*values: str, peer: str = "10.1.1.1") -> str:
    found = address(peer)
    assert found is not None
    return str(PROXIES.origin(found, [(b"x-forwarded-for", value.encode("latin-1")) for value in values]))


NAMES = """
    forwarded via x-forwarded-for x-forwarded-host x-forwarded-proto x-forwarded-prefix x-real-ip cf-connecting-ip true-client-ip
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_a_header_of_a_proxy_says_that_a_request_was_forwarded(name: str) -> None:
    assert forwarded([(b"host", b"127.0.0.1:8420"), (name.encode(), b"")])
    assert not forwarded([(b"host", b"127.0.0.1:8420"), (b"x-" + name.encode(), b"")])


def test_a_trusted_proxy_is_believed_back_to_the_first_that_is_not() -> None:
    assert origin("203.0.113.9") == "203.0.113.9"
    assert origin("1.2.3.4, 203.0.113.9, 10.2.2.2") == "203.0.113.9"
    assert origin("1.2.3.4", "203.0.113.9") == "203.0.113.9"
    assert origin("203.0.113.9:4711") == "203.0.113.9"
    assert origin('"[2001:db8::7]:4711"') == "2001:db8::7"
    assert origin("::ffff:203.0.113.9") == "203.0.113.9"


def test_anybody_else_is_not_believed() -> None:
    assert origin("203.0.113.9", peer="198.51.100.1") == "198.51.100.1"
    assert origin(peer="10.1.1.1") == "10.1.1.1"
    assert origin("unknown") == "10.1.1.1"
    assert origin("203.0.113.9, _hidden") == "10.1.1.1"


def test_a_chain_is_followed_so_far_and_no_further() -> None:
    assert origin(", ".join(["203.0.113.9"] + ["10.0.0.1"] * (CHAIN - 1))) == "203.0.113.9"
    assert origin(", ".join(["203.0.113.9"] + ["10.0.0.1"] * CHAIN)) == "10.0.0.1"


@given(st.lists(st.text(max_size=40), max_size=6))
def test_no_header_raises(values: list[str]) -> None:
    PROXIES.origin(PEER, [(b"x-forwarded-for", value.encode("utf-8", "replace")) for value in values])


def test_a_setting_that_names_no_network_is_refused_by_name() -> None:
    with pytest.raises(VoxbridgeError) as caught:
        Proxies(Config(trusted_proxies="10.0.0.0/33"))
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, "VOXBRIDGE_TRUSTED_PROXIES")


def test_one_sender_is_an_address_or_the_network_that_a_subscriber_has() -> None:
    for one, other in (("2001:db8:1:2::1", "2001:db8:1:2:ffff::2"), ("203.0.113.9", "::ffff:203.0.113.9")):
        first, second = address(one), address(other)
        assert first is not None
        assert second is not None
        assert subscriber(first) == subscriber(second)


def test_an_address_has_so_many_connections_and_this_machine_as_many_as_there_is_room_for() -> None:
    lobby = Lobby(Config(sockets_per_address=2), room=10)
    counted = [lobby.enter("203.0.113.9"), lobby.enter("203.0.113.9")]
    with pytest.raises(VoxbridgeError) as caught:
        lobby.enter("203.0.113.9")
    assert (caught.value.code, caught.value.field, caught.value.limit) == (Code.OVERLOADED, "address", 2)
    assert lobby.enter("203.0.113.10")
    for _ in range(7):
        assert not lobby.enter("127.0.0.1")
    with pytest.raises(VoxbridgeError) as caught:
        lobby.enter("127.0.0.1")
    assert caught.value.limit == 10
    lobby.leave(counted[0])
    assert lobby.enter("203.0.113.9")
