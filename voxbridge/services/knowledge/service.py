"""The knowledge service: answers questions about the graphs of accounts on `vx.svc.knowledge.<verb>`.

Owns who answers and in which thread: one question at a time uses a graph, `THREADS` at a time are worked on beside one that writes, at a
low priority, and `WAITING_LIMIT` wait; above that a question is answered with `OVERLOADED`. Does not own the graphs (`library`) nor the
shapes of questions (`voxbridge.shared.knowledge`).

A process that dies loses the questions that it had not answered; whoever asked is told `UNAVAILABLE` and may ask again, and a document that
was already taken changes nothing the second time. The next process brings an index that a crash left behind up to date before it is asked.
A disk that is full refuses the document, and what is there is searched as before. Without embeddings search is by words, and says so; with
no model, or while calls are live, nobody reads passages, and what the rules found is there.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.knowledge.background import Background, chat_model, live_calls
from voxbridge.services.knowledge.embeddings import endpoint
from voxbridge.services.knowledge.library import Library
from voxbridge.shared import knowledge
from voxbridge.shared.bus.accounts import knowledge_subject
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.service.process import Resources, Service

THREADS: Final = 2
WRITING: Final = (knowledge.Ingest, knowledge.Rebuild, knowledge.Replay)
"""Questions that are worked on one after the other, behind whatever a call needs."""

NICE: Final = 10
WAITING_LIMIT: Final = 64
"""Questions that are open at a time."""

_log = logging.getLogger(__name__)


class KnowledgeService(Service):
    """A process of the knowledge service. Make it with `build`."""

    def __init__(self, library: Library, background: Background, writing: ThreadPoolExecutor) -> None:
        self._library, self._background, self._writing = library, background, writing
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="graphs")
        self._asked = self._refused = self._open = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def stats(self) -> Mapping[str, float]:
        """Return counts: questions that were asked, that are open and that were refused, graphs that are kept open, and passages that a
        model has read."""
        counts = {"asked": self._asked, "open": self._open, "refused": self._refused, "graphs": len(self._library)}
        return {**counts, "read": self._background.read}

    async def answer(self, resources: Resources) -> None:
        """Answer each kind of question on its subject."""
        answers: dict[type[knowledge.Question[Any]], Callable[[Any], msgspec.Struct]] = {
            knowledge.ListGraphs: self._library.graphs,
            knowledge.Search: self._library.search,
            knowledge.Analyse: self._library.analytics,
            knowledge.Ingest: self._library.ingest,
            knowledge.Forget: self._library.forget,
            knowledge.Rebuild: self._library.rebuild,
            knowledge.Replay: self._library.replay,
        }
        for question, found in answers.items():
            handler = partial(self._handle, question, found)
            await resources.micro.add_endpoint(name=question.verb, subject=knowledge_subject(question.verb), handler=handler)

    async def serve(self) -> None:
        """Answer, and work in the background, until drained."""
        background = asyncio.create_task(self._background.run())
        try:
            await self._stopping.wait()
        finally:
            background.cancel()
            with suppress(asyncio.CancelledError):
                await background

    async def drain(self) -> None:
        """Take no more questions, answer those that are being worked on, and close the graphs."""
        self._stopping.set()
        await self._idle.wait()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the graphs once their threads are done. Blocks."""
        for threads in (self._threads, self._writing):
            threads.shutdown(cancel_futures=True)
        self._library.close()

    async def _handle(self, kind: type[knowledge.Question[Any]], answer: Callable[[Any], msgspec.Struct], request: Request) -> None:
        # One message after the other comes here, so the answer is made beside it.
        self._asked += 1
        if self._stopping.is_set():
            self._refused += 1
            await _refuse(request, VoxbridgeError(Code.UNAVAILABLE, "The knowledge service is being stopped. Ask again in a moment."))
            return
        if self._open >= WAITING_LIMIT:
            self._refused += 1
            message = f"The knowledge service works on {WAITING_LIMIT} questions already. Ask again in a moment."
            await _refuse(request, VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT, retry_after_ms=1_000))
            return
        self._open += 1
        self._idle.clear()
        self._tasks.add(task := asyncio.create_task(self._answered(kind, answer, request)))
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, kind: type[knowledge.Question[Any]], answer: Callable[[Any], msgspec.Struct], request: Request) -> None:
        try:
            question = msgspec.json.decode(request.data, type=kind)
            threads = self._writing if kind in WRITING else self._threads
            found = await asyncio.get_running_loop().run_in_executor(threads, answer, question)
            await request.respond(msgspec.json.encode(found))
            self._background.changed()
        except msgspec.MsgspecError as error:
            await _refuse(request, VoxbridgeError(Code.INVALID_ARGUMENT, f"The question cannot be read: {error}."))
        except VoxbridgeError as error:
            await _refuse(request, error)
        except Exception:  # noqa: BLE001 - whoever asked is answered
            _log.exception("a question (%s) failed.", kind.verb)
            await _refuse(request, VoxbridgeError(Code.INTERNAL, "The knowledge service failed; its log says why."))
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()


def _yield_to_calls() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


async def _refuse(request: Request, error: VoxbridgeError) -> None:
    await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))


async def build(resources: Resources) -> KnowledgeService:
    """Build the service: hold the folder of the graphs, and answer questions."""
    config = resources.config
    library = Library(config.knowledge_path, endpoint(config))
    await asyncio.to_thread(library.take)
    live = live_calls(resources.events_nc)
    writing = ThreadPoolExecutor(1, thread_name_prefix="writing", initializer=_yield_to_calls)
    background = Background(library, chat_model(config), live, resources.clock, limit=config.knowledge_reading, threads=writing)
    service = KnowledgeService(library, background, writing)
    await service.answer(resources)
    return service
