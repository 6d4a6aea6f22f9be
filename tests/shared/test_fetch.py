"""The fetch policy, with real servers on loopback and a resolver of the test."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.eventually import BOUND_S
from tests.fakes.tls import issue
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import (
    BODY_LIMIT,
    CONCURRENT_LIMIT,
    PORTS,
    REDIRECT_LIMIT,
    URL_LIMIT,
    Fetcher,
    forbidden,
)

Answer = Callable[[str, dict[str, str], asyncio.StreamWriter], Awaitable[None]]


class Server:
    """An HTTP server on loopback that answers as the test says, and keeps what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.names: list[str | None] = []
        self.readers: list[asyncio.StreamReader] = []
        self.port = 0
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.readers.append(reader)
        try:
            line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines if one)}
            path = line.split()[1]
            self.asked.append((path, headers))
            await self._answer(path, headers, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: server.names.append(name)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


def page(body: bytes = b"hello", status: str = "200 OK", headers: str = "") -> Answer:
    async def answer(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return answer


def to(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that has one answer."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return list(addresses)

    return resolve


def inside(server: Server, **others: str) -> Fetcher:
    """A fetcher that may ask the test's server under the name `inside`, with a resolver of ours."""

    async def resolve(host: str, _port: int) -> list[str]:
        return [others.get(host.split(".")[0], "127.0.0.1")]

    return Fetcher(f"inside:{server.port}", resolve=resolve)


async def refused(fetching: Awaitable[object]) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as raised:
        await fetching
    return raised.value


ADDRESSES = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.0.1"),
    *("100.64.0.1", "100.127.255.255", "100.100.100.200", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8"),
    *("64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378::1", "3fff::1", "not an address", ""),
]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_name_with_such_an_address_is_not_asked(address: str) -> None:
    error = await refused(Fetcher(resolve=to(address)).fetch("http://somewhere.example/"))
    assert error.code == Code.PERMISSION_DENIED
    assert "somewhere.example" in error.message


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.32.0.1", "192.169.0.1", "2606:4700::1111", "2a00:1450::1"]
)
async def test_a_public_address_is_one_to_connect_to(address: str) -> None:
    assert await Fetcher(resolve=to(address)).check("https://somewhere.example/") == address


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://localhost/"),
        *("http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[fd00:ec2::254]/"),
        *("http://169.254.169.254/latest/meta-data/", "https://10.1.2.3:8443/", "http://0/", "http://0.0.0.0:8000/"),
        *("http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://１２７.０.０.１/", "HTTP://LOCALHOST/"),
    ],
)
async def test_an_address_in_a_url_is_refused_in_each_of_its_spellings(url: str) -> None:
    error = await refused(Fetcher().fetch(url))
    assert error.code in (Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", Code.INVALID_ARGUMENT),
        ("ftp://example.org/", Code.INVALID_ARGUMENT),
        ("gopher://example.org:6379/_FLUSHALL", Code.INVALID_ARGUMENT),
        ("javascript:alert(1)", Code.INVALID_ARGUMENT),
        ("data:text/plain,hello", Code.INVALID_ARGUMENT),
        ("//example.org/", Code.INVALID_ARGUMENT),
        ("example.org", Code.INVALID_ARGUMENT),
        ("", Code.INVALID_ARGUMENT),
        ("http://", Code.INVALID_ARGUMENT),
        ("http:///path", Code.INVALID_ARGUMENT),
        ("http://exa mple.org/", Code.INVALID_ARGUMENT),
        ("http://example.org\\@127.0.0.1/", Code.INVALID_ARGUMENT),
        ("http://example.org/\r\nHost: other", Code.INVALID_ARGUMENT),
        ("http://example.org:99999/", Code.INVALID_ARGUMENT),
        ("http://example.org:0/", Code.INVALID_ARGUMENT),
        ("http://[fe80::1%25eth0]/", Code.INVALID_ARGUMENT),
        ("http://[::1", Code.INVALID_ARGUMENT),
        ("http://user:secret@example.org/", Code.PERMISSION_DENIED),
        ("http://user@example.org/", Code.PERMISSION_DENIED),
        ("http://@example.org/", Code.PERMISSION_DENIED),
        ("http://example.org:22/", Code.PERMISSION_DENIED),
        ("http://example.org:25/", Code.PERMISSION_DENIED),
        ("http://example.org:4222/", Code.PERMISSION_DENIED),
        ("http://example.org:6379/", Code.PERMISSION_DENIED),
        ("http://example.org/" + "a" * URL_LIMIT, Code.INVALID_ARGUMENT),
    ],
)
async def test_a_url_that_is_none_of_the_web_is_refused(url: str, code: Code) -> None:
    error = await refused(Fetcher(resolve=to("8.8.8.8")).fetch(url))
    assert (error.code, error.field) == (code, "url")
    assert "secret" not in error.message


