"""Fetching of URLs from untrusted input, without exposing the private network (SSRF).

Owns the policy: which schemes, ports and addresses are allowed, how many redirects are followed, how much is read and for how long. It
connects to the very address that it checked, so a name that resolves differently the second time gains nothing. Does not own what is done
with the answer. Uses no proxy, cookie or credential of the host.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urljoin

from voxbridge.shared.errors import Code, VoxbridgeError

if TYPE_CHECKING:  # loaded by the first fetch: it takes half a second that a start has not
    import httpx

URL_LIMIT: Final = 2_048
"""Characters of a URL."""
BODY_LIMIT: Final = 256 * 1024
"""Bytes of a body that are read; the rest is left and `Fetched.cut` says so."""
REDIRECT_LIMIT: Final = 5
TIME_LIMIT_S: Final = 10.0
"""Seconds of a whole fetch: all names, connections, redirects and the body."""
CONCURRENT_LIMIT: Final = 16
"""Fetches of a process at a time."""
PORTS: Final = frozenset({80, 443, 8000, 8080, 8443})
"""Ports that are connected to. Others belong to services that do not expect HTTP, and some would obey what is sent to them."""
AGENT: Final = "voxbridge"

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NEVER: Final = tuple(
    (ipaddress.ip_network(network), name)
    for network, name in (
        ("0.0.0.0/8", "an unspecified address"),
        ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
        ("100.100.100.200/32", "a metadata address"),
        ("192.0.0.0/24", "a protocol address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("::/128", "an unspecified address"),
        ("::ffff:0:0/96", "an IPv4 address in IPv6 form"),
        ("::ffff:0:0:0/96", "an IPv4 address in IPv6 form"),
        ("64:ff9b::/96", "an IPv4 address in NAT64 form"),
        ("64:ff9b:1::/48", "an IPv4 address in NAT64 form"),
        ("100::/64", "an address that discards"),
        ("2001::/32", "an IPv4 address in Teredo form"),
        ("2001:db8::/32", "an address for documentation"),
        ("2002::/16", "an IPv4 address in 6to4 form"),
        ("3fff::/20", "an address for documentation"),
        ("fd00:ec2::/32", "a metadata address"),
        ("fe80::/10", "a link-local address"),
        ("ff00::/8", "a multicast address"),
    )
)
"""Networks that are connected to for nobody."""
_PRIVATE: Final = tuple(
    (ipaddress.ip_network(network), name)
    for network, name in (
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address of a provider's own network"),
        ("127.0.0.0/8", "a loopback address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fec0::/10", "a private address"),
    )
)
"""Networks that are connected to for hosts that the setting `VOXBRIDGE_FETCH_HOSTS` names."""
_LAST_IPV4_FORM: Final = ipaddress.ip_network("::/96")

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""A way to resolve a host for a port to addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer to a fetch. `url` is the last one asked, `redirects` are those before it, `headers` have lower-case names."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    redirects: tuple[str, ...]
    address: str
    elapsed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to one server: at most `limit` bytes of the answer's body, unpacked, are read."""

    method: str
    headers: Mapping[str, str]
    content: bytes | None = None
    limit: int = BODY_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of one server, whatever its status. `cut`: its body was longer than the limit."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A URL that was checked: where to connect, and what the server there is to be asked for."""

    url: httpx.URL
    host: str
    port: int
    address: str

    @property
    def pinned(self) -> httpx.URL:
        """The URL with the address that was checked in place of the host."""
        return self.url.copy_with(host=self.address)

    @property
    def authority(self) -> str:
        """The host as the server is told of it, with the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.url.scheme] else f"{host}:{self.port}"


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host by the resolver of this machine."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Fetcher:
    """Fetches within the policy. Holds no connection between fetches."""

    def __init__(
        self,
        hosts: str = "",
        *,
        resolve: Resolve = resolve,
        trust: ssl.SSLContext | None = None,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        """Take hosts (`name` or `name:port`, separated by commas) whose addresses may be private, and whose ports may be any that is
        named. `trust` holds the certificates to believe, by default those of certifi or of `SSL_CERT_FILE`."""
        self._hosts = frozenset(part.strip().lower() for part in hosts.split(",") if part.strip())
        self._resolve = resolve
        self._trust = trust
        self._time_limit_s = time_limit_s
        self._running = 0

    async def fetch(self, url: str, *, method: Literal["GET", "HEAD"] = "GET", accept: str = "*/*") -> Fetched:
        """Ask for a URL and return the answer, whatever its status.

        Raises `INVALID_ARGUMENT` for a URL that cannot be asked for, `PERMISSION_DENIED` for one that may not be, `UNAVAILABLE` when nobody
        answers, `TIMED_OUT` after the time limit, `OVERLOADED` beyond `CONCURRENT_LIMIT`.
        """
        if self._running >= CONCURRENT_LIMIT:
            raise VoxbridgeError(Code.OVERLOADED, f"{CONCURRENT_LIMIT} fetches are running; try again in a moment.", limit=CONCURRENT_LIMIT)
        self._running += 1
        try:
            async with asyncio.timeout(self._time_limit_s):
                await asyncio.to_thread(importlib.import_module, "httpx")
                return await self._follow(url, method, accept)
        except TimeoutError:
            message = f"{_short(url)} was not answered within {self._time_limit_s:g} s."
            raise VoxbridgeError(Code.TIMED_OUT, message, field="url", limit=self._time_limit_s) from None
        finally:
            self._running -= 1

    async def check(self, url: str) -> str:
        """Return the address that a fetch of the URL would connect to. Raises as `fetch` does."""
        await asyncio.to_thread(importlib.import_module, "httpx")
        return (await self.hop(url)).address

    async def _follow(self, url: str, method: str, accept: str) -> Fetched:
        began = time.monotonic()
        before: list[str] = []
        trust = await self.trusted()
        while True:
            hop = await self.hop(url)
            told = await self.ask(hop, Question(method=method, headers={"accept": accept}), trust)
            headers = {name.lower(): value for name, value in told.headers}
            location = headers.get("location")
            if told.status not in REDIRECTS or not location:
                return Fetched(
                    url=str(hop.url),
                    status=told.status,
                    headers=headers,
                    body=told.body,
                    cut=told.cut,
                    redirects=tuple(before),
                    address=hop.address,
                    elapsed_ms=round((time.monotonic() - began) * 1_000),
                )
            if len(before) >= REDIRECT_LIMIT:
                message = f"{_short(before[0])} redirects more than {REDIRECT_LIMIT} times."
                raise VoxbridgeError(Code.UNAVAILABLE, message, field="url", limit=REDIRECT_LIMIT, retryable=False)
            before.append(str(hop.url))
            url = joined(str(hop.url), location)

    async def trusted(self) -> ssl.SSLContext:
        """Return the certificates that are believed."""
        if self._trust is not None:
            return self._trust
        httpx = await asyncio.to_thread(importlib.import_module, "httpx")
        made: ssl.SSLContext = await asyncio.to_thread(httpx.create_ssl_context)
        self._trust = made
        return made

    async def ask(self, hop: Hop, question: Question, trust: ssl.SSLContext) -> Reply:
        """Ask the server at the checked address, and follow no redirect. Raises `UNAVAILABLE`."""
        import httpx

        headers = {"user-agent": AGENT, **question.headers}
        headers |= {"host": hop.authority, "accept-encoding": "identity", "connection": "close"}
        # What is named here is compared with the certificate, in place of the address in the URL.
        extensions = {"sni_hostname": hop.host} if hop.url.scheme == "https" else {}
        transport = httpx.AsyncHTTPTransport(verify=trust, trust_env=False, limits=httpx.Limits(max_connections=1))
        request = httpx.Request(question.method, hop.pinned, headers=headers, content=question.content, extensions=extensions)
        try:
            async with transport:
                response = await transport.handle_async_request(request)
                try:
                    told = tuple(response.headers.multi_items())
                    body, cut = (b"", False) if question.method == "HEAD" else await _body(response, question.limit)
                finally:
                    await response.aclose()
                return Reply(status=response.status_code, reason=response.reason_phrase, headers=told, body=body, cut=cut)
        except (httpx.HTTPError, httpx.StreamError, OSError, UnicodeError) as error:
            why = str(error) or type(error).__name__
            message = f"{hop.authority} could not be asked: {why[:200]}."
            raise VoxbridgeError(Code.UNAVAILABLE, message, field="url") from error

    async def hop(self, text: str) -> Hop:
        """Check a URL and every address of its host. Raises as `fetch` does."""
        url, host, port = _parsed(text)
        named = bool({host, f"{host}:{port}"} & self._hosts)
        if port not in PORTS and f"{host}:{port}" not in self._hosts:
            allowed = ", ".join(str(one) for one in sorted(PORTS))
            message = f"Port {port} is not asked; the ports are {allowed}. `VOXBRIDGE_FETCH_HOSTS` names hosts with others."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="url")
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise VoxbridgeError(Code.UNAVAILABLE, f"The host {host[:100]} could not be found.", field="url") from error
        if not found:
            raise VoxbridgeError(Code.UNAVAILABLE, f"The host {host[:100]} has no address.", field="url")
        for address in found:
            if why := forbidden(address, named=named):
                message = f"{host[:100]} is not asked: it has {why}."
                raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="url")
        return Hop(url=url, host=host, port=port, address=found[0])


def forbidden(address: str, *, named: bool = False) -> str:
    """Return what forbids connecting to an address, or nothing. Private addresses are permitted for a `named` host."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "an address that cannot be read"
    if "%" in address:
        return "a link-local address"
    for network, name in (*_NEVER, *_PRIVATE):
        if parsed in network and not (named and (network, name) in _PRIVATE):
            return name
    if named and any(parsed in network for network, _ in _PRIVATE):
        return ""
    if parsed in _LAST_IPV4_FORM:
        return "an IPv4 address in IPv6 form"
    return "" if parsed.is_global else "an address that is not public"


