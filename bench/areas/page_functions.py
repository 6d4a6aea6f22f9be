"""Calls of a function that the user's page answers: what is ours of their time.

From the last byte of the model's answer, which asks for the function, until the model is asked again with the result: the voice service's
events, the gateway, the socket to the page and back. The model is a stand-in that answers at once, and so is the page.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure
from bench.stack import LIGHT, stack
from tests.voice.model_server import ModelServer, call

CALLS: Final = 300
WARM: Final = 10
TURN_S: Final = 20.0
FUNCTION: Final = "look"
DECLARED: Final = {"name": FUNCTION, "description": "Look at the page."}


class TimedModels(ModelServer):
    """The stand-in, with the time of each request that is no warm-up and of the end of each answer, in s of `time.perf_counter`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_at: list[float] = []
        self.answered_at: list[float] = []

    async def _answer(self, writer: asyncio.StreamWriter, part: str, answer: list[Any], *, stream: bool) -> bool:
        timed = part == "llm" and stream
        if timed:
            self.asked_at.append(time.perf_counter())
        done = await super()._answer(writer, part, answer, stream=stream)
        if timed:
            self.answered_at.append(time.perf_counter())
        return done


async def page_functions(quick: bool, say: Say) -> Found:
    """Have the model ask for a function of the page in turn after turn of one call."""
    calls = 20 if quick else CALLS
    models = TimedModels()
    async with (
        models,
        stack(LIGHT, greeting=False, models_url=models.url) as product,
        connect(product.url, subprotocols=[Subprotocol("voxbridge.v1")]) as socket,
    ):
        await socket.send(msgspec.json.encode({"type": "start", "mode": "local", "output": "text", "tools": [DECLARED]}).decode())
        say(f"page_functions: {calls} calls of a function of the page")
        taken = [await _turn(socket, models) for _ in range(WARM + calls)][WARM:]
        await socket.send('{"type": "end"}')
    share, page = (figures.series(list(column)) for column in zip(*taken, strict=True))
    what = "a function of the page: the model asked for it → the model is asked again with its result"
    note = f"{share.count} calls; the page answers at once ({page.p50 or 0:.2f} ms, not counted)"
    rows = [
        Figure(
            area="page_functions",
            what=f"{what}, our share, p50",
            key="page_functions.p50",
            unit="ms",
            value=share.p50,
            target=15,
            note=note,
        ),
        Figure(area="page_functions", what="the same, p99", unit="ms", value=share.p99),
    ]
    return rows, {"share": share, "page": page}, []


async def _turn(socket: ClientConnection, models: TimedModels) -> tuple[float, float]:
    """Make a turn with one call. Return our ms, and those that the page took. Raises `ValueError`, `TimeoutError`."""
    asked, answered = len(models.asked_at), len(models.answered_at)
    models.script("llm", call(FUNCTION, "{}"), ["It is a page."])
    await socket.send('{"type": "text", "text": "What is on my page?"}')
    page_s = 0.0
    async with asyncio.timeout(TURN_S):
        while True:
            message = await socket.recv()
            if isinstance(message, bytes):
                continue
            told = msgspec.json.decode(message)
            if told["type"] == "function_call":
                came = time.perf_counter()
                result = {
                    "type": "browser_function_result",
                    "name": FUNCTION,
                    "result": {"success": True},
                    "fn_call_id": told["fn_call_id"],
                }
                await socket.send(msgspec.json.encode(result).decode())
                page_s = time.perf_counter() - came
            if told["type"] == "turn_complete":
                break
    if len(models.asked_at) != asked + 2:
        raise ValueError(f"the model was asked {len(models.asked_at) - asked} times in a turn with one call")
    return 1_000 * (models.asked_at[asked + 1] - models.answered_at[answered] - page_s), 1_000 * page_s
