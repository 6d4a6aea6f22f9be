"""A request of a handler, sent by the tools service: checked, with the values of secrets in their places, redirects followed by hand.

Owns where a value may go: in a header, the query or the body, by the rule of its secret, to a host that the rule names, on every hop. Does
not own which addresses are connected to (`voxbridge.shared.fetch`). Nothing lasts here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, quote_plus, urlsplit

import msgspec

from voxbridge.services.tools.sandbox.masking import Masks
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import REDIRECT_LIMIT, REDIRECTS, Fetcher, Hop, Question, Reply, joined
from voxbridge.shared.platform.secrets import Opened, may_go

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
HEADERS_LIMIT: Final = 64
HEADER_LIMIT: Final = 8_192
"""Bytes of a header's value."""

REQUEST_LIMIT: Final = 262_144
"""Bytes of a request's body."""

ANSWER_LIMIT: Final = 1_048_576
"""Bytes of an answer's body, unpacked."""

_NEVER: Final = re.compile(
    r"host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|accept-encoding|via|forwarded|proxy-.*|x-forwarded-.*"
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OF_ORIGIN: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
STAND_IN: Final = re.compile(r"vxs_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as a handler wrote it, with stand-ins where values are to be."""

    url: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    redirect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of the last server that was asked, masked."""

    url: str
    redirected: bool
    reply: Reply


class Requests:
    """The requests of one call. `secrets` are by stand-in; `hosts` those that the account may ask, none for any."""

    def __init__(self, fetcher: Fetcher, secrets: Mapping[str, Opened], masks: Masks, hosts: tuple[str, ...]) -> None:
        self._fetcher = fetcher
        self._secrets = secrets
        self._masks = masks
        self._hosts = hosts

    async def send(self, request: Request) -> Answer:
        """Send a request and follow its redirects. Raises `PERMISSION_DENIED`, `INVALID_ARGUMENT`, `TOO_LARGE` and `UNAVAILABLE`."""
        request = _checked(request)
        trust = await self._fetcher.trusted()
        for followed in range(REDIRECT_LIMIT + 1):
            hop = await self._hop(request.url)
            question = self._question(request, hop)
            reply = await self._fetcher.ask(self._with_query(request.url, hop), question, trust)
            location = next((value for name, value in reply.headers if name.lower() == "location"), "")
            if reply.status not in REDIRECTS or not location or request.redirect == "manual":
                if reply.cut:
                    message = f"The answer has more than {ANSWER_LIMIT} bytes."
                    raise VoxbridgeError(Code.TOO_LARGE, message, field="body", limit=ANSWER_LIMIT)
                return Answer(url=request.url, redirected=followed > 0, reply=self._masked(reply))
            if request.redirect == "error":
                raise VoxbridgeError(
                    Code.UNAVAILABLE, 'The server redirects, and `redirect` is "error".', field="redirect", retryable=False
                )
            request = self._redirected(request, reply.status, location)
        message = f"The server redirects more than {REDIRECT_LIMIT} times."
        raise VoxbridgeError(Code.UNAVAILABLE, message, limit=REDIRECT_LIMIT, retryable=False)

    async def _hop(self, url: str) -> Hop:
        """Check a URL, without what stands in it for a secret."""
        hop = await self._fetcher.hop(url)
        if self._hosts and not any(hop.host == one or (one.startswith("*.") and hop.host.endswith(one[1:])) for one in self._hosts):
            message = f"{hop.host[:100]} is none of the hosts that handlers of this account may ask."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="url")
        return hop

    def _question(self, request: Request, hop: Hop) -> Question:
        """Put values in the places of their stand-ins. Raises `PERMISSION_DENIED` naming the secret and what it may not."""
        headers = {name: self._header(name, value, hop) for name, value in request.headers}
        content = None if request.body is None else self._body(request, hop)
        return Question(method=request.method, headers=headers, content=content, limit=ANSWER_LIMIT)

    def _header(self, name: str, value: str, hop: Hop) -> str:
        scheme, _, rest = value.partition(" ")
        if scheme.lower() == "basic" and name == "authorization" and (inner := _decoded(rest)) is not None and STAND_IN.search(inner):
            return f"{scheme} {base64.b64encode(self._header(name, inner, hop).encode()).decode()}"

        def exchanged(found: re.Match[str]) -> str:
            secret = self._allowed(found.group(), hop)
            if secret is None:
                return found.group()
            if name not in secret.rule.headers:
                known = ", ".join(secret.rule.headers) or "none"
                raise _denied(f"The secret {secret.name} may not go in the header `{name}`; its rule names {known}.")
            return secret.value

        return STAND_IN.sub(exchanged, value)

    def _with_query(self, url: str, hop: Hop) -> Hop:
        """Return where to ask with the values in the query. Raises `PERMISSION_DENIED` for a stand-in elsewhere in the URL."""
        if not STAND_IN.search(url):
            return hop
        parts = urlsplit(url)
        if STAND_IN.search(url.replace(parts.query, "", 1) if parts.query else url):
            raise _denied("A secret goes in a header or, where its rule says so, in the query or the body; not in the path of a URL.")

        def exchanged(found: re.Match[str]) -> str:
            secret = self._allowed(found.group(), hop)
            if secret is None:
                return found.group()
            if not secret.rule.query:
                raise _denied(f"The secret {secret.name} may not go in the query of a URL.")
            return quote(secret.value, safe="")

        return replace(hop, url=hop.url.copy_with(query=STAND_IN.sub(exchanged, parts.query).encode()))

    def _body(self, request: Request, hop: Hop) -> bytes:
        body = request.body or b""
        kind = next((value for name, value in request.headers if name == "content-type"), "").lower()

        def exchanged(found: re.Match[str]) -> str:
            secret = self._allowed(found.group(), hop)
            if secret is None:
                return found.group()
            if not secret.rule.body:
                raise _denied(f"The secret {secret.name} may not go in the body of a request.")
            if "json" in kind:
                return msgspec.json.encode(secret.value).decode()[1:-1]
            return quote_plus(secret.value) if "x-www-form-urlencoded" in kind else secret.value

        return STAND_IN.sub(exchanged, body.decode("latin-1")).encode("latin-1")

    def _allowed(self, stand_in: str, hop: Hop) -> Opened | None:
        """Return the secret of a stand-in, None for one of another call. Raises `PERMISSION_DENIED` where it may not go to the host."""
        secret = self._secrets.get(stand_in)
        if secret is not None and not may_go(secret.rule, hop.url.scheme, hop.host, hop.port):
            named = ", ".join(secret.rule.hosts) or "no host"
            raise _denied(f"The secret {secret.name} may not go to {hop.url.scheme}://{hop.authority[:100]}; its rule names {named}.")
        return secret

    def _redirected(self, request: Request, status: int, location: str) -> Request:
        """Return the request to the place that a redirect names: to another origin without what was for this one."""
        url = joined(request.url, location)
        method, body, headers = request.method, request.body, request.headers
        if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
            method, body = "GET", None
            headers = tuple((name, value) for name, value in headers if not name.startswith("content-"))
        if _origin(url) != _origin(request.url):
            if self._masks.holds(url):
                raise _denied("The server redirects to another host with a secret in the URL; it was not followed.")
            if body is not None and STAND_IN.search(body.decode("latin-1")):
                raise _denied("The server redirects a request with a secret in its body to another host; it was not followed.")
            headers = tuple(
                (name, value) for name, value in headers if name not in _OF_ORIGIN and not STAND_IN.search(value) and name != "origin"
            )
        elif self._masks.holds(url):
            url = self._masks.text(url)  # the server asks itself with what it was sent; it is not sent again outside its place
        return replace(request, url=url, method=method, body=body, headers=headers)

    def _masked(self, reply: Reply) -> Reply:
        headers = tuple((self._masks.text(name), self._masks.text(value)) for name, value in reply.headers)
        return replace(reply, reason=self._masks.text(reply.reason), headers=headers, body=self._masks.data(reply.body))


def _checked(request: Request) -> Request:
    if request.method not in METHODS:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"ctx.fetch has the methods {', '.join(sorted(METHODS))}.", field="method")
    if request.body is not None and len(request.body) > REQUEST_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"A request's body has at most {REQUEST_LIMIT} bytes.", field="body", limit=REQUEST_LIMIT)
    if len(request.headers) > HEADERS_LIMIT:
        raise VoxbridgeError(Code.TOO_LARGE, f"A request has at most {HEADERS_LIMIT} headers.", field="headers", limit=HEADERS_LIMIT)
    headers: dict[str, str] = {}
    for given, value in request.headers:
        name = given.lower()
        if not _NAME.fullmatch(given) or not _VALUE.fullmatch(value) or len(value) > HEADER_LIMIT:
            message = f"The header {given[:64]!r} has a name or a value that is none, or more than {HEADER_LIMIT} bytes."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="headers", limit=HEADER_LIMIT)
        if _NEVER.fullmatch(name):
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The header `{name[:64]}` is the platform's own to set.", field="headers")
        headers[name] = value
    return replace(request, headers=tuple(headers.items()))


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, (parts.hostname or "").lower(), parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", url, None


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _denied(message: str) -> VoxbridgeError:
    return VoxbridgeError(Code.PERMISSION_DENIED, message, field="secrets")
