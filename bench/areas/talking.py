"""Memory of one further session that talks, both ways and without a pause, over all processes.

Echo sessions, and sessions on Gemini Live whose stand-in sends back what it hears: microphone and reply flow all the time, so every ring
buffer is full. The readings are the proportional set size after the buffers were filled, with few sessions and with more; only the
difference of the two is reported, with its share of each process.
"""

from __future__ import annotations

import asyncio
import statistics
from typing import Any, Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.areas.realtime import google
from bench.clients.client import EchoResult, Task
from bench.clients.load import run
from bench.report import Figure
from bench.stack import LIGHT, Stack, stack

FEW: Final = 10
FURTHER: Final = 30
FILLED_S: Final = 14.0
"""Seconds until all audio buffers of a call are full: longer than any of them keeps sound."""

READINGS: Final = 5
TARGET_KIB: Final = 600
MODES: Final = {"echo": "echo", "gemini": "on Gemini Live"}


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Medians of `READINGS` readings, one second apart, in bytes by process."""

    sessions: int
    bytes: dict[str, float]
    lost: int


async def talking(quick: bool, say: Say) -> Found:
    """Measure one further talking session, from ten sessions to forty."""
    further = FURTHER // 2 if quick else FURTHER
    rows: list[Figure] = []
    detail: dict[str, Any] = {}
    async with google() as found:
        for mode, name in MODES.items():
            async with stack(LIGHT, greeting=False, extra=found) as product:
                await _reading(product, mode, FEW, say)  # warms the processes, so that their first-session memory is not counted
                few = await _reading(product, mode, FEW, say)
                many = await _reading(product, mode, FEW + further, say)
            each = {name: figures.per_further(few.bytes[name], many.bytes[name], further) / 1024 for name in few.bytes}
            rows.append(
                Figure(
                    area="talking",
                    what=f"memory per further talking session, {name}, from {FEW} to {FEW + further}, all processes",
                    key=f"talking.{mode}",
                    unit="KiB",
                    value=sum(each.values()),
                    target=TARGET_KIB,
                    note=", ".join(f"{name} {kib:.0f}" for name, kib in each.items()),
                )
            )
            detail[mode] = {"few": few, "many": many, "each_kib": each}
    return rows, detail, []


async def _reading(product: Stack, mode: str, sessions: int, say: Say) -> Reading:
    say(f"talking: {sessions} sessions, {mode}")
    task = Task(kind="echo", url=product.url, sessions=sessions, seconds=FILLED_S + 2 * READINGS, mode=mode, stream=True)
    talk = asyncio.create_task(run(task, EchoResult))
    await asyncio.sleep(FILLED_S + sessions * 0.05)
    readings: list[dict[str, int]] = []
    for _ in range(READINGS):
        readings.append(product.memory())
        await asyncio.sleep(1.0)
    lost = (await talk).lost
    return Reading(sessions=sessions, bytes={name: statistics.median(one[name] for one in readings) for name in readings[0]}, lost=lost)
