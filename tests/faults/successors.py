"""Executors that die one after another: the first with a call held at some place, and the next one, which takes the call over, at an append
of its own. What the third makes of it is checked as after a single death."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

from nats.aio.client import Client

from tests.faults import once
from tests.faults.once import Case, Place, Stage
from tests.faults.wire import Stop
from tests.tools.test_service import acknowledged
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log

FAULT: Final = "its executor and its successor"
BESIDE: Final = ("", "barge-in", "repetition")
"""Faults beside the deaths, while the call is held for the first time; empty: none."""


class Deaths(NamedTuple):
    """A kind of call, the place at which its first executor dies, and the append at which the next one does."""

    kind: str
    first: Place
    second: Stop


def some(places: Sequence[tuple[str, Place]], count: int, *, appends: int) -> list[Deaths]:
    """Return so many pairs of deaths, the same each time, the second ones at the first `appends` of a takeover."""
    stops = [Stop(when, number) for number in range(appends) for when in ("before", "after")]
    return random.Random(count).sample([Deaths(kind, place, stop) for kind, place in places for stop in stops], count)


async def die(here: Config, connection: Client, folder: Path, chosen: Sequence[Deaths], *, beside: str = "") -> list[bool]:
    """Have all of these calls lose two executors, and check each. Return of each whether the second one died before it was over."""
    log, fault = Log(connection), f"{beside}, {FAULT}"
    async with AsyncExitStack() as open_things:
        stage = await open_things.enter_async_context(Stage(log, folder))
        own = await open_things.enter_async_context(once.executor(here))
        cases = await stage.begin(own.wire, [(deaths.kind, deaths.first) for deaths in chosen])
        for case in cases:
            if beside == "barge-in":
                await case.caller.cancel()
            elif beside == "repetition":
                await case.call("c2")
        successor = await open_things.enter_async_context(once.executor(here))
        for case, deaths in zip(cases, chosen, strict=True):
            successor.wire.stop_at(case.caller.sid, deaths.second)
        await own.kill()
        for case in cases:
            case.release()
        await stage.until(cases, lambda case: successor.wire.holds(case.caller.sid) or case.is_over())
        held = [successor.wire.holds(case.caller.sid) for case in cases]
        await successor.kill()
        await once.note_kept(log, cases)
        await open_things.enter_async_context(once.executor(here))
        await stage.until(cases, Case.is_over)
        await acknowledged(connection)
    for case in cases:
        await once.check(log, case, once.allowed(case, fault))
    return held
