"""The three ways by which a function is asked for: a model's call, REST, and a step of a macro; on one executor and one gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import httpx

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools
from voxbridge.shared.events.gateway import ApprovalClicked, SessionRequested
from voxbridge.shared.events.voice import Failure, ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.step.effects import Tasks

Door = Literal["model", "rest", "macro"]
Scope = Literal["once", "arguments", "function"]
MARKS: Final[Mapping[Door, str]] = {"model": "qualo", "rest": "vireo", "macro": "zenda"}
"""Words that stand for `@@` in arguments, so that what one door makes is not in the way of another."""

AT_ONCE: Final[Mapping[Door, int]] = {"model": 24, "rest": 16, "macro": 12}
"""Calls that wait for an answer at a time; a session has 32 at most, an account 32, and 64 wait for a child process."""

OWNED: Final = frozenset(load([one for one in BUILT_IN if ".packs.terminals." in one], timeout_s=30))
"""Functions that only the installation's own account may call."""

Answer = tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted
End = tools.TaskCompleted | tools.TaskFailed | tools.TaskCancelled | tools.TaskInterrupted


TASKS: Final = frozenset(name for name, tool in load(BUILT_IN, timeout_s=30).items() if tool.mode == "task" or name.startswith("run_"))
"""Functions whose result is that of a task."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """End of a call: its result, or an error."""

    result: dict[str, Any] | None = None
    code: str = ""
    message: str = ""
    field: str = ""
    took_s: float = 0.0

    def __str__(self) -> str:
        return str(self.result)[:300] if self.result is not None else f"{self.code} ({self.field}): {self.message}"


class Conversation:
    """A session as the voice service and a person see it: calls are made in it, questions are answered by a click."""

    def __init__(self, log: Log, account: str) -> None:
        sid = new_session_id()
        self.account = account
        self._voice = SessionWriter(log, sid, "voice")
        self._clicks = SessionWriter(log, sid, "gateway")
        self._feed = Feed(log, sid, self._hear, writer="tools")
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._approving = Tasks[None]("approvals of steps")
        self.turns = asyncio.Semaphore(6)

    async def start(self) -> None:
        await self._clicks.append(SessionRequested(mode="local", account=self.account), ts=SystemClock().now_us(), cause=None)
        await self._feed.start()

    async def stop(self) -> None:
        await self._feed.stop()
        self._approving.cancel_background()

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Answer]:
        """Call a function; return the call's id and its answer, which may be a question that nobody has answered yet."""
        call_id = f"c{next(self._numbers)}"
        called = ToolCalled(
            call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=30_000, account=self.account
        )
        self._waited(call_id)
        await self._voice.append(called, ts=SystemClock().now_us(), cause=None)
        return call_id, await self._heard(call_id)

    async def ask(self, name: str, arguments: dict[str, Any], *, scope: Scope = "once") -> dict[str, Any] | Failure:
        """Call a function, approve it if it asks, and return its end."""
        call_id, answer = await self.call(name, arguments)
        if isinstance(answer, tools.ToolFailed):
            return answer.error
        assert isinstance(answer, tools.ToolCompleted), f"{name} was interrupted"
        status = answer.result.get("status")
        if status == "needs_approval":
            return await self.approve(call_id, answer.result["approval_id"], scope=scope)
        if status == "started" and name in TASKS:
            return _ended(await self._heard(f"task-{call_id}"))
        return answer.result

    async def approve(self, call_id: str, approval_id: str, *, scope: Scope = "once") -> dict[str, Any] | Failure:
        """Click yes to the question of a call, and return its end."""
        await self._click(approval_id, scope)
        return _ended(await self._heard(f"task-{call_id}"))

    async def _click(self, approval_id: str, scope: Scope = "once") -> None:
        click = ApprovalClicked(approval_id=approval_id, answer="approved", scope=scope)
        await self._clicks.append(click, ts=SystemClock().now_us(), cause=None)

    def told(self, call_or_task: str) -> bool:
        """Tell whether the end of a call or task was heard."""
        return call_or_task in self._answers and self._answers[call_or_task].done()

    async def _heard(self, name: str) -> Any:
        async with asyncio.timeout(BOUND_S):
            return await self._waited(name)

    def _waited(self, name: str) -> asyncio.Future[Any]:
        return self._answers.setdefault(name, asyncio.get_running_loop().create_future())

    def _hear(self, recorded: events.Recorded) -> None:
        match recorded.event:
            case tools.ToolCompleted() | tools.ToolFailed() | tools.ToolInterrupted() as answer:
                waited = self._waited(answer.call_id)
            case tools.TaskCompleted() | tools.TaskFailed() | tools.TaskCancelled() | tools.TaskInterrupted() as end:
                waited = self._waited(end.task_id)
            case tools.ApprovalRequested() as asks if asks.call_id not in self._answers:  # a step of a macro asks
                self._approving.background(self._click(asks.approval_id))
                return
            case _:
                return
        if not waited.done():
            waited.set_result(recorded.event)


