"""Agents in the background, and `voxbridge mcp`: from the call of `run_agent` to its session, and the server's start and answers.

The model is a stand-in that answers at once: what is measured is the way to the session, and the log's. The baselines are a call of a
function that only looks, and the start of the command alone.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import msgspec
import nats
from nats.aio.msg import Msg

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure, beside
from bench.stack import ROOT, Stack, StackError, stack
from tests.long_call import Call
from tests.voice.model_server import ModelServer
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.voice import SessionEnded, SessionStarted
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.setting import PREFIX
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.store.store import Store

RUNS: Final = 100
STARTS: Final = 9
QUESTIONS: Final = 20
TURNS: Final = 180
"""Turns of half an hour."""

WAIT_S: Final = 30.0


async def agents(quick: bool, say: Say) -> Found:
    """Measure the way to a child session, then the server for coding assistants."""
    async with ModelServer() as model:
        extra = {f"{PREFIX}{name}_URL": model.url for name in ("LLM", "STT", "TTS")} | {f"{PREFIX}AGENTS_DIR": str(ROOT / "agents")}
        async with stack(("gateway", "voice", "tools"), models_url=model.url, extra=extra) as product:
            runs, about = await _runs(product, 10 if quick else RUNS, say)
            asked, more = await _assistant(product, 3 if quick else STARTS, 5 if quick else QUESTIONS, say)
    return [*runs, *asked], {**about, **more}, []


async def _runs(product: Stack, count: int, say: Say) -> tuple[list[Figure], dict[str, Any]]:
    say(f"agents: {count} jobs for an agent, one at a time")
    nc = await nats.connect(product.config.nats_url)
    events: asyncio.Queue[tuple[type, float]] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        events.put_nowait((type(decode(message).event), time.perf_counter()))

    await nc.subscribe(subjects.live_subject("*", "voice", "c"), cb=hear)
    await nc.flush()
    opened: list[float] = []
    called: list[float] = []
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{product.config.port}", trust_env=False, timeout=WAIT_S) as client:
        for _ in range(count):
            began = time.perf_counter()
            (await client.post("/api/vox/function/list_tasks", json={"args": {}})).raise_for_status()
            called.append((time.perf_counter() - began) * 1_000)
            began = time.perf_counter()
            body = {"args": {"name": "researcher", "input": "Say hello."}}
            (await client.post("/api/vox/function/run_agent", json=body)).raise_for_status()
            async with asyncio.timeout(WAIT_S):
                while (found := await events.get())[0] is not SessionStarted:
                    pass
                opened.append((found[1] - began) * 1_000)
                while (await events.get())[0] is not SessionEnded:
                    pass
    await nc.close()
    whole, alone = figures.series(opened), figures.series(called)
    figure = Figure(
        area="agents",
        what="`run_agent` over REST until its session is open, p95",
        key="agents.open",
        unit="ms",
        value=whole.p95,
        target=150,
        note=f"{count} jobs, one at a time; p50 {whole.p50:.0f} ms",
    )
    return [beside(figure, "a call of a function that only looks, p95", alone.p95)], {"run_agent": whole, "a call": alone}


async def _assistant(product: Stack, starts: int, questions: int, say: Say) -> tuple[list[Figure], dict[str, Any]]:
    say(f"agents: `voxbridge mcp` is started {starts} times, and asked about half an hour")
    sid = await _half_an_hour(product)
    begun, command = [], []
    for _ in range(starts):
        began = time.perf_counter()
        await _version()
        command.append((time.perf_counter() - began) * 1_000)
        began = time.perf_counter()
        async with _server(product) as ask:
            await ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "bench", "version": "1"})
            begun.append((time.perf_counter() - began) * 1_000)
    took = []
    async with _server(product) as ask:
        await ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "bench", "version": "1"})
        for _ in range(questions):
            began = time.perf_counter()
            answer = await ask("tools/call", name="explain_silence", arguments={"session_id": sid})
            took.append((time.perf_counter() - began) * 1_000)
            if answer["result"]["isError"]:
                raise StackError(f"explain_silence failed: {answer['result']['structuredContent']}")
    start, alone, question = figures.series(begun), figures.series(command), figures.series(took)
    what = "`voxbridge mcp`: start until it has answered the client's greeting, p50"
    figure = Figure(area="agents", what=what, key="agents.mcp_start", unit="ms", value=start.p50, target=600)
    said = "`voxbridge mcp`: why was this call of half an hour silent, p95"
    other = Figure(
        area="agents", what=said, key="agents.mcp_query", unit="ms", value=question.p95, target=300, note=f"{questions} questions"
    )
    about = {"mcp start": start, "mcp query": question, "median of the query": statistics.median(took)}
    return [beside(figure, "`voxbridge --version`, p50", alone.p50), other], about


async def _half_an_hour(product: Stack) -> str:
    nc = await nats.connect(product.config.nats_url)
    log = Log(nc)
    first = (await log.js.stream_info(subjects.EVENT_STREAM)).state.last_seq + 1
    call = Call(f"{first:032x}", turns=TURNS, began_us=time.time_ns() // 1_000 - 3_600_000_000, first=first)
    await call.write(log)
    await nc.close()
    redis = await connect_redis(product.config.redis_url, timeout_s=WAIT_S)
    await Store(redis).session_opened(call.sid, time.time_ns() // 1_000)
    await redis.aclose()
    return call.sid


async def _version() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "voxbridge", "--version", cwd=ROOT, stdout=asyncio.subprocess.DEVNULL
    )
    await process.wait()


@asynccontextmanager
async def _server(product: Stack) -> AsyncIterator[Any]:
    env = {**os.environ, "VOXBRIDGE_URL": f"http://127.0.0.1:{product.config.port}", "VOXBRIDGE_TOKEN": "bench"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voxbridge", "mcp"),
        cwd=ROOT,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=64 * 1024 * 1024,
    )
    source, answers = process.stdin, process.stdout
    if source is None or answers is None:
        raise StackError("voxbridge mcp has no pipes")
    number = 0

    async def ask(method: str, **params: Any) -> Any:
        nonlocal number
        number += 1
        source.write(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n")
        async with asyncio.timeout(WAIT_S):
            return msgspec.json.decode(await answers.readline())

    try:
        yield ask
    finally:
        source.close()
        await process.wait()
