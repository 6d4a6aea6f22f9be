"""Asking for functions outside sessions: a request is put into the account's log once, and its outcome is waited for there.

Owns the order that makes it once: a key that the log knows is not asked again; the server refuses a second request with the same key for
two minutes, in case two gateways looked at the same time; the tool executor runs a call once, whatever it is sent. A crash loses nothing
that was acknowledged: who asks again with the same key, here or at another gateway, gets the outcome of the first request.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from nats.errors import Error as NatsError

from voxbridge.services.gateway.calls import in_sessions
from voxbridge.services.gateway.calls.ledger import KEY_US, KEYS_LIMIT, Requested, Task
from voxbridge.services.gateway.calls.ledgers import Followed, Ledgers
from voxbridge.shared import events
from voxbridge.shared.agents.functions import BROWSER_FUNCTIONS, Function, without_page
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.events.gateway import ApprovalClicked, TaskCancelRequested, ToolRequested
from voxbridge.shared.events.tools import ApprovalRequested
from voxbridge.shared.log.append_stats import is_full
from voxbridge.shared.log.once import publish_once
from voxbridge.shared.log.quotas import Rated
from voxbridge.shared.log.reader import Log

LIST: Final = "vx.svc.tools.list"
LIST_S: Final = 2.0
CATALOGUE_S: Final = 5.0
"""Seconds for which the executors' answer about their functions is used again."""

OPEN_LIMIT: Final = 32
"""Calls and tasks that an account may have open outside sessions, as the tool executor counts them."""

WAITING_LIMIT: Final = 512
"""Requests that wait for an outcome at one gateway."""

GRACE_S: Final = 2.0
"""Seconds beyond a function's own time-out in which its end must be in the log."""

ACK_S: Final = 2.0
APPEND_S: Final = 8.0
"""Seconds that a request is offered to a log that does not answer."""

CANCEL_S: Final = 5.0
"""Seconds that a cancelled task may take to end before the answer says that it is being stopped."""

_PAUSE_S: Final = 0.1
_log = logging.getLogger(__name__)


class Listed(NamedTuple):
    """Open tasks; `incomplete`: of some sessions it is not known which they have."""

    tasks: list[Task]
    incomplete: bool


class Limits(NamedTuple):
    """Limits that the gateway has beside those of this module."""

    room_left: Callable[[], None]
    account: Callable[[str], Rated]