async def test_a_url_at_the_limit_of_its_length_is_taken() -> None:
    url = "http://example.org/".ljust(URL_LIMIT, "a")
    assert await Fetcher(resolve=to("8.8.8.8")).check(url) == "8.8.8.8"
    assert all([await Fetcher(resolve=to("8.8.8.8")).check(f"http://example.org:{port}/") for port in PORTS])


async def test_one_forbidden_address_among_several_is_enough() -> None:
    error = await refused(Fetcher(resolve=to("8.8.8.8", "10.0.0.1")).fetch("http://mixed.example/"))
    assert error.code == Code.PERMISSION_DENIED


async def test_a_name_without_an_address_is_not_found() -> None:
    assert (await refused(Fetcher(resolve=to()).fetch("http://empty.example/"))).code == Code.UNAVAILABLE
    assert (await refused(Fetcher().fetch("http://nothing.invalid/"))).code == Code.UNAVAILABLE


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    """A name that answers with another address at the second question gains nothing: it is asked once for each connection."""
    questions: list[str] = []

    async def rebinding(host: str, _port: int) -> list[str]:
        questions.append(host)
        return ["127.0.0.1"] if len(questions) == 1 else ["10.255.255.1"]

    async with serving(page()) as server:
        host = f"rebinds.example:{server.port}"
        fetched = await Fetcher(host, resolve=rebinding, time_limit_s=5).fetch(f"http://{host}/here?a=b#part")
    assert (fetched.body, fetched.status, fetched.address) == (b"hello", 200, "127.0.0.1")
    assert questions == ["rebinds.example"]
    path, headers = server.asked[0]
    assert (path, headers["host"]) == ("/here?a=b", host)


async def test_a_name_that_turns_private_between_redirects_is_refused() -> None:
    questions: list[str] = []

    async def rebinding(host: str, _port: int) -> list[str]:
        questions.append(host)
        return ["127.0.0.1"] if len(questions) == 1 else ["169.254.169.254"]

    async with serving(page(status="302 Found", headers="Location: /again\r\n")) as server:
        host = f"rebinds.example:{server.port}"
        error = await refused(Fetcher(host, resolve=rebinding).fetch(f"http://{host}/"))
    assert (error.code, len(server.asked)) == (Code.PERMISSION_DENIED, 1)


