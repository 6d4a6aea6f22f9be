"""Ten thousand drawn calls end exactly once each; `tests/tools/test_fuzzed_calls.py` makes fewer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.tools.conftest import Caller, Executors, callers, config, connection, executors, log
from tests.tools.test_fuzzed_calls import fuzz

__all__ = ["callers", "config", "connection", "executors", "log"]
CALLS = 10_000


async def test_ten_thousand_fuzzed_calls_end_exactly_once(executors: Executors, callers: Callable[[], Awaitable[Caller]]) -> None:
    await fuzz(executors, callers, CALLS)