class Calls:
    """The calls that one gateway asks for. `now` is the time in µs."""

    def __init__(self, log: Log, now: Callable[[], int], limits: Limits) -> None:
        self.ledgers = Ledgers(log, now)
        self._log = log
        self._now = now
        self._limits = limits
        self._waiting = 0
        self._catalogue: dict[str, Function] = {}
        self._catalogued_at = 0.0

    async def run(self, account: str, name: str, arguments: dict[str, Any], *, key: str = "") -> events.Recorded:
        """Ask for a function and return the event that answers the call. With `key`, the same key is the same call for a day.

        Raises `NOT_FOUND` for an unknown function, `UNAVAILABLE` for one of a page or when executor or log are away, `RATE_LIMITED` and
        `OVERLOADED` at the limits, `INVALID_ARGUMENT` for a key that was used for a different request, `TIMED_OUT`.
        """
        function = await self._function(name)
        request = hashlib.sha256(msgspec.json.encode([name, arguments], order="sorted")).hexdigest() if key else ""
        digest = hashlib.sha256(f"{account}\0{key}".encode()).hexdigest() if key else ""
        if self._waiting >= WAITING_LIMIT:
            raise VoxbridgeError(
                Code.OVERLOADED, f"{WAITING_LIMIT} requests wait here already. Try again in a moment.", retry_after_ms=1_000
            )
        self._waiting += 1
        try:
            followed = await self.ledgers.of(account)
            call = None
            if key:
                await followed.current()
                call = followed.ledger.keyed(digest, self._now())
            if call is None:
                event = ToolRequested(
                    call_id=self._call_id(digest),
                    name=name,
                    arguments=arguments,
                    deadline_ms=round(function.timeout_s * 1_000),
                    account=account,
                    key=digest,
                    request=request,
                )
                return await self._begin(followed, event, function)
            return await self._outcome(followed, _same(call, request), function)
        finally:
            self._waiting -= 1

    async def cancel(self, account: str, task_id: str, session: str = "") -> Task:
        """Cancel a task, and return it as it is when it has ended, or after `CANCEL_S`. `session` says in which it was begun, where tasks
        of several have this id. Raises `NOT_FOUND`, `CONFLICT` for one that is over or not the only one, and `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        task = followed.ledger.task(task_id) if not session else None
        if task is None:
            return await self._cancel_in(await self._in_session(account, task_id, session))
        if task.end:
            raise VoxbridgeError(Code.CONFLICT, f"The task is over: it is {task.state}.", field="task_id", retryable=False)
        ended = followed.ledger.expect(task_id)
        try:
            await self._append(followed.log_id, TaskCancelRequested(task_id=task_id), secrets.token_hex(8))
            await asyncio.wait({ended}, timeout=CANCEL_S)
        finally:
            ended.cancel()
        return _known(followed, task_id)

    async def _cancel_in(self, task: Task) -> Task:
        """Cancel a task of a session, as a client of the session does."""
        async with in_sessions.End(self._log, task.session, task.id) as end:
            await self._append(task.session, TaskCancelRequested(task_id=task.id), secrets.token_hex(8))
            ended = await end.within(CANCEL_S)
        return task if ended is None else in_sessions.ended(task, ended)

    async def _in_session(self, account: str, task_id: str, session: str = "") -> Task:
        listed = await in_sessions.open_tasks(self._log, account)
        found = [one for one in listed.tasks if one.task_id == task_id and session in ("", one.sid)]
        if len(found) > 1:
            message = "Calls in several sessions have a task with this id. Say which with `session`."
            raise VoxbridgeError(Code.CONFLICT, message, field="session", retryable=False)
        if not found and listed.incomplete:
            raise Unavailable("Not every session could be asked for its tasks, and no other has this one. Ask again.", retry_after_ms=1_000)
        if not found:
            raise _unknown()
        return in_sessions.shown(found[0])

    async def approve(self, account: str, answer: ApprovalClicked) -> None:
        """Record a person's answer to a request for approval. Raises `NOT_FOUND` when nothing asks for it, and `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        if not any(asked.approval_id == answer.approval_id for asked in followed.ledger.asked()):
            raise VoxbridgeError(Code.NOT_FOUND, "Nothing waits for this approval; it may have lapsed.", field="approval_id")
        await self._append(followed.log_id, answer, secrets.token_hex(8))

    async def approvals(self, account: str) -> list[ApprovalRequested]:
        """Return the requests for approval of an account that are open. Raises `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        return followed.ledger.asked()

    async def ended(self, account: str) -> list[Task]:
        """Return the tasks of an account outside sessions that ended lately, the latest first. Raises `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        return followed.ledger.ended()

    async def tasks(self, account: str) -> Listed:
        """Return the tasks of an account that are not over, in sessions and outside, oldest first. Raises `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        others = await in_sessions.open_tasks(self._log, account)
        found = [*followed.ledger.tasks(), *(in_sessions.shown(one) for one in others.tasks)]
        return Listed(sorted(found, key=lambda task: task.started_at_ms), others.incomplete)

    async def task(self, account: str, task_id: str) -> tuple[Task, events.Recorded | None]:
        """Return a task and, when it is over, the event that ended it. Raises `NOT_FOUND` and `UNAVAILABLE`."""
        followed = await self.ledgers.of(account)
        await followed.current()
        task = followed.ledger.task(task_id)
        if task is None:
            return await self._in_session(account, task_id), None
        return task, await followed.read(task.end) if task.end else None

    async def close(self) -> None:
        """Follow no account any more."""
        await self.ledgers.close()

    async def _begin(self, followed: Followed, event: ToolRequested, function: Function) -> events.Recorded:
        ledger = followed.ledger
        if ledger.open() >= OPEN_LIMIT:
            message = f"{OPEN_LIMIT} calls and tasks of this account are open; wait for one to end, or cancel a task."
            raise VoxbridgeError(Code.RATE_LIMITED, message, field="open", limit=OPEN_LIMIT, retry_after_ms=1_000)
        if event.key and ledger.full(self._now()):
            message = f"This account has used {KEYS_LIMIT:,} idempotency keys in a day. Go on without, or wait."
            raise VoxbridgeError(Code.RATE_LIMITED, message, field="Idempotency-Key", limit=KEYS_LIMIT)
        self._charge(event)
        answered = ledger.expect(event.call_id)
        try:
            seq = await self._append(followed.log_id, event, event.key or event.call_id)
            if event.key:  # it may be the position of another gateway's request with this key
                await followed.current(seq)
                first = ledger.at(seq) or ledger.keyed(event.key, self._now())
                if first is not None and (first.call_id != event.call_id or first.seq != seq or first.request != event.request):
                    return await self._outcome(followed, _same(first, event.request), function)
            return await _within(answered, function)
        finally:
            answered.cancel()

    async def _outcome(self, followed: Followed, call: Requested, function: Function) -> events.Recorded:
        """Wait for the answer of a call that was asked for before."""
        if call.answer:
            return await followed.read(call.answer)
        answered = followed.ledger.expect(call.call_id)
        try:
            return await _within(answered, function)
        finally:
            answered.cancel()

    def _call_id(self, digest: str) -> str:
        # The same for two gateways that are asked at the same time, and another one when the key is used again after its day.
        return f"r-{digest[:32]}-{self._now() // KEY_US:x}" if digest else f"r-{secrets.token_hex(16)}"

    def _charge(self, event: ToolRequested) -> None:
        self._limits.room_left()
        rates, size = self._limits.account(event.account), len(msgspec.msgpack.encode(event))
        try:
            rates.check(size)
        except VoxbridgeError as error:
            again = error.retry_after_ms
            raise VoxbridgeError(Code.RATE_LIMITED, error.message, field=error.field, limit=error.limit, retry_after_ms=again) from error
        rates.take(size)

    async def _append(self, log_id: str, event: events.Event, mark: str) -> int:
        """Append an event, once for each `mark`; return its position, or that of the first one with the mark. Raises `UNAVAILABLE`."""
        event_id = f"{log_id}.gateway.{mark}.0"
        kind = events.kind_of(event)
        payload = events.encode(event, event_id=event_id, sid=log_id, ts=self._now(), cause=None)
        subject = subjects.event_subject(log_id, kind.writer, kind.visible, kind.name)
        loop = asyncio.get_running_loop()
        end = loop.time() + APPEND_S
        while True:
            try:
                return await publish_once(self._log, log_id, subject, payload, event_id, timeout_s=ACK_S)
            except (TimeoutError, NatsError) as error:
                if is_full(error) or loop.time() + _PAUSE_S >= end:
                    message = "The event log did not take the request, or did not say so. Ask again, with the same Idempotency-Key."
                    raise Unavailable(message, retry_after_ms=1_000) from error
                _log.warning("a request of %s is offered to the log again: %s", log_id, error or type(error).__name__)
                await asyncio.sleep(_PAUSE_S)

    async def _function(self, name: str) -> Function:
        loop = asyncio.get_running_loop()
        if not self._catalogue or loop.time() - self._catalogued_at > CATALOGUE_S:
            try:
                answer = await self._log.nc.request(LIST, b"", timeout=LIST_S)
                self._catalogue = {one.name: one for one in msgspec.json.decode(answer.data, type=list[Function])}
            except (TimeoutError, NatsError, msgspec.MsgspecError) as error:
                raise Unavailable("No tool executor answers, so no function can run now. Ask again.", retry_after_ms=2_000) from error
            self._catalogued_at = loop.time()
        function = self._catalogue.get(name)
        if name in BROWSER_FUNCTIONS or (function is not None and function.kind == "browser"):
            raise VoxbridgeError(Code.UNAVAILABLE, without_page(name), retryable=False)
        if function is None and "__" in name:  # a tool of an MCP server, of which the executor may say why it is not there
            return Function(name=name, description="", parameters={})
        if function is None:
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no function {name[:64]!r}. GET /api/vox/functions lists them.", field="name")
        return function


async def _within(answered: asyncio.Future[events.Recorded], function: Function) -> events.Recorded:
    limit_s = function.timeout_s + GRACE_S
    try:
        async with asyncio.timeout(limit_s):
            return await answered
    except TimeoutError:
        message = f"{function.name} gave no outcome within {limit_s:g} s; it may still have one. Ask again with the same Idempotency-Key."
        raise VoxbridgeError(Code.TIMED_OUT, message, limit=limit_s) from None


def _same(call: Requested, request: str) -> Requested:
    if call.request != request:
        message = "This idempotency key was used for a different request in the last 24 hours. Use a new key for a new request."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="Idempotency-Key")
    return call


def _known(followed: Followed, task_id: str) -> Task:
    task = followed.ledger.task(task_id)
    if task is None:
        raise _unknown()
    return task


def _unknown() -> VoxbridgeError:
    message = "The account has no open task with this id, and outside sessions none that ended lately."
    return VoxbridgeError(Code.NOT_FOUND, message, field="task_id")
