"""Timers and tasks that a step asked for: what a shell needs to carry out the outputs of a core.

A core names a timer, or gives an effect an id; `Timers` and `Tasks` find it again by that key, so that the core can replace or cancel it.
They decide nothing and know no time but the loop's. `tests.virtual_time` has the twin of `Timers` in virtual time. A crash loses
all of it: what a successor is to go on with is found in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from voxbridge.shared.clock import suspended_s

LOOK_S: Final = 5.0
"""Seconds between two looks whether the machine was suspended, while timers run."""

SUSPENDED_S: Final = 1.0
"""Suspension that moves timers."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_log = logging.getLogger(__name__)


class Timers(Generic[K]):
    """Timers by name. `fire` is called with the name of each timer that is due, once.

    The loop's time stands still while the machine is suspended, and a person's ten minutes do not: timers come forward by what was slept
    through, `LOOK_S` after waking at the latest.
    """

    def __init__(self, fire: Callable[[K], None]) -> None:
        self._fire = fire
        self._running: dict[K, asyncio.TimerHandle] = {}
        self._held: list[tuple[K, asyncio.TimerHandle]] | None = None
        self._look: asyncio.TimerHandle | None = None
        self._suspended = 0.0

    def __len__(self) -> int:
        return len(self._running)

    def set(self, name: K, after_s: float) -> None:
        """Set a timer, or replace the one of this name."""
        self.cancel(name)
        loop = asyncio.get_running_loop()
        self._running[name] = loop.call_later(max(0.0, after_s), self._due, name)
        if self._look is None and after_s > LOOK_S:
            self._suspended = suspended_s()
            self._look = loop.call_later(LOOK_S, self._looked)

    def cancel(self, name: K) -> None:
        """Cancel a timer, if it runs."""
        timer = self._running.pop(name, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def hold(self) -> None:
        """Let no timer fire until `release`."""
        self._held = []

    def release(self) -> None:
        """Fire the timers that came due meanwhile, in their order, unless they were replaced or cancelled since."""
        held, self._held = self._held or [], None
        for name, timer in held:
            if self._running.get(name) is timer:
                self._due(name)

    def _looked(self) -> None:
        loop = asyncio.get_running_loop()
        before, self._suspended = self._suspended, suspended_s()
        slept = self._suspended - before
        for name, timer in list(self._running.items()) if slept >= SUSPENDED_S else ():
            if timer.when() > loop.time():  # one that is due already is on its way
                timer.cancel()
                self._running[name] = loop.call_at(max(loop.time(), timer.when() - slept), self._due, name)
        self._look = loop.call_later(LOOK_S, self._looked) if self._running else None

    def _due(self, name: K) -> None:
        if self._held is not None:
            self._held.append((name, self._running[name]))
            return
        del self._running[name]
        self._fire(name)


class Tasks(Generic[K]):
    """Effects under way, each a task with a key, and work in the background without one. Errors of the latter are logged with `owner`."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._keyed: dict[K, asyncio.Task[Any]] = {}
        self._ending: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        return len(self._keyed)

    def __contains__(self, key: K) -> bool:
        return key in self._keyed

    def start(self, key: K, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start an effect."""
        task = asyncio.create_task(work)
        self._keyed[key] = task
        self._ending.add(task)

        def ended(task: asyncio.Task[T]) -> None:
            self._ending.discard(task)
            if self._keyed.get(key) is task:
                del self._keyed[key]

        task.add_done_callback(ended)
        return task

    def cancel(self, key: K) -> None:
        """Cancel an effect, if it runs."""
        task = self._keyed.get(key)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Cancel all effects; the work in the background goes on."""
        for task in list(self._keyed.values()):
            task.cancel()

    def background(self, work: Awaitable[Any]) -> None:
        """Run work that nobody cancels by name."""
        future = asyncio.ensure_future(work)
        self._background.add(future)
        future.add_done_callback(self._over)

    def cancel_background(self) -> None:
        """Cancel the work in the background."""
        for future in self._background:
            future.cancel()

    async def idle(self, timeout_s: float | None = None) -> None:
        """Wait until no effect runs, cancelled ones included, for `timeout_s` at most."""
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=timeout_s)

    async def background_idle(self, timeout_s: float | None = None) -> None:
        """Wait until no work is left in the background, also none that begins meanwhile, for `timeout_s` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._background:
                    await asyncio.wait(set(self._background))

    def _over(self, future: asyncio.Future[Any]) -> None:
        self._background.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            _log.error("%s: work in the background failed: %s", self._owner, error, exc_info=error)
