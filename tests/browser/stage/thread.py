"""Stand-ins on an event loop in a thread of their own: a page is driven without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

START_S: Final = 30.0
"""Seconds that a stand-in may take to begin, and to end."""


@contextmanager
def in_thread(stand_in: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter `stand_in` in a thread, yield what it gives, and leave it at the end. Raises what it raises, or `TimeoutError` after 30 s."""
    ready = Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        over = asyncio.Event()
        async with stand_in as found:
            ready.set_result((found, asyncio.get_running_loop(), over))
            await over.wait()

    done = Future[None]()

    def run() -> None:
        try:
            asyncio.run(serve())
            done.set_result(None)
        except BaseException as failure:  # noqa: BLE001 - the thread of the test raises it
            (done if ready.done() else ready).set_exception(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found, loop, over = ready.result(START_S)
    try:
        yield found
    finally:
        if not done.done():
            loop.call_soon_threadsafe(over.set)
        thread.join(START_S)
    done.result(0)
