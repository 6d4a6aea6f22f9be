"""Places that `ctx.fetch` may not reach: with a resolver of our own, and a forbidden server that counts who came."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from tests.tools.sandbox.servers import Server, answer, serving
from voxbridge.services.tools.sandbox.frames import AnswerFrame, AskFrame
from voxbridge.services.tools.sandbox.outside import FETCH_S, Outside
from voxbridge.shared.fetch import Fetcher

PUBLIC = "93.184.215.14"
HOSTS: dict[str, list[str]] = {
    "public.example": [PUBLIC],
    "loopback.example": ["127.0.0.1"],
    "loopback6.example": ["::1"],
    "private.example": ["10.0.0.1"],
    "private172.example": ["172.16.0.1"],
    "private192.example": ["192.168.1.1"],
    "shared.example": ["100.64.0.1"],
    "linklocal.example": ["169.254.1.1"],
    "metadata.example": ["169.254.169.254"],
    "alibaba.example": ["100.100.100.200"],
    "metadata6.example": ["fd00:ec2::254"],
    "zero.example": ["0.0.0.0"],
    "broadcast.example": ["255.255.255.255"],
    "multicast.example": ["224.0.0.1"],
    "multicast6.example": ["ff02::1"],
    "linklocal6.example": ["fe80::1"],
    "scoped.example": ["fe80::1%eth0"],
    "unique.example": ["fc00::1"],
    "site.example": ["fec0::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "mappedpublic.example": [f"::ffff:{PUBLIC}"],
    "compatible.example": ["::127.0.0.1"],
    "siit.example": ["::ffff:0:127.0.0.1"],
    "nat64.example": ["64:ff9b::127.0.0.1"],
    "nat64local.example": ["64:ff9b:1::7f00:1"],
    "sixtofour.example": ["2002:7f00:1::"],
    "sixtofourpublic.example": ["2002:5db8:d70e::"],
    "teredo.example": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "documentation.example": ["192.0.2.1"],
    "documentation6.example": ["2001:db8::1"],
    "discard.example": ["100::1"],
    "reserved.example": ["240.0.0.1"],
    "benchmark.example": ["198.18.0.1"],
    "relay.example": ["192.88.99.1"],
    "mixed.example": [PUBLIC, "127.0.0.1"],
    "mixed6.example": [PUBLIC, "::1"],
    "nothing.example": [],
    "alias.example": ["127.0.0.1"],  # a CNAME of a name that is on loopback
}

REFUSED: tuple[str, ...] = (
    *(f"http://{host}:8080/" for host in HOSTS if host not in ("public.example", "nothing.example")),
    # Every way to write 127.0.0.1 and 169.254.169.254.
    *("http://127.0.0.1:8080/", "http://127.1:8080/", "http://127.0.1:8080/", "http://2130706433:8080/", "http://0x7f000001:8080/"),
    *("http://0x7f.0.0.1:8080/", "http://0177.0.0.1:8080/", "http://017700000001:8080/", "http://127.0.0.1.:8080/", "http://0:8080/"),
    *("http://[::1]:8080/", "http://[::]:8080/", "http://[::ffff:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
    *("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::127.0.0.1]:8080/", "http://[fe80::1%25eth0]:8080/", "http://[64:ff9b::7f00:1]:8080/"),
    *("http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/", "http://[fd00:ec2::254]/"),
    *("http://localhost:8080/", "http://LOCALHOST:8080/", "http://①②⑦.0.0.1:8080/", "http://127。0。0。1:8080/"),
    # Credentials, schemes, ports, and characters.
    *("http://me@public.example/", "http://me:you@public.example/", "http://public.example@127.0.0.1:8080/", "http://a:b@127.0.0.1:8080/"),
    *(
        "ftp://public.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "data:text/plain,x",
        "unix:///run/x.sock",
        "ws://public.example/",
    ),
    *("http://public.example:22/", "http://public.example:6379/", "http://public.example:25/", "http://public.example:0/"),
    *(
        "http://",
        "http:///x",
        "//public.example/",
        "public.example",
        "http://public.example\\@127.0.0.1:8080/",
        "http://public.example/\r\nx",
    ),
    *(
        "http://pub lic.example/",
        "http://[::1/",
        "http://%31%32%37.0.0.1:8080/",
        "http://nothing.example/",
        f"http://public.example/{'x' * 3_000}",
    ),
)


@dataclass
class Names:
    """A resolver of our own: each name has a list of addresses, or several lists, told one after another."""

    known: dict[str, list[str]] = field(default_factory=lambda: dict(HOSTS))
    turns: dict[str, list[list[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if turns := self.turns.get(host):
            return turns.pop(0) if len(turns) > 1 else turns[0]
        if host in self.known:
            return self.known[host]
        try:  # what the system's own resolver makes of numbers
            return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]
        except OSError:
            return ["127.0.0.1"] if host.lower().rstrip(".") == "localhost" else []


@pytest.fixture
async def forbidden() -> AsyncIterator[Server]:
    """A server on loopback that nobody is to reach."""
    async with serving() as server:
        yield server


async def fetch(fetcher: Fetcher, url: str, **more: object) -> AnswerFrame:
    return await Outside(fetcher, {}).answer(AskFrame(id=1, what="fetch", url=url, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(len(REFUSED)))
async def test_what_is_not_public_is_refused(number: int, forbidden: Server) -> None:
    url = REFUSED[number]
    for one in (url, url.replace(":8080", f":{forbidden.port}")):
        fetcher = Fetcher(resolve=Names(), time_limit_s=2)
        told = await fetch(fetcher, one, timeout=2_000)
        assert not told.ok, one
    assert forbidden.connections == 0


def test_there_are_as_many_cases_as_were_promised() -> None:
    assert len(set(REFUSED)) >= 60


async def test_a_name_that_changes_between_the_check_and_the_connection_gains_nothing(forbidden: Server, web: Server) -> None:
    names = Names(turns={"rebinding.example": [["127.0.0.1"], ["10.0.0.1"]]})
    fetcher = Fetcher(f"rebinding.example:{web.port}", resolve=names)
    told = await fetch(fetcher, f"http://rebinding.example:{web.port}/")
    assert told.ok  # the address that was checked is the one that was connected to
    assert names.asked == ["rebinding.example"]
    assert web.connections == 1
    changing = Names(turns={"rebinding.example": [[PUBLIC], ["127.0.0.1"]]})
    assert (await Fetcher(resolve=changing).hop("http://rebinding.example/")).address == PUBLIC
    assert not (await fetch(Fetcher(resolve=changing), "http://rebinding.example/")).ok
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:{port}/", "http://loopback.example:{port}/", "//localhost:{port}/", "http://[::1]:{port}/", "file:///x"]
)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_into_the_inside_is_refused(place: str, status: str, forbidden: Server, web: Server) -> None:
    web.replies["/"] = answer("", status=status, location=place.format(port=forbidden.port))
    fetcher = Fetcher(f"door.example:{web.port}", resolve=Names(known={**HOSTS, "door.example": ["127.0.0.1"]}))
    told = await fetch(fetcher, f"http://door.example:{web.port}/", method="POST", body="")
    assert not told.ok
    assert (web.connections, forbidden.connections) == (1, 0)


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, forbidden: Server, web: Server) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, forbidden.url)
    fetcher = Fetcher(f"127.0.0.1:{web.port}", resolve=Names())
    assert (await fetch(fetcher, web.url)).ok
    assert forbidden.connections == 0


async def test_only_hosts_of_the_account_are_asked(web: Server) -> None:
    fetcher = Fetcher(f"127.0.0.1:{web.port},localhost:{web.port}", resolve=Names())
    ask = AskFrame(id=1, what="fetch", url=web.url)
    assert (await Outside(fetcher, {}, ("127.0.0.1",)).answer(ask)).ok
    assert "none of the hosts" in (await Outside(fetcher, {}, ("api.example.com", "*.example.org")).answer(ask)).message


LARGE = 1_048_576


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (answer("x" * LARGE), ""),
        (answer("x" * (LARGE + 1)), f"more than {LARGE} bytes"),
        (answer(gzip.compress(bytes(LARGE * 64)), content_encoding="gzip"), f"more than {LARGE} bytes"),
        (answer(zlib.compress(bytes(LARGE + 1)), content_encoding="deflate"), f"more than {LARGE} bytes"),
        (answer(b"no gzip", content_encoding="gzip"), "cannot be unpacked"),
        (answer(b"x", content_encoding="br"), "was not asked for"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx", "could not be asked"),
        (b"no http\r\n\r\n", "could not be asked"),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (n, b"y" * 4_000) for n in range(100)) + b"\r\n", "could not be asked"),
    ],
)
async def test_an_answer_is_read_within_its_limits(reply: bytes, told: str, web: Server) -> None:
    web.replies["/"] = reply
    frame = await fetch(Fetcher(f"127.0.0.1:{web.port}"), f"{web.url}/")
    assert frame.ok == (not told)
    assert told in frame.message


async def test_a_slow_and_an_endless_answer_end_with_their_time(web: Server) -> None:
    over = asyncio.Event()

    async def never(_: object) -> bytes:
        await over.wait()
        return b""

    web.replies["/"] = never
    began = asyncio.get_running_loop().time()
    frame = await fetch(Fetcher(f"127.0.0.1:{web.port}"), f"{web.url}/", timeout=200)
    assert frame.message == "The request was not answered in time."
    assert asyncio.get_running_loop().time() - began < FETCH_S, "its own time counts, and not the usual one"
    over.set()


async def test_redirects_without_end_are_not_followed(web: Server) -> None:
    web.replies["/"] = answer("", status="302 Found", location="/")
    assert "redirects more than 5 times" in (await fetch(Fetcher(f"127.0.0.1:{web.port}"), f"{web.url}/")).message
    assert len(web.seen) == 6


async def test_a_handler_says_what_becomes_of_redirects(web: Server) -> None:
    web.replies["/"] = answer("", status="303 See Other", location="/there")
    fetcher = Fetcher(f"127.0.0.1:{web.port}")
    manual = await fetch(fetcher, f"{web.url}/", redirect="manual")
    assert (manual.status, dict(manual.headers)["location"]) == (303, "/there")
    assert "`redirect`" in (await fetch(fetcher, f"{web.url}/", redirect="error")).message
    followed = await fetch(fetcher, f"{web.url}/", method="POST", body="eA==")
    assert (followed.redirected, web.seen[-1].method, web.seen[-1].body) == (True, "GET", b"")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"headers": [(f"x-{n}", "y") for n in range(65)]}, "at most 64 headers"),
        ({"headers": [("x", "y" * 8_193)]}, "8192"),
        ({"headers": [("a b", "y")]}, "name or a value"),
        ({"method": "TRACE"}, "has the methods"),
        ({"method": "POST", "body": "!"}, "could not be read"),
        ({"method": "POST", "body": "eHh4" * 90_000}, "at most 262144 bytes"),
    ],
)
async def test_a_request_is_within_its_limits_whatever_the_sandbox_says(more: dict[str, object], told: str, web: Server) -> None:
    frame = await fetch(Fetcher(f"127.0.0.1:{web.port}"), f"{web.url}/", **more)
    assert told in frame.message
    assert web.connections == 0
