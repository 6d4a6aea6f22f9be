"""Waiting for what gives no signal: another process's file, a figure, the state of a server."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar, overload

T = TypeVar("T")
BOUND_S: Final = 60.0
"""Seconds that every test waits for something that must come. No wait is shorter: a busy machine is late, and no defect is found sooner by
giving up sooner."""

LOOK_S: Final = 0.005


@overload
async def eventually(check: Callable[[], Awaitable[T]], *, within_s: float = ...) -> T: ...


@overload
async def eventually(check: Callable[[], T], *, within_s: float = ...) -> T: ...


async def eventually(check: Callable[[], Any], *, within_s: float = BOUND_S) -> Any:
    """Ask `check` until its answer is true, and return that answer. Fails with the last answer after `within_s`."""
    last: Any = None
    try:
        async with asyncio.timeout(within_s):
            while True:
                found = check()
                last = await found if inspect.isawaitable(found) else found
                if last:
                    return last
                await asyncio.sleep(LOOK_S)
    except TimeoutError as error:
        raise AssertionError(f"{inspect.getsource(check).strip()} is still {last!r} after {within_s:g} s") from error


async def opens(port: int) -> bool:
    """Tell whether a port of this machine accepts connections."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True
