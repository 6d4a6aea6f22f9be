"""Providers by name: the built-in vendors, the endpoints that an installation names, and a client for the current key of each.

Owns names, default models and the clients' lifetimes. Does not own the keys: they come from a function, once per request, and may
change at any time. A crash here loses connections, which are made again.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

from voxbridge.shared.agents.providers import variables
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base
from voxbridge.shared.secrets.provider_keys import KEY_LIMIT

Keys = Callable[[str], Awaitable[str]]
"""Function that returns the API key of a provider by its name, empty if there is none."""

C = TypeVar("C")

LOCAL: Final = "local"
"""Name of the installation's own endpoints, as is the empty name."""

ENDPOINTS_LIMIT: Final = 32


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in provider: its URL, the environment variable that overrides it, and the default models. With an empty model the vendor
    is not asked for that part."""

    url: str
    url_variable: str
    llm: str = ""
    stt: str = ""
    tts: str = ""
    voice: str = ""

    @property
    def base_url(self) -> str:
        """URL of the provider. An empty environment variable counts as unset."""
        return os.environ.get(self.url_variable) or self.url


# Default models, as of 2026-11: OpenAI's are the replacements that its deprecation notices name, gpt-4o-mini-tts is the last speech
# model of /audio/speech (announced to end on 2027-01-06, without a successor there); Gemini's is the one its quickstart uses.
VENDORS: Final[dict[str, Vendor]] = {
    "openai": Vendor(
        url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        llm="gpt-6-luna",
        stt="gpt-transcribe",
        tts="gpt-4o-mini-tts",
        voice="alloy",
    ),
    "anthropic": Vendor(
        url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        llm="claude-sonnet-5",
    ),
    "gemini": Vendor(
        url="https://generativelanguage.googleapis.com/",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        llm="gemini-3.8-flash",
    ),
    "assemblyai": Vendor(
        url="wss://streaming.assemblyai.com",
        url_variable="ASSEMBLYAI_BASE_URL",
        stt="universal-streaming-english",
    ),
    "elevenlabs": Vendor(
        url="wss://api.elevenlabs.io",
        url_variable="ELEVENLABS_BASE_URL",
        tts="eleven_flash_v2_5",
        voice="JBFqnCBsd6RMkjVDRZzb",
    ),
}


def parse(text: str) -> dict[str, str]:
    """Return the endpoints of `VOXBRIDGE_ENDPOINTS`, `name=https://host/v1,other=http://...`, by name. Raises `INVALID_ARGUMENT`."""
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, url = (part.strip() for part in entry.partition("="))
        if re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name) is None:
            raise _invalid("a name is a letter of a-z and up to 31 more of a-z, 0-9 and -", entry)
        if name in VENDORS or name == LOCAL:
            raise _invalid(f"the name {name!r} is built in", entry)
        if name in found:
            raise _invalid(f"the name {name!r} is there twice", entry)
        if re.fullmatch(r"https?://[^\s,@]+", url) is None:
            raise _invalid("a URL begins with http:// or https:// and holds no key", name)
        found[name] = url.rstrip("/")
    if len(found) > ENDPOINTS_LIMIT:
        raise _invalid(f"at most {ENDPOINTS_LIMIT} endpoints are taken", f"{len(found)} entries")
    return found


def _invalid(rule: str, entry: str) -> VoxbridgeError:
    field = "VOXBRIDGE_ENDPOINTS"
    expected = "name=https://host/v1,other=http://..."
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{field}: {rule}. The value given is {entry!r:.80}.", field=field, limit=expected)


async def environment_keys(provider: str) -> str:
    """Return a provider's key from the environment, empty if there is none."""
    return next(filter(None, (os.environ.get(name, "").strip() for name in variables(provider))), "")


async def key_of(provider: str, keys: Keys, *, needed: bool = True) -> str:
    """Return a provider's key, fit to be sent. Raises `PROVIDER_REFUSED` if a needed key is missing, or if the key cannot be valid."""
    key = (await keys(provider)).strip()
    if not key and needed:
        message = f"no key for {provider}; set {variables(provider)[0]} or POST /api/config/keys"
        raise VoxbridgeError(Code.PROVIDER_REFUSED, message, retryable=False)
    if len(key) > KEY_LIMIT or re.fullmatch(r"[!-~]*", key) is None:
        # A header that cannot be sent would be quoted in the client's own error.
        message = f"the key for {provider} has characters that no key has, or more than {KEY_LIMIT}"
        raise VoxbridgeError(Code.PROVIDER_REFUSED, message, retryable=False)
    return key


class Held(Generic[C]):
    """A client and the key it was made with."""

    def __init__(self, key: str, client: C) -> None:
        self.key = key
        self.client = client


class _Made(Generic[C]):
    def __init__(self, key: str, making: asyncio.Future[C]) -> None:
        self.key = key
        self.making = making
        self.users = 0


class KeyedClient(Generic[C]):
    """Client of a provider for its current key. When the key changes, a new client is made, and the old one is closed once its requests
    have ended. `build` runs in a thread: reading the certificates would hold up the loop for tens of ms."""

    def __init__(
        self, provider: str, keys: Keys, build: Callable[[str], C], close: Callable[[C], Awaitable[None]], *, needs_key: bool = True
    ) -> None:
        self._provider = provider
        self._keys = keys
        self._build = build
        self._close = close
        self._needs_key = needs_key
        self._made: _Made[C] | None = None

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Held[C]]:
        """Yield the client, open until the end of the block. Raises `PROVIDER_REFUSED` if there is no key, or no client can be made."""
        key = await key_of(self._provider, self._keys, needed=self._needs_key)
        before = made = self._made
        if made is None or made.key != key:
            made = self._made = _Made(key, asyncio.ensure_future(asyncio.to_thread(self._build, key)))
        made.users += 1
        try:
            if before is not None and before is not made:
                await self._retire(before)
            yield Held(key, await self._client(made))
        finally:
            made.users -= 1
            if made is not self._made:
                await self._retire(made)

    async def close(self) -> None:
        """Close the client, or leave that to the last request that still uses it."""
        made, self._made = self._made, None
        if made is not None:
            await self._retire(made)

    async def _client(self, made: _Made[C]) -> C:
        try:
            return await asyncio.shield(made.making)
        except (OSError, ValueError) as error:
            if self._made is made:
                self._made = None
            message = f"The client of {self._provider} cannot be made: {base.without(made.key, str(error))}"
            raise VoxbridgeError(Code.PROVIDER_REFUSED, message[: base.WORDS_LIMIT], retryable=False) from None

    async def _retire(self, made: _Made[C]) -> None:
        if made.users == 0:
            (client,) = await asyncio.gather(made.making, return_exceptions=True)
            if not isinstance(client, BaseException):
                await self._close(client)


async def no_long_wait(response: Any) -> None:
    """Keep an SDK from a retry if the vendor asks for a longer wait than `RETRY_WAIT_S`: a hook of the SDKs' HTTP clients, which would
    wait as long as they are told."""
    wait = base.retry_after_s(response.headers)
    if wait is not None and wait > base.RETRY_WAIT_S:
        response.headers["x-should-retry"] = "false"
