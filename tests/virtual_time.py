"""Virtual time: an event loop whose clock jumps to the next timer, so that tests do not wait and every time is exact; and timers for
simulations that have no loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. When all tasks wait, the clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]  # the loop's own queues
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on such a loop."""

    @wraps(test)
    def run(*given: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(asyncio.wait_for(test(*given, **named), 3_600))

    return run


class VirtualTimers(dict[str, int]):
    """The twin of `voxbridge.shared.step.effects.Timers`: the time at which each timer is due, in ms, by name."""

    def set(self, name: str, due: int) -> None:
        """Set a timer, or replace the one of this name."""
        self[name] = due

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it runs."""
        self.pop(name, None)

    def restore(self, timers: Mapping[str, int], *, start_us: int) -> None:
        """Take over the timers of a worker that died: their times are µs of the Unix clock."""
        self.clear()
        self.update({name: (due - start_us) // 1_000 for name, due in timers.items()})

    def first(self, until: int) -> str:
        """Return the name of the first timer that is due by `until`; of several, the one that was set first. Empty if there is none."""
        name = min(self, key=lambda one: self[one], default="")
        return name if name and self[name] <= until else ""
