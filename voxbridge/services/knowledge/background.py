"""Work between questions: vectors that are missing are made, and a model reads passages while no call is live.

Owns when it is done and when it is stopped. Does not own what is made of an answer (`core.reading`). One passage at a time is read; when a
call begins, the request is cancelled within `LOOK_S`, and the passage is read later. What was read is in the graph's file, so another
process goes on where this one stopped; a crash loses the passage that was being read. A model that fails is asked again after `PAUSE_S`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

import httpx2
import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from voxbridge.services.knowledge.core.reading import ANSWER_LIMIT, SCHEMA, messages
from voxbridge.services.knowledge.library import Library
from voxbridge.services.knowledge.store.graph_file import Kept, Reading
from voxbridge.shared.clock import Clock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.service.process import Figures, figures_subject

LOOK_S: Final = 0.5
"""Seconds between looks for a live call, while a passage is read."""

QUIET_S: Final = 5.0
"""Seconds between looks for something to do, without a change."""

PAUSE_S: Final = 30.0
ANSWERS_S: Final = 0.25
"""Seconds to wait for the voice processes' answers: their number is not known."""

READ_S: Final = 60.0
"""Seconds that a model may take for a passage."""

TOKENS: Final = 400

_log = logging.getLogger(__name__)
_figures: Final = msgspec.json.Decoder(Figures)
Live = Callable[[], Awaitable[bool]]
_T = TypeVar("_T")


class Reads(Protocol):
    """A model that reads passages."""

    name: str

    async def read(self, kept: Kept) -> str:
        """Return what the model says about a passage. Raises `httpx2.HTTPError`, `ValueError`."""

    async def close(self) -> None:
        """Close the connections."""


class ChatModel:
    """A model behind an OpenAI-compatible endpoint, whose answer fits the schema."""

    def __init__(self, url: str, name: str, key: str = "") -> None:
        self.name = name
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.AsyncClient(base_url=url, headers=headers, timeout=READ_S)

    async def read(self, kept: Kept) -> str:
        """Return what the model says about a passage; cancelled, the connection is closed and the model stops."""
        schema = {"type": "json_schema", "json_schema": {"name": "names", "schema": SCHEMA}}
        asked = {"model": self.name, "messages": messages(kept.headings, kept.text), "response_format": schema}
        response = await self._client.post("chat/completions", json={**asked, "temperature": 0, "max_tokens": TOKENS})
        response.raise_for_status()
        answer = msgspec.json.decode(response.content)
        try:
            return str(answer["choices"][0]["message"]["content"])[:ANSWER_LIMIT]
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError("the answer has no message") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def chat_model(config: Config) -> ChatModel:
    """Return the chat model of a configuration."""
    return ChatModel(config.llm_url.rstrip("/") or config.models_base_url, config.llm_model, config.llm_key)


def live_calls(nc: Client) -> Live:
    """Return a way to ask whether a call is live: whether a voice process has a session. What cannot be asked counts as live."""

    async def live() -> bool:
        found: list[float] = []

        async def answered(message: Msg) -> None:
            with suppress(msgspec.MsgspecError):
                found.append(_figures.decode(message.data).figures.get("sessions", 1.0))

        try:
            inbox = nc.new_inbox()
            subscription = await nc.subscribe(inbox, cb=answered)
            await nc.publish(figures_subject("voice"), b"", reply=inbox)
            await asyncio.sleep(ANSWERS_S)
            await subscription.unsubscribe()
        except (NatsError, OSError):
            return True
        return any(found)

    return live


class Background:
    """The work between questions, in `threads`. `limit` is the number of passages of a graph that are read; 0: none."""

    def __init__(self, library: Library, model: Reads, live: Live, clock: Clock, *, limit: int, threads: Executor) -> None:
        self._library, self._model, self._live, self._clock, self._limit = library, model, live, clock, limit
        self._threads = threads
        self._changed = asyncio.Event()
        self.read = self.cancelled = 0

    def changed(self) -> None:
        """Look for something to do."""
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled, then close the model's connections."""
        try:
            await self._work()
        finally:
            await self._model.close()

    async def _work(self) -> None:
        while True:
            self._changed.clear()
            pause = QUIET_S
            try:
                while await self._done(self._library.catch_up):
                    pass
                while self._limit and not await self._live() and await self._one():
                    pass
            except (VoxbridgeError, httpx2.HTTPError, ValueError) as error:
                _log.info("no passage is read for %.0f s: %s", PAUSE_S, error or type(error).__name__)
                pause = PAUSE_S
            except Exception:  # noqa: BLE001 - what nobody asked for ends no service
                _log.exception("work in the background failed.")
                pause = PAUSE_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    async def _done(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _one(self) -> bool:
        """Read a passage. Return whether another one may be read now."""
        found = await self._done(partial(self._library.unread, self._limit))
        if found is None:
            return False
        path, kept = found
        reading = asyncio.create_task(self._model.read(kept))
        try:
            while not reading.done():
                await asyncio.wait((reading,), timeout=LOOK_S)
                if not reading.done() and await self._live():
                    self.cancelled += 1
                    return False
            answer = await reading
        finally:
            reading.cancel()
        told = Reading(model=self._model.name, answer=answer, at=self._clock.now_us())
        if await self._done(partial(self._library.read, path, kept, told)):
            self.read += 1
        return True
