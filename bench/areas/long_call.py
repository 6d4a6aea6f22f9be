"""Memory over a long call: growth of the processes per turn, with models that answer at once.

The models are a stand-in that speaks OpenAI's HTTP API, so that hundreds of turns take a minute and all cost is the product's.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure
from bench.stack import LIGHT, Stack, stack
from tests.voice.model_server import ModelServer

WARM_TURNS: Final = 60
TURNS: Final = 600
TURN_S: Final = 20.0
LEFT_S: Final = 1.0
READINGS: Final = 3


async def long_call(quick: bool, say: Say) -> Found:
    """Type turns in one call, and read the memory before and after them."""
    turns = 60 if quick else TURNS
    async with (
        ModelServer() as models,
        stack(LIGHT, greeting=False, models_url=models.url) as product,
        connect(product.url, subprotocols=[Subprotocol("voxbridge.v1")]) as socket,
    ):
        await socket.send('{"type": "start", "mode": "local"}')
        say(f"long_call: the first {WARM_TURNS} turns")
        await _turns(socket, WARM_TURNS)
        before = await _memory(product)
        for done in range(0, turns, WARM_TURNS):
            say(f"long_call: {done} of {turns} turns")
            await _turns(socket, min(WARM_TURNS, turns - done))
        after = await _memory(product)
        await socket.send('{"type": "end"}')
    each = {name: figures.per_further(before[name], after[name], turns) / 1024 for name in before}
    note = ", ".join(f"{name} {kib:.1f}" for name, kib in each.items())
    figure = Figure(
        area="long_call",
        key="long_call",
        what=f"memory per further turn of one call, over {turns} turns",
        unit="KiB",
        value=sum(each.values()),
        note=note,
    )
    return [figure], {"before": before, "after": after, "turns": turns}, []


async def _turns(socket: ClientConnection, count: int) -> None:
    for _ in range(count):
        await socket.send('{"type": "text", "text": "And what comes after that?"}')
        async with asyncio.timeout(TURN_S):
            while True:
                message = await socket.recv()
                if isinstance(message, bytes):
                    continue
                said = msgspec.json.decode(message)
                if said["type"] == "transcript" and said["role"] == "assistant" and not said["final"]:
                    report = {"type": "playback", "generation": said["generation"], "played_ms": 60_000, "state": "finished"}
                    await socket.send(msgspec.json.encode(report).decode())
                if said["type"] == "turn_complete":
                    break


async def _memory(product: Stack) -> dict[str, int]:
    """Return the smallest of a few readings, because short-lived memory is not a leak."""
    readings = []
    for _ in range(READINGS):
        await asyncio.sleep(LEFT_S)
        readings.append(product.memory())
    return min(readings, key=lambda one: sum(one.values()))
