"""OpenAI Realtime behind the interface of realtime models: the vendor, its address and its keys. It has no handles: a new connection is
told the history.

Owns how a connection is opened. `connection` owns what goes over it, and `core.realtime` decides whether to open another. A crash loses
the connections.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final, cast

import openai
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.websocket_connection_options import WebSocketConnectionOptions
from websockets.exceptions import InvalidStatus, WebSocketException

from voxbridge.services.voice.providers.realtime.base import Connection, ConnectionLost, Setup
from voxbridge.services.voice.providers.realtime.openai import payloads as shapes
from voxbridge.services.voice.providers.realtime.openai.connection import OpenAIConnection
from voxbridge.services.voice.providers.realtime.openai.wire import Wire
from voxbridge.services.voice.providers.realtime.websocket import PONG_S, ProviderSocket, proxied

BASE_URL: Final = "https://api.openai.com/v1"
CONNECT_S: Final = 5.0
"""Seconds for opening the socket."""

SETUP_S: Final = 5.0
"""Seconds for setting up the session and its history."""

MESSAGE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of one event; a longer one ends the connection (1009)."""


class OpenAIRealtime:
    """The vendor. `keys` returns the key of a provider by name, empty if there is none; it is called for each connection."""

    def __init__(self, keys: Callable[[str], Awaitable[str]]) -> None:
        self._keys = keys
        # The SDK would use an empty OPENAI_BASE_URL as it is. Each connection replaces this key with its own.
        self._client = AsyncOpenAI(api_key="none", base_url=os.environ.get("OPENAI_BASE_URL") or BASE_URL, max_retries=0)
        self._options: dict[str, Any] = {
            "max_size": MESSAGE_LIMIT,
            "compression": None,
            "open_timeout": CONNECT_S,
            "ping_timeout": PONG_S,
            "create_connection": ProviderSocket,
            "proxy": proxied(),
        }
        if self._client.base_url.scheme in ("https", "wss"):
            # Reading the certificates takes 20 ms, so it is done once, not for each connection. OpenSSL honours SSL_CERT_FILE.
            self._options["ssl"] = ssl.create_default_context()
        # Have the SDK load and build now what it would on first use (70 ms), not in the first session.
        self._client.with_options(api_key="none").realtime.connect(model="")
        import_module("openai.lib._websocket")
        AsyncRealtimeConnection(cast("Any", None)).parse_event(b'{"type":"session.updated","event_id":"","session":{"type":"realtime"}}')

    async def connect(self, setup: Setup) -> Connection:
        """Open a session; returns when it has its settings and its history. Raises `ConnectionLost`."""
        key = await self._keys("openai")
        if not key:
            raise ConnectionLost(shapes.NO_KEY, close_code=0, retryable=False)
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise ConnectionLost(shapes.BAD_KEY, close_code=0, retryable=False)
        options = cast("WebSocketConnectionOptions", self._options)
        dialling = self._client.with_options(api_key=key).realtime.connect(model=setup.model, websocket_connection_options=options)
        try:
            sdk = await dialling.enter()
        except InvalidStatus as error:
            raise shapes.refused(error.response.status_code, bytes(error.response.body or b"")) from error
        except TimeoutError as error:
            raise ConnectionLost("OpenAI did not open a connection in time.") from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectionLost("The certificate of OpenAI's address cannot be checked; see SSL_CERT_FILE.", retryable=False) from error
        except (OSError, WebSocketException, openai.OpenAIError) as error:
            raise ConnectionLost(f"OpenAI cannot be reached ({type(error).__name__}).") from error
        connection = OpenAIConnection(Wire(sdk))
        try:
            async with asyncio.timeout(SETUP_S):
                await connection.set_up(setup)
        except TimeoutError as error:
            await connection.close()
            raise ConnectionLost("OpenAI opened a connection and did not set up the session in time.") from error
        except BaseException:
            await connection.close()
            raise
        return connection

    async def prepare(self) -> None:
        """Do nothing: the constructor has made everything."""

    async def close(self) -> None:
        """Close the client that the connections share."""
        await self._client.close()