class Doors:
    """Functions of one installation, asked for by each door."""

    def __init__(self, log: Log, gateway: Running, workspace: Path, stack: AsyncExitStack) -> None:
        self.workspace = workspace
        self.gateway = gateway
        self.values: dict[str, str] = {}
        """Words in arguments that are known only here, such as `{server}`, and what stands for them."""
        self._log = log
        self._stack = stack
        self._conversations: dict[str, asyncio.Task[Conversation]] = {}
        self._client = httpx.AsyncClient(base_url=gateway.base, trust_env=False, timeout=BOUND_S)
        self._numbers = count(1)
        self._at_once = {door: asyncio.Semaphore(number) for door, number in AT_ONCE.items()}

    async def close(self) -> None:
        await self._client.aclose()

    async def conversation(self, subject: str) -> Conversation:
        """Return the session of a subject, with an account of its own."""
        if subject not in self._conversations:
            self._conversations[subject] = asyncio.create_task(self._begun(subject))
        return await self._conversations[subject]

    async def ask(self, door: Door, name: str, arguments: dict[str, Any], *, scope: Scope = "once", subject: str = "") -> Outcome:
        """Ask for a function; `subject` names the session, which is that of function and door unless it says otherwise."""
        async with self._at_once[door]:
            began = time.perf_counter()
            if door == "rest":
                found = await self._by_rest(name, arguments, scope)
            else:
                conversation = await self.conversation(subject or f"{name}-{door}")
                async with conversation.turns:
                    began = time.perf_counter()
                    if door == "macro":
                        found = await self._by_macro(conversation, name, arguments)
                    else:
                        found = await conversation.ask(name, arguments, scope=scope)
            took = time.perf_counter() - began
        if isinstance(found, Failure):
            return Outcome(code=found.code, message=found.message, field=found.field, took_s=took)
        return Outcome(result=found, took_s=took)

    async def cancel(self, door: Door, name: str, outcome: Outcome) -> None:
        """Cancel the timer that a call set, so that the account keeps room for others."""
        task = (outcome.result or {}).get("task_id")
        if task and door == "rest":
            await self._client.delete(f"/api/vox/tasks/{task}")
        elif task:
            await (await self.conversation(f"{name}-{door}")).ask("cancel_task", {"task": task})

    async def _begun(self, subject: str) -> Conversation:
        made = Conversation(self._log, LOCAL if subject.rpartition("-")[0] in OWNED else subject)
        await made.start()
        self._stack.push_async_callback(made.stop)
        return made

    async def _by_macro(self, conversation: Conversation, name: str, arguments: dict[str, Any]) -> dict[str, Any] | Failure:
        macro = f"case {next(self._numbers)}"
        step = {"id": "only", "call": name, "arguments": as_text(arguments)}
        made = await conversation.ask("create_macro", {"name": macro, "steps": [step]})
        if isinstance(made, Failure):
            field = made.field.removeprefix("steps[0].arguments").lstrip(".")
            return Failure(code=made.code, message=made.message, field=field)
        return await conversation.ask("run_macro", {"name": macro})

    async def _by_rest(self, name: str, arguments: dict[str, Any], scope: Scope) -> dict[str, Any] | Failure:
        answer = await self._client.post(f"/api/vox/function/{name}", json={"args": arguments})
        told = answer.json()
        if answer.status_code not in (200, 202):
            return Failure(code=told["code"], message=told["message"], field=told.get("field", ""))
        result = told["result"]
        if result.get("status") == "needs_approval":
            body = {"answer": "approved", "scope": scope}
            assert (await self._client.post(f"/api/vox/approvals/{result['approval_id']}", json=body)).status_code == 202
        if result.get("status") == "needs_approval" or (result.get("status") == "started" and name in TASKS):
            result = await eventually(lambda: self._ended(result["task_id"]))
        if not result.pop("success"):
            return Failure(code=result["code"], message=result["error"])
        return dict(result)

    async def _ended(self, task_id: str) -> dict[str, Any]:
        return dict((await self._client.get(f"/api/vox/tasks/{task_id}")).json().get("result", {}))


def as_text(value: Any) -> Any:
    """Return arguments as a macro's step has them where its texts hold no pipe."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {name: as_text(one) for name, one in value.items()}
    return [as_text(one) for one in value] if isinstance(value, list) else value


def _ended(end: Any) -> dict[str, Any] | Failure:
    match end:
        case tools.TaskCompleted(result=result):
            return dict(result)
        case tools.TaskFailed(error=error):
            found: Failure = error
            return found
        case tools.TaskCancelled(reason=reason):
            return Failure(code=Code.CANCELLED, message=reason)
        case _:
            return Failure(code=Code.INTERRUPTED, message="interrupted")


@asynccontextmanager
async def open_doors(log: Log, gateway: Running, workspace: Path) -> AsyncIterator[Doors]:
    """Open the doors of an installation whose executor and gateway run."""
    async with AsyncExitStack() as stack:
        doors = Doors(log, gateway, workspace, stack)
        stack.push_async_callback(doors.close)
        yield doors
