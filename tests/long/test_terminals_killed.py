"""Fifty kills of the terminals service under a flood, and fifty in a coding session: what `make test` does ten times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.terminals.test_killed import killed_in_a_coding_session, killed_under_a_flood

pytestmark = pytest.mark.timeout(3_600)
KILLS: Final = 50


async def killed(again: Callable[[int], Awaitable[int]]) -> None:
    """Run a part, which checks what it left, again and again, until the service was killed so often in all."""
    kills = turn = 0
    while kills < KILLS:
        kills += await again(turn)
        turn += 1


async def test_fifty_kills_under_floods_lose_and_double_nothing(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    await killed(lambda turn: killed_under_a_flood(nats_url, redis_url, tmp_path, turn))


async def test_after_fifty_kills_in_coding_sessions_the_screens_are_exact(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    await killed(lambda turn: killed_in_a_coding_session(nats_url, redis_url, tmp_path, turn))
