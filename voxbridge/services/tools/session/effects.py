"""Running functions: each is a task that can be cancelled, and its result is checked before it becomes an input.

Owns the functions that run in this process now. Does not own whether they may run (`core`) nor what is recorded. A crash here loses running
functions; the log knows which had begun.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.calls import task_id
from voxbridge.services.tools.core.inputs import Alarm, Proposal, Proposed, Raised, Returned, Reversible, Scheduled
from voxbridge.services.tools.core.outputs import StartEffect
from voxbridge.services.tools.core.results import as_failure, as_result
from voxbridge.services.tools.core.undo import UNDO_BYTES
from voxbridge.services.tools.isolation.children import Children
from voxbridge.services.tools.registry import Tool, describe
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.effects import Tasks

RUNNING_LIMIT: Final = 256
"""Functions that one process runs concurrently."""

THREADS: Final = 32
ALARM_LIMIT_MS: Final = 24 * 3_600 * 1_000

Outcome = Returned | Scheduled | Proposed | Raised
Key = tuple[str, str]
"""Session id and call id."""

_log = logging.getLogger(__name__)


class Effects:
    """The functions that run in this process, or in `children`. `ended` gets the outcome of each, exactly once."""

    def __init__(self, ended: Callable[[Key, Outcome], None], children: Children) -> None:
        self._children = children
        self._ended = ended
        self._running = Tasks[Key]("functions")
        self._workers: dict[Callable[..., Any], Tool] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tool")

    def __len__(self) -> int:
        return len(self._running)

    def start(self, key: Key, effect: StartEffect, tool: Tool, context: Context) -> None:
        """Run a function."""
        task = self._running.start(key, self._outcome(effect, tool, context))
        task.set_name(f"{tool.name} {effect.call_id}")
        task.add_done_callback(lambda task: self._ended(key, _stopped(effect, tool) if task.cancelled() else task.result()))

    def cancel(self, key: Key) -> None:
        """Stop a function, if it runs here. An isolated function is killed. A thread runs on, and its result is discarded."""
        self._running.cancel(key)

    async def in_child(self, worker: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
        """Run a worker in a child process for a function that runs here. Raises as `Children.run`, and `TIMED_OUT`."""
        tool = self._workers.get(worker)
        if tool is None:
            tool = self._workers[worker] = describe(worker, timeout_s=0)
        try:
            async with asyncio.timeout(tool.timeout_s):
                return await self._children.run(tool, arguments)
        except TimeoutError:
            message = f"{tool.name.lstrip('_').replace('_', ' ')} took longer than {tool.timeout_s:g} s and was stopped."
            raise VoxbridgeError(Code.TIMED_OUT, message, limit=tool.timeout_s) from None

    async def idle(self, timeout_s: float) -> None:
        """Wait until no function runs, for `timeout_s` at most."""
        await self._running.idle(timeout_s)

    async def stop(self, timeout_s: float) -> None:
        """Cancel the running functions, and wait for them to end, for `timeout_s` at most."""
        self._running.cancel_all()
        await self.idle(timeout_s)

    def close(self) -> None:
        """Cancel the running functions, and start no more."""
        self._running.cancel_all()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._children.close()

    async def _outcome(self, effect: StartEffect, tool: Tool, context: Context) -> Outcome:
        call_id, attempt = effect.call_id, effect.attempt
        try:
            if tool.isolation is not None:
                return Returned(call_id=call_id, attempt=attempt, result=await self._children.run(tool, effect.arguments))
            arguments = msgspec.structs.asdict(tool.check(effect.arguments))
            if tool.context_parameter:
                arguments[tool.context_parameter] = context
            if inspect.iscoroutinefunction(tool.run):
                value = await tool.run(**arguments)
            else:
                value = await asyncio.get_running_loop().run_in_executor(self._threads, partial(tool.run, **arguments))
            if tool.mode == "alarm":
                taken_back = {"task_id": task_id(call_id)} if tool.undo is not None else None
                return Scheduled(call_id=call_id, attempt=attempt, alarm=_alarm(tool.name, value), undo=taken_back)
            if isinstance(value, Proposal):
                return Proposed(call_id=call_id, attempt=attempt, proposal=_proposal(tool, value))
            undo = _undo(tool, value.undo) if isinstance(value, Reversible) else None
            value = value.result if isinstance(value, Reversible) else value
            return Returned(call_id=call_id, attempt=attempt, result=_result(tool, value), undo=undo)
        except VoxbridgeError as error:
            failure = as_failure(error)
        except asyncio.CancelledError:
            return _stopped(effect, tool)
        except Exception as error:  # noqa: BLE001 - a fault of a function fails only its own call
            _log.exception("%s failed", tool.name)
            failure = Failure(code=Code.INTERNAL, message=f"{tool.name} failed by a fault of its own ({type(error).__name__}).")
        return Raised(call_id=call_id, attempt=attempt, error=failure)


def _stopped(effect: StartEffect, tool: Tool) -> Raised:
    error = Failure(code=Code.CANCELLED, message=f"{tool.name} was stopped.")
    return Raised(call_id=effect.call_id, attempt=effect.attempt, error=error)


def _result(tool: Tool, value: Any) -> dict[str, Any]:
    """Return the result. Where it cannot be told, a function that only reads has failed; what another one did has happened nevertheless."""
    try:
        return as_result(tool.name, value)
    except VoxbridgeError as error:
        if tool.effect == "read":
            raise
        _log.warning("%s", error.message)
        return {"not_told": error.message}


def _undo(tool: Tool, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return what an undo is given; None where it is too large, since the effect has happened and must not be called failed for it."""
    if tool.undo is not None:
        with suppress(VoxbridgeError):
            data = as_result(tool.name, given)
            if len(msgspec.json.encode(data)) <= UNDO_BYTES:
                return data
    _log.warning("a call of %s cannot be taken back: it declares no undo, or one that needs more than %d bytes.", tool.name, UNDO_BYTES)
    return None


def _proposal(tool: Tool, value: Proposal) -> Proposal:
    if tool.mode != "call":
        raise VoxbridgeError(Code.INTERNAL, f"{tool.name} answers at once, so it cannot propose anything.", retryable=False)
    arguments = as_result(tool.name, value.arguments)
    tool.check(arguments)
    return msgspec.structs.replace(value, arguments=arguments)


def _alarm(name: str, value: Any) -> Alarm:
    if not isinstance(value, Alarm):
        raise VoxbridgeError(Code.INTERNAL, f"{name} returned no alarm.", retryable=False)
    if not 0 < value.after_ms <= ALARM_LIMIT_MS:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name}: it can wait for 24 hours at most.", limit=ALARM_LIMIT_MS)
    as_result(name, value)
    return value