def _parsed(text: str) -> tuple[httpx.URL, str, int]:
    """Return a URL without its fragment, its host in lower case and its port."""
    import httpx

    if len(text) > URL_LIMIT:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"A URL has at most {URL_LIMIT} characters.", field="url", limit=URL_LIMIT)
    if any(ord(character) <= ord(" ") or character in '\\<>"^`{|}\x7f' for character in text):
        raise _unreadable(text, "it has a space, a backslash or another character that a URL has not")
    try:
        url = httpx.URL(text).copy_with(fragment=None)
        host, port = url.raw_host.decode("ascii").lower(), url.port
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _unreadable(text, "its parts cannot be told apart") from error
    if url.scheme not in _DEFAULT_PORTS:
        raise _unreadable(text, "it begins with neither http:// nor https://")
    if not host or "%" in host:
        raise _unreadable(text, "it names no host")
    if url.userinfo or "@" in text.split("://", 1)[1].partition("/")[0]:
        raise VoxbridgeError(Code.PERMISSION_DENIED, "A URL with a user or a password is not asked; leave them out.", field="url")
    if port is not None and not 0 < port < 65_536:
        raise _unreadable(text, f"{port} is not a port")
    return url, host, port or _DEFAULT_PORTS[url.scheme]


def joined(base: str, location: str) -> str:
    """Return the URL that a redirect leads to. Raises `INVALID_ARGUMENT`."""
    try:
        return urljoin(base, location[: URL_LIMIT + 1])
    except ValueError as error:
        raise _unreadable(location, "a redirect led to it, and its parts cannot be told apart") from error


async def _body(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of a body as its author wrote it, and whether there were more."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "deflate"):
        message = f"The answer is encoded as {encoding[:40]!r}, which was not asked for and is not read."
        raise VoxbridgeError(Code.UNAVAILABLE, message, field="url", retryable=False)
    unpack: Any = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if encoding in ("gzip", "deflate") else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        if unpack is None:
            body += chunk
        else:
            try:
                body += unpack.decompress(chunk, limit + 1 - len(body))
            except zlib.error as error:
                message = "The answer says that it is compressed, and cannot be unpacked."
                raise VoxbridgeError(Code.UNAVAILABLE, message, field="url", retryable=False) from error
        if len(body) > limit:
            return bytes(body[:limit]), True
    return bytes(body), False


def _unreadable(text: str, why: str) -> VoxbridgeError:
    message = f"{_short(text)} is not a URL that can be asked: {why}."
    return VoxbridgeError(Code.INVALID_ARGUMENT, message, field="url")


def _short(url: str) -> str:
    return repr(url if len(url) <= 100 else f"{url[:100]}…")
