"""Calls of an MCP server's tool over stdio: what is ours of their time.

The tool does nothing. Beside the calls through the executor the same server is asked over a bare pipe, which is the server's own share.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.tool_session import tool_session
from bench.report import Figure
from bench.stack import ROOT, stack
from voxbridge.shared.setting import PREFIX

CALLS: Final = 500
WARM: Final = 20
SERVER: Final = "bench"
TOOL: Final = "nothing"
MODULE: Final = "bench.clients.empty_mcp_server"
PROTOCOL: Final = "2025-11-25"
ANSWER_S: Final = 20.0
PACKS: Final = {f"{PREFIX}TOOL_PACKS": "bench.clients.empty_pack"}


async def mcp(quick: bool, say: Say) -> Found:
    """Call the tool through the executor and over a bare pipe, in turn."""
    calls = 50 if quick else CALLS
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder:
        file = Path(folder) / "mcp.yaml"
        about = {"command": sys.executable, "args": ["-m", MODULE], "cwd": str(ROOT), "effect": "read"}
        file.write_bytes(msgspec.json.encode({"servers": {SERVER: about}}))  # JSON is YAML
        async with (
            stack(("tools",), extra={**PACKS, f"{PREFIX}MCP_FILE": str(file)}) as product,
            tool_session(product.config.nats_url) as session,
            _bare() as ask,
        ):
            name = f"{SERVER}__{TOOL}"
            await session.there(name)
            for _ in range(WARM):
                await session.call(name)
                await ask()
            say(f"mcp: {calls} calls of a tool, in turn with a bare pipe")
            taken = [(await session.call(name), await session.call(TOOL), await ask()) for _ in range(calls)]
    whole, empty, bare = (figures.series(list(column)) for column in zip(*taken, strict=True))
    return [*_rows(whole, empty, bare)], {"through_ms": whole, "empty_function_ms": empty, "bare_ms": bare}, []


def _rows(whole: figures.Series, empty: figures.Series, bare: figures.Series) -> list[Figure]:
    share = None if whole.p50 is None or bare.p50 is None else max(0.0, whole.p50 - bare.p50)
    what = "an MCP tool over stdio: `tool.called` appended → `tool.completed` heard"
    note = f"{whole.count} calls of a tool that does nothing; a function of ours that does nothing took {empty.p50 or 0:.2f} ms beside them"
    return [
        Figure(
            area="mcp",
            what=f"{what}, our share, p50",
            key="mcp.share",
            unit="ms",
            value=share,
            target=8,
            raw=whole.p50,
            subtracted=f"the same server asked over a bare pipe, {bare.p50 or 0:.2f} ms",
            note=note,
        ),
        Figure(area="mcp", what="the same with the server's own work, p99", unit="ms", value=whole.p99),
    ]


@asynccontextmanager
async def _bare() -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Yield a call of the tool over a bare pipe, which returns the ms that it took. Raises `TimeoutError`."""
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", MODULE, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=nowhere)
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise OSError("the server has no pipes")
    number = 0

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += 1
        stdin.write(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n")
        async with asyncio.timeout(ANSWER_S):
            answer = msgspec.json.decode(await stdout.readline(), type=dict[str, Any])
        if answer.get("id") != number or "result" not in answer:
            raise ValueError(f"the server answered {str(answer)[:200]}")
        return answer

    async def call() -> float:
        began = time.perf_counter()
        await ask("tools/call", {"name": TOOL, "arguments": {}})
        return 1_000 * (time.perf_counter() - began)

    try:
        await ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        stdin.write(msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n")
        yield call
    finally:
        stdin.close()
        try:
            async with asyncio.timeout(ANSWER_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
