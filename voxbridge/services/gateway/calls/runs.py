"""Runs of macros and workflows, of all sessions and accounts: which there are lately, how each went, and what a person says to one.

Owns this view, read from the log where each question left off, so that it is as good as the log. Does not own what a run does (the tool
executor has that). A crash loses nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import RunAnswerReceived, TaskCancelRequested
from voxbridge.shared.events.operator import SessionErased
from voxbridge.shared.log.reader import Log, decode, is_imported, position
from voxbridge.shared.log.writer import Policy, SessionWriter
from voxbridge.shared.macros import trace
from voxbridge.shared.macros.answers import choice_of, step_choice_of
from voxbridge.shared.macros.trace import Trace

RUNS_KEPT: Final = 1_000
"""Newest runs that are known."""

WINDOW_US: Final = 24 * 3_600 * 1_000_000
"""Part of the log that is read first, µs: the longest time of a run."""

APPEND_S: Final = 5.0
"""Seconds that the log may take to accept what a person says to a run."""

ENDED: Final = ("completed", "failed", "cancelled")


class Known(msgspec.Struct, frozen=True):
    """A run and the log that it is in; of its steps only the number."""

    sid: str
    trace: Trace


class Runs:
    """The runs that one gateway knows. `now` is the time in µs, `stem` unique to this process."""

    def __init__(self, log: Log, now: Callable[[], int], stem: str) -> None:
        self._log = log
        self._now = now
        self._stem = stem
        self._runs: OrderedDict[str, Known] = OrderedDict()
        self._read: dict[str, int] = {}
        self._reading = asyncio.Lock()

    async def lately(self) -> list[Known]:
        """Return the runs, newest first. Raises `UNAVAILABLE`."""
        await self._catch_up()
        return list(reversed(self._runs.values()))

    async def one(self, run_id: str) -> Known:
        """Return a run with its steps. Raises `NOT_FOUND` and `UNAVAILABLE`."""
        known = await self._known(run_id)
        found: Trace | None = None
        async for recorded in self._log.read_all(known.sid, writer="tools", visibility="c", topic=subjects.RUN):
            if trace.run_of(recorded.event) == run_id:
                found = trace.apply(found, recorded.event, recorded.ts)
        if found is None:
            raise _unknown()
        return Known(known.sid, found)

    async def cancel(self, run_id: str) -> None:
        """Ask for the end of a run. Raises `NOT_FOUND`, `CONFLICT` for one that is over, and `UNAVAILABLE`."""
        known = await self._known(run_id)
        if known.trace.state in ENDED:
            raise VoxbridgeError(Code.CONFLICT, f"The run is over: it is {known.trace.state}.", field="run_id", retryable=False)
        await self._say(known.sid, TaskCancelRequested(task_id=f"task-{run_id}"))

    async def answer(self, run_id: str, text: str, step: str = "") -> None:
        """Answer the question of a run. Raises `NOT_FOUND`, `CONFLICT` when it does not ask that, `INVALID_ARGUMENT` for words that decide
        nothing, and `UNAVAILABLE`."""
        known = await self._known(run_id)
        asking = known.trace
        if asking.waits_for not in ("ask", "error", "step") or (step and step != asking.step):
            why = "waits for an approval: answer that" if asking.waits_for == "approval" else "asks no such question now"
            raise VoxbridgeError(Code.CONFLICT, f"The run {why}.", field="step" if step else "run_id", retryable=False)
        if asking.waits_for == "error" and choice_of(text) is None:
            message = "After a failed step the answer is `again`, `go_on` or `stop`."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="text", limit="again, go_on, stop")
        if asking.waits_for == "step" and step_choice_of(text) is None:
            message = "Before a step the answer is `yes`, `no` (it is left out) or `stop`."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="text", limit="yes, no, stop")
        await self._say(known.sid, RunAnswerReceived(run_id=run_id, text=text, step=asking.step))

    async def _known(self, run_id: str) -> Known:
        await self._catch_up()
        known = self._runs.get(run_id)
        if known is None:
            raise _unknown()
        return known

    async def _say(self, sid: str, event: events.Event) -> None:
        stem = f"{self._stem}-{secrets.token_hex(4)}"
        writer = SessionWriter(self._log, sid, "gateway", stem=stem, fenced=False, policy=Policy(give_up_s=APPEND_S))
        await writer.append(event, ts=self._now(), cause=None)

    async def _catch_up(self) -> None:
        """Read what followed since the last time."""
        async with self._reading:
            for logs in ("*", subjects.ACCOUNTS):
                await self._follow(logs, "tools", subjects.RUN)
                await self._follow(logs, "operator", "session.erased")

    async def _follow(self, logs: str, writer: str, topic: str) -> None:
        key = f"{logs} {topic}"
        after = self._read.get(key)
        if after is None:
            first = await self._log.page(logs, writer=writer, visibility="c", topic=topic, since=self._now() - WINDOW_US, limit=1)
            if not first.messages:
                return
            after = position(first.messages[0]) - 1
        async for page in self._log.pages(logs, writer=writer, visibility="c", topic=topic, after=after):
            for message in page.messages:
                if not is_imported(message):
                    self._take(decode(message))
                self._read[key] = position(message)

    def _take(self, recorded: events.Recorded) -> None:
        event = recorded.event
        if isinstance(event, SessionErased):
            for run_id in [run_id for run_id, known in self._runs.items() if known.sid == recorded.sid]:
                del self._runs[run_id]
            return
        run_id = trace.run_of(event)
        before = self._runs.get(run_id)
        followed = trace.apply(before.trace if before is not None else None, event, recorded.ts) if run_id else None
        if followed is not None:
            self._runs[run_id] = Known(recorded.sid, msgspec.structs.replace(followed, attempts=(), result=None, inputs={}))
            while len(self._runs) > RUNS_KEPT:
                self._runs.popitem(last=False)


def _unknown() -> VoxbridgeError:
    return VoxbridgeError(Code.NOT_FOUND, "There is no run with this id in the last day.", field="run_id")
