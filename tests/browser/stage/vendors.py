"""Google, Anthropic and OpenAI for browser tests: their stand-ins over TLS, in a thread of their own, and the environment for them.

A page is driven without an event loop, so a test changes a stand-in through `run`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final, Self

from tests.browser.stage.thread import in_thread
from tests.fakes import tls
from tests.fakes.anthropic import server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.openai import http, realtime
from tests.fakes.openai.http import OpenAIServer
from tests.fakes.openai.realtime import OpenAIRealtimeServer

GEMINI_KEY: Final = "AIza-of-the-tests"
ENDPOINT: Final = "studio"
"""Name under which agents use OpenAI's speech over HTTP: `OPENAI_BASE_URL` is that of OpenAI Realtime."""

READY_S: Final = 30.0


class Vendors:
    """The stand-ins, from `vendors`."""

    def __init__(self, folder: Path, speak: Callable[[str, str], bytes]) -> None:
        authority = tls.issue(folder)
        self.ca_file, context = authority
        self.google = GeminiServer(folder, Options(keys={GEMINI_KEY}, pace=4.0), authority=authority)
        self.anthropic = AnthropicServer(tls=context)
        self.speech = OpenAIServer(speak=speak, tls=context)
        self.realtime = OpenAIRealtimeServer(tls=context)
        self._servers = AsyncExitStack()

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which a Voxbridge uses them as the services."""
        return {
            "SSL_CERT_FILE": str(self.ca_file),
            "GEMINI_API_KEY": GEMINI_KEY,
            "GOOGLE_GEMINI_BASE_URL": self.google.url,
            "ANTHROPIC_API_KEY": server.KEY,
            "ANTHROPIC_BASE_URL": self.anthropic.url,
            "OPENAI_API_KEY": realtime.KEY,
            "OPENAI_BASE_URL": self.realtime.url,
            "VOXBRIDGE_ENDPOINTS": f"{ENDPOINT}={self.speech.base_url}",
            f"VOXBRIDGE_KEY_{ENDPOINT.upper()}": http.KEY,
        }

    def run(self, action: Callable[[], None]) -> None:
        """Run an action in the thread of the stand-ins, between two of their messages."""
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(act)
        assert done.wait(READY_S), "the stand-ins do not answer"

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for one in (self.google, self.anthropic, self.speech, self.realtime):
            await self._servers.enter_async_context(one)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._servers.aclose()


@contextmanager
def vendors(folder: Path, speak: Callable[[str, str], bytes]) -> Iterator[Vendors]:
    """Run the stand-ins while the block runs. `speak` makes PCM16 at 24 kHz from a text and the name of one of OpenAI's voices."""
    with in_thread(Vendors(folder, speak)) as found:
        yield found
