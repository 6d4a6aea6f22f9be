"""A client that resumes after a cut: from opening a new socket to the last of 500 missed events, each exactly once, in order.

Beside it, in turn: reading the same 500 events straight from the log.
"""

from __future__ import annotations

import time
from typing import Final

import nats

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.call import Call, resume
from bench.report import Figure, beside
from bench.stack import LIGHT, stack
from voxbridge.shared import events
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

MISSED: Final = 500
ROUNDS: Final = 60
READING: Final = "reading them from the log"


async def resumes(quick: bool, say: Say) -> Found:
    """Cut and resume many times in one session."""
    rounds = 10 if quick else ROUNDS
    took: list[float] = []
    bare: list[float] = []
    wrong = 0
    async with stack(LIGHT) as product:
        nc = await nats.connect(product.config.nats_url)
        try:
            log = Log(nc)
            async with Call.begun(product.url) as call:
                say(f"resume: writing {MISSED} events")
                writer = SessionWriter(log, call.sid, "tools")
                event = events.tools.TaskStarted(task_id="bench", function="timer", call_id="bench")
                positions = [await writer.append(event, ts=1, cause=None) for _ in range(MISSED)]
                for number in range(rounds):
                    say(f"resume: round {number + 1} of {rounds}")
                    began = time.perf_counter()
                    answer, seen = await resume(product.url, call.sid, call.token, call.seq, until=positions[-1])
                    took.append((time.perf_counter() - began) * 1_000)
                    wrong += not answer["recovered"] or seen != positions
                    began = time.perf_counter()
                    read = [one.seq async for one in log.read_all(call.sid, writer="tools", visibility="c", after=call.seq)]
                    bare.append((time.perf_counter() - began) * 1_000)
                    wrong += read != positions
        finally:
            await nc.close()
    resumed, plain = figures.series(took), figures.series(bare)
    what = f"resume after a cut, {MISSED} missed events, new socket to last event"
    found = [
        beside(Figure(area="resumes", what=f"{what}, p50", unit="ms", value=resumed.p50), READING, plain.p50),
        beside(Figure(area="resumes", what=f"{what}, p95", key="resumes.p95", unit="ms", value=resumed.p95, target=50), READING, plain.p95),
        Figure(
            area="resumes", what="resumes that lost, repeated or reordered an event", key="resumes.wrong", unit="", value=wrong, target=0
        ),
    ]
    return found, {"resume": resumed, "read": plain, "missed": MISSED}, []
