"""A killed voice worker, a stopped one, and a killed gateway: the time until audio returns to the same call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import psutil

from bench import figures
from bench.areas.audio import Found, Say
from bench.areas.live_figures import STANDBY
from bench.clients.call import Call, resume
from bench.report import Figure
from bench.stack import LIGHT, Stack, stack

ROUNDS: Final = 7
WITHIN_S: Final = 15.0
STEADY_S: Final = 0.5
"""Seconds of frames that come back before the call is disturbed."""


async def takeovers(quick: bool, say: Say) -> Found:
    """Kill the worker that holds the call while a fresh one waits, then repeat with SIGTERM, then kill the gateway; several rounds each."""
    rounds = 2 if quick else ROUNDS
    killed: list[float] = []
    drained: list[float] = []
    back: list[float] = []
    async with stack(LIGHT) as product:
        worker = product.processes["voice"]
        for number in range(rounds):
            for name, end, taken in (("killed", psutil.Process.kill, killed), ("stopped", psutil.Process.terminate, drained)):
                say(f"takeover: worker {name}, round {number + 1} of {rounds}")
                took, worker = await _taken_over(product, worker, end)
                taken.append(took)
        gateway = product.processes["gateway"]
        for number in range(rounds):
            say(f"takeover: gateway killed, round {number + 1} of {rounds}")
            took, gateway = await _back_in_the_call(product, gateway)
            back.append(took)
    kill, drain, gate = figures.series(killed), figures.series(drained), figures.series(back)
    found = [
        Figure(
            area="takeovers", what="voice worker killed → audio again, longest", unit="ms", value=max(killed), target=4_000, needs=STANDBY
        ),
        Figure(area="takeovers", what="voice worker killed → audio again, p50", unit="ms", value=kill.p50),
        Figure(
            area="takeovers",
            what="voice worker stopped (SIGTERM) → audio again, longest",
            key="takeovers.stopped",
            unit="ms",
            value=max(drained),
            target=500,
            needs=STANDBY,
        ),
        Figure(area="takeovers", what="voice worker stopped (SIGTERM) → audio again, p50", unit="ms", value=drain.p50),
        Figure(area="takeovers", what="gateway killed: from ready again → resumed, longest", unit="ms", value=max(back), target=2_000),
    ]
    return found, {"killed": kill, "stopped": drain, "gateway": gate}, []


async def _taken_over(product: Stack, worker: psutil.Process, end: Callable[[psutil.Process], None]) -> tuple[float, psutil.Process]:
    """Return the longest silence of the call in ms, and the worker that took it over."""
    async with Call.begun(product.url) as call:

        async def interrupt() -> tuple[float, psutil.Process]:
            successor = await product.start("voice")
            await asyncio.sleep(STEADY_S)
            moment = time.monotonic()
            end(worker)
            await asyncio.to_thread(worker.wait, WITHIN_S)
            silence = await call.silence_after(moment, gone=time.monotonic(), within_s=WITHIN_S)
            return silence * 1_000, successor

        return await _while_it_flows(call, interrupt())


async def _while_it_flows(call: Call, work: Awaitable[tuple[float, psutil.Process]]) -> tuple[float, psutil.Process]:
    over = asyncio.Event()
    flowing = asyncio.create_task(call.flow(over=over))
    try:
        return await work
    finally:
        over.set()
        await flowing


async def _back_in_the_call(product: Stack, gateway: psutil.Process) -> tuple[float, psutil.Process]:
    """Return the ms from the readiness of the new gateway to the resumed call, and its process."""
    async with Call.begun(product.url) as call:
        gateway.kill()
        await asyncio.to_thread(gateway.wait, 10)
        successor = await product.start("gateway")
        ready = time.monotonic()
        answer, _ = await resume(product.url, call.sid, call.token, call.seq, until=0)
        if not answer["recovered"]:
            raise ValueError("The call was not recovered.")
        return (time.monotonic() - ready) * 1_000, successor
