"""Google, Anthropic and OpenAI for browser tests: their stand-ins over TLS, in a thread of their own, and the environment for them.

A page is driven without an event loop, so a test changes a stand-in through `run`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

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
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve)

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

    def start(self) -> None:
        """Start to listen; returns when all do."""
        self._thread.start()
        assert self._ready.wait(READY_S), "the stand-ins do not listen"
        self.check()

    def stop(self) -> None:
        """Stop; raises the failure of a stand-in."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(READY_S)
        self._loop.close()
        self.check()

    def check(self) -> None:
        """Raise the failure of a stand-in, if there is one."""
        if self._failure is not None:
            raise self._failure

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._until_over())
        except BaseException as failure:  # noqa: BLE001 - the thread of the test raises it
            self._failure = failure
            self._ready.set()

    async def _until_over(self) -> None:
        async with AsyncExitStack() as servers:
            for one in (self.google, self.anthropic, self.speech, self.realtime):
                await servers.enter_async_context(one)
            self._ready.set()
            await self._over.wait()


@contextmanager
def vendors(folder: Path, speak: Callable[[str, str], bytes]) -> Iterator[Vendors]:
    """Run the stand-ins while the block runs. `speak` makes PCM16 at 24 kHz from a text and the name of one of OpenAI's voices."""
    found = Vendors(folder, speak)
    found.start()
    try:
        yield found
    finally:
        found.stop()