@pytest.mark.parametrize(
    "location",
    [
        *("http://169.254.169.254/latest/", "http://127.0.0.1/", "//127.0.0.1/", "http://[::1]/", "http://[::ffff:10.0.0.1]/"),
        *("file:///etc/passwd", "ftp://example.org/", "http://user:pass@elsewhere.example/", "http://private.example/"),
        *("http://elsewhere.example:6379/", "javascript:alert(1)", "http://[", "https://2130706433/"),
    ],
)
async def test_a_redirect_to_what_may_not_be_asked_is_not_followed(location: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        if host == "inside":
            return ["127.0.0.1"]
        return ["10.0.0.1"] if host == "private.example" else await to(host.strip("[]"))(host, port)

    async with serving(page(status="302 Found", headers=f"Location: {location}\r\n")) as server:
        error = await refused(Fetcher(f"inside:{server.port}", resolve=resolve).fetch(f"http://inside:{server.port}/"))
    assert error.code in (Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT)
    assert len(server.asked) == 1


async def test_redirects_are_followed_up_to_a_limit_and_named() -> None:
    async def count_down(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        left = int(path.strip("/"))
        status, more = ("302 Found", f"Location: {left - 1}\r\n") if left else ("200 OK", "")
        await page(b"done", status, more)(path, {}, writer)

    async with serving(count_down) as server:
        start = f"http://inside:{server.port}/"
        fetched = await inside(server).fetch(f"{start}{REDIRECT_LIMIT}")
        error = await refused(inside(server).fetch(f"{start}{REDIRECT_LIMIT + 1}"))
    assert (fetched.body, fetched.url) == (b"done", f"{start}0")
    assert fetched.redirects == tuple(f"{start}{left}" for left in range(REDIRECT_LIMIT, 0, -1))
    assert (error.code, error.limit) == (Code.UNAVAILABLE, REDIRECT_LIMIT)


async def test_a_body_is_read_up_to_its_limit() -> None:
    async with serving(page(b"x" * BODY_LIMIT)) as server:
        whole = await inside(server).fetch(f"http://inside:{server.port}/")
    async with serving(page(b"x" * (BODY_LIMIT + 1))) as server:
        cut = await inside(server).fetch(f"http://inside:{server.port}/")
    assert (len(whole.body), whole.cut) == (BODY_LIMIT, False)
    assert (len(cut.body), cut.cut) == (BODY_LIMIT, True)


async def test_a_body_without_an_end_is_left() -> None:
    async def flood(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with serving(flood) as server:
        fetched = await inside(server).fetch(f"http://inside:{server.port}/")
    assert (len(fetched.body), fetched.cut) == (BODY_LIMIT, True)


async def test_a_compressed_bomb_is_unpacked_no_further_than_the_limit() -> None:
    packed = gzip.compress(b"\0" * 50_000_000)
    async with serving(page(packed, headers="Content-Encoding: gzip\r\n")) as server:
        fetched = await inside(server).fetch(f"http://inside:{server.port}/")
    assert (len(fetched.body), fetched.cut) == (BODY_LIMIT, True)
    async with serving(page(gzip.compress(b"small"), headers="Content-Encoding: gzip\r\n")) as server:
        assert (await inside(server).fetch(f"http://inside:{server.port}/")).body == b"small"


@pytest.mark.parametrize(("encoding", "told"), [("br", "'br'"), ("gzip, gzip", "'gzip, gzip'"), ("gzip", "cannot be unpacked")])
async def test_an_encoding_that_is_not_read_is_said(encoding: str, told: str) -> None:
    async with serving(page(b"not packed", headers=f"Content-Encoding: {encoding}\r\n")) as server:
        error = await refused(inside(server).fetch(f"http://inside:{server.port}/"))
    assert (error.code, told in error.message) == (Code.UNAVAILABLE, True)


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], ids=["nothing", "headers", "body"]
)
async def test_a_server_that_stops_in_the_middle_is_left_at_the_time_limit(first: bytes) -> None:
    left = asyncio.Event()

    async def stall(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await writer.drain()
        with suppress(ConnectionError):  # a client that leaves what was sent unread resets the connection
            await server.readers[0].read()
        left.set()

    async with serving(stall) as server:
        fetcher = Fetcher(f"inside:{server.port}", resolve=to("127.0.0.1"), time_limit_s=1.0)  # enough for the server to have the request
        error = await refused(fetcher.fetch(f"http://inside:{server.port}/"))
        assert (error.code, error.limit) == (Code.TIMED_OUT, 1.0)
        await asyncio.wait_for(left.wait(), BOUND_S)


@pytest.mark.parametrize("answer", [b"not HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000, b"HTTP/1.1 99999 no\r\n\r\n", b""])
async def test_an_answer_that_is_no_http_is_said(answer: bytes) -> None:
    async def send(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    async with serving(send) as server:
        error = await refused(inside(server).fetch(f"http://inside:{server.port}/"))
    assert error.code == Code.UNAVAILABLE


async def test_nobody_there_is_said(unused_tcp_port: int) -> None:
    host = f"inside:{unused_tcp_port}"
    error = await refused(Fetcher(host, resolve=to("127.0.0.1")).fetch(f"http://{host}/"))
    assert (error.code, host in error.message) == (Code.UNAVAILABLE, True)


async def test_a_certificate_is_compared_with_the_name_and_not_with_the_address(tmp_path: Path) -> None:
    authority, tls = issue(tmp_path)
    trust = ssl.create_default_context(cafile=authority)
    async with serving(page(b"private"), tls) as server:
        hosts = f"localhost:{server.port},other.example:{server.port}"
        fetcher = Fetcher(hosts, resolve=to("127.0.0.1"), trust=trust)
        fetched = await fetcher.fetch(f"https://localhost:{server.port}/")
        wrong = await refused(fetcher.fetch(f"https://other.example:{server.port}/"))
        unknown = await refused(Fetcher(hosts, resolve=to("127.0.0.1")).fetch(f"https://localhost:{server.port}/"))
    assert fetched.body == b"private"
    assert server.names[:2] == ["localhost", "other.example"]
    assert (wrong.code, unknown.code) == (Code.UNAVAILABLE, Code.UNAVAILABLE)
    assert "certificate" in wrong.message.lower()


async def test_settings_of_the_host_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with serving(page(headers="Set-Cookie: a=b\r\n")) as server:
        fetcher = inside(server)
        await fetcher.fetch(f"http://inside:{server.port}/")
        await fetcher.fetch(f"http://inside:{server.port}/")
    assert all(not {"cookie", "authorization"} & set(headers) for _, headers in server.asked)


async def test_a_named_host_may_be_private_and_nothing_worse() -> None:
    assert await Fetcher("wiki.example", resolve=to("10.0.0.7")).check("http://wiki.example/") == "10.0.0.7"
    assert await Fetcher("wiki.example:9000", resolve=to("fd12::7")).check("http://WIKI.example:9000/") == "fd12::7"
    for address in ("169.254.169.254", "::ffff:10.0.0.1", "0.0.0.0", "224.0.0.1", "fe80::1", "fd00:ec2::254"):
        assert forbidden(address, named=True)
    other_port = await refused(Fetcher("wiki.example", resolve=to("10.0.0.7")).fetch("http://wiki.example:9000/"))
    assert other_port.code == Code.PERMISSION_DENIED
    other_name = await refused(Fetcher("wiki.example", resolve=to("10.0.0.7")).fetch("http://not.wiki.example/"))
    assert other_name.code == Code.PERMISSION_DENIED


async def test_only_so_many_fetches_run_at_a_time() -> None:
    release = asyncio.Event()

    async def wait(path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await page()(path, headers, writer)

    async with serving(wait) as server:
        fetcher = inside(server)
        running = [asyncio.create_task(fetcher.fetch(f"http://inside:{server.port}/{one}")) for one in range(CONCURRENT_LIMIT)]
        await asyncio.sleep(0)
        error = await refused(fetcher.fetch(f"http://inside:{server.port}/"))
        release.set()
        answers = await asyncio.gather(*running)
        assert (error.code, error.limit) == (Code.OVERLOADED, CONCURRENT_LIMIT)
        assert {one.status for one in answers} == {200}
        assert (await fetcher.fetch(f"http://inside:{server.port}/", method="HEAD")).body == b""
