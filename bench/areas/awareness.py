"""The user's screen: how long the projection takes to rebuild, and what its part of the prompt adds to the local model's first token.

    python -m bench --only awareness

*Rebuilt*: just under 10,000 reports of pages, errors and facts are recorded and taken on a nats-server of its own; the log is folded again
from its beginning, and the state must be equal. *First token*: the models service alone, as in the area `warm`; questions without a part,
then the same with a part of five pages, three errors and two facts, which the model has read ahead as it does when the screen changes.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import httpx
import nats

from bench.areas.audio import Found, Say
from bench.areas.local_model import ANSWER_S, Service, running
from bench.areas.speech import PLAIN
from bench.report import Figure
from bench.tool_choice import SYSTEM, TOOLS
from voxbridge.services.awareness.account import Account, folded
from voxbridge.shared import events
from voxbridge.shared.awareness.prompt import part
from voxbridge.shared.awareness.view import Fact, Problem, View, Visit
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.events.gateway import ContextSet, ErrorReported, PageVisited
from voxbridge.shared.log.reader import Log

REPORTS: Final = 9_900
"""Reports: with the inputs that settle them, just under the number at which the log is cut."""

FOLDS: Final = 5
ANSWERS: Final = 20
AREA: Final = "awareness"


async def awareness(quick: bool, say: Say) -> Found:
    """Measure both."""
    rebuilt = await _rebuilt(quick, say)
    told = await _told(quick, say)
    return [*rebuilt, *told], {}, []


async def _rebuilt(quick: bool, say: Say) -> list[Figure]:
    count = 500 if quick else REPORTS
    log_id = subjects.awareness_log("local")
    async with AsyncExitStack() as running_here:
        folder = running_here.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-"))
        server = running_here.enter_context(NatsServer(Path(folder), sync_interval="1s"))
        nc = await nats.connect(server.url)
        running_here.push_async_callback(nc.close)
        log = Log(nc)
        await log.ensure_streams(retention_days=1)
        say(f"awareness: {count} reports")
        now = SystemClock().now_us()
        for first in range(0, count, 100):
            await asyncio.gather(*(_put(log, log_id, number, now + number) for number in range(first, min(first + 100, count))))
        account = Account(log, "local", stem="bench", clock=SystemClock())
        state = await account.catch_up()
        await account.close()
        times = []
        for _ in range(FOLDS):
            began = time.perf_counter()
            found = await folded(log, log_id)
            times.append((time.perf_counter() - began) * 1_000)
            if found.state != state:
                raise ValueError("The projection that was rebuilt is not equal to the one that was.")
    note = f"{count:,} reports, {found.taken:,} inputs, {FOLDS} times, the longest"
    return [
        Figure(
            area=AREA, what="projection rebuilt from the log", unit="ms", value=max(times), key="awareness.rebuilt", target=2_000, note=note
        )
    ]


async def _put(log: Log, log_id: str, number: int, at: int) -> None:
    kinds: tuple[events.Event, ...] = (
        PageVisited(visit_id=f"{number}", page=f"/orders/{number % 150}?tab=open", title=f"Order {number % 150}"),
        ErrorReported(error_id=f"{number}", error_type="TypeError", message=f"field {number % 40} is undefined", page="/orders"),
        ContextSet(key=f"key {number % 12}", value=f"value {number}"),
    )
    event = kinds[number % len(kinds)]
    payload = events.encode(event, event_id=f"{log_id}.gateway.{number}", sid=log_id, ts=at, cause=None)
    await log.js.publish(subjects.event_subject(log_id, "gateway", False, events.kind_of(event).name), payload)


async def _told(quick: bool, say: Say) -> list[Figure]:
    count = 4 if quick else ANSWERS
    now = SystemClock().now_us()
    minute = 60_000_000
    view = View(
        pages=tuple(Visit(id=f"{n}", page=f"/orders/{n}?tab=open", title=f"Order {n} of Apollo", at=now - n * minute) for n in range(5)),
        errors=tuple(
            Problem(id=f"{n}", kind="TypeError", message=f"field {n} of the order is undefined", at=now, page="/orders") for n in range(3)
        ),
        context=(Fact(key="project", value="Apollo", at=now), Fact(key="selection", value="three rows", at=now)),
    )
    text = part(view, now)
    taken: dict[str, list[float]] = {"without": [], "with": []}
    async with running() as service:
        await service.ask("Hello!")
        for round_of in range(2):
            for name in taken:
                say(f"awareness: {count // 2} answers {name} it, round {round_of + 1} of 2")
                if name == "with":
                    await _read_ahead(service, text)
                for number in range(count // 2):
                    answer = await service.ask(PLAIN[number % len(PLAIN)], screen=text if name == "with" else "")
                    taken[name].append(answer.first_ms)
    without, told = statistics.median(taken["without"]), statistics.median(taken["with"])
    note = f"{count} answers each; {without:.0f} ms without, {told:.0f} ms with a part of {len(text):,} characters that was read ahead"
    what = "added to the local model's first token, p50"
    return [Figure(area=AREA, what=what, unit="ms", value=round(told - without, 1), key="awareness.first_token", target=100, note=note)]


async def _read_ahead(service: Service, text: str) -> None:
    """Have the model read the part, with the request that the voice service makes when the screen changed."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}, {"role": "user", "content": "Hi"}]
    body = {"messages": messages, "tools": TOOLS, "max_tokens": 1, "temperature": 0.0, "keep_prompt": True}
    async with httpx.AsyncClient(base_url=service.url, timeout=ANSWER_S, trust_env=False) as client:
        (await client.post("/v1/chat/completions", json=body)).raise_for_status()
