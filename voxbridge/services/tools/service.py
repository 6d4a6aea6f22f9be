"""The tool executor: takes calls from the log and runs their functions.

Performs the outputs of a session's step and feeds the results back as inputs. Owns the timers. Does not own the rules (`core`), the order
of recording (`session`), the sessions in memory (`sessions`), the messages (`intake`) nor the running (`effects`). A crash loses what ran;
another process gets its calls, folds their sessions, and continues by the rules of `core`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from nats.aio.msg import Msg
from nats.micro.service import Service as Micro

from voxbridge.services.tools import zones
from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.core.inputs import (
    Accepted,
    Raised,
    Rejected,
    TimerFired,
)
from voxbridge.services.tools.core.outputs import CancelEffect, CancelTimer, Done, Resolve, SetTimer, StartEffect
from voxbridge.services.tools.core.state import Call, Running
from voxbridge.services.tools.core.step import Decision, concerned
from voxbridge.services.tools.isolation.children import Children
from voxbridge.services.tools.loading import Loaded, prepare, usable
from voxbridge.services.tools.mcp.client import McpServers
from voxbridge.services.tools.packs.device import endpoint
from voxbridge.services.tools.projection import Notes
from voxbridge.services.tools.registry import named
from voxbridge.services.tools.session import standing
from voxbridge.services.tools.session.accounts import Accounts, ForAccount
from voxbridge.services.tools.session.child_sessions import ChildSessions
from voxbridge.services.tools.session.contexts import Facilities, context_of, fact
from voxbridge.services.tools.session.customers import Customers
from voxbridge.services.tools.session.decisions import Decisions
from voxbridge.services.tools.session.effects import RUNNING_LIMIT, Effects, Key, Outcome
from voxbridge.services.tools.session.handover import Handover
from voxbridge.services.tools.session.intake import ACK_WAIT_S, Intake
from voxbridge.services.tools.session.library import Library
from voxbridge.services.tools.session.lookup import runnable
from voxbridge.services.tools.session.names import Names
from voxbridge.services.tools.session.session import WRITER, Session
from voxbridge.services.tools.session.sessions import Sessions
from voxbridge.services.tools.session.undoing import Undoing
from voxbridge.services.tools.session.unwanted import Unwanted
from voxbridge.shared import events, things
from voxbridge.shared.agents.tasks import SUBJECT
from voxbridge.shared.bus import subjects
from voxbridge.shared.cancellation import ended
from voxbridge.shared.condition import Condition
from voxbridge.shared.config import Recording
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.voice import Failure, SessionEnded, TasksWanted, ToolCalled
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.knowledge import asking
from voxbridge.shared.log import reader
from voxbridge.shared.platform import checking
from voxbridge.shared.service.process import Resources, Service
from voxbridge.shared.step.effects import Tasks, Timers
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.store.store import Store
from voxbridge.shared.terminals import client as terminals
from voxbridge.shared.terminals.model import LOCAL_HOST
from voxbridge.shared.workspace import Workspace

LIVE: Final = (
    *(f"vxc.*.voice.c.{end}" for end in (subjects.SESSION, "tool.cancelled", "session.ended")),
    f"vxc.*.gateway.i.{subjects.REQUEST}",
    subjects.live_subject(subjects.ACCOUNTS, "gateway", "i", subjects.REQUEST),
)
"""Subjects of events that concern open calls. Two of them are those that a voice worker of the first release uses."""

_STOPPING: Final = (
    *("tool.cancelled", "session.ended", "approval.answered", "approval.clicked", "task.cancel_requested"),
    *("run.answered", "run.answer_received"),
)
AGAIN_S: Final = 1.0
"""Seconds after which a call is delivered again when the log was unavailable."""

HELD_LIMIT: Final = 4_096
"""Open calls and tasks of one process; above it, calls are refused with `OVERLOADED`."""

HANDED_OVER_LIMIT: Final = 256
"""Functions beyond `RUNNING_LIMIT` that a process runs because others hand them over."""

LOOK_AFTER_S: Final = 5.0
_IDLE_S: Final = 0.6
_STOP_S: Final = 0.25
_SAY_S: Final = 2.0
"""Seconds for recording interruptions at shutdown: several writes to the log in a row, on a busy disk."""

_log = logging.getLogger(__name__)


class ToolService(Service):
    """A process of the tool executor. Make it with `build`."""

    def __init__(self, resources: Resources, loaded: Loaded) -> None:
        self._nc = resources.events_nc
        self._clock = resources.clock
        self._loaded = loaded
        self._tools = Catalogue(loaded.tools)
        self._log = resources.log
        self._store = Store(resources.redis)
        self._notes = Notes(self._log, self._store)
        self._time_zone = zones.chosen(resources.config.time_zone, zones.of_machine())
        self._playbooks_dir = resources.config.playbooks_dir
        self._tours_dir = resources.config.tours_dir
        self._workspace = Workspace(resources.config.workspace_paths, make=not resources.config.workspace_dirs)
        self._children = Children(self._tools)
        self._children_asked = ChildSessions(self._nc, self._log)
        self._mcp = McpServers.from_file(self._tools, resources.config.mcp_file)
        self._fetcher = Fetcher(resources.config.fetch_hosts)
        self._effects = Effects(self._ended, self._children)
        self._intake = Intake(self._log, self._take, process_id=resources.process_id)
        self._sessions = Sessions(
            self._log, self._clock, self._intake, process_id=resources.process_id, decide=self._decide, perform=self._perform
        )
        self._accounts = Accounts(self._sessions)
        self._handover = Handover(self._log, self._intake, process_id=resources.process_id, room=self._room_for_others)
        self._unwanted = Unwanted(self._log, self._intake, self._sessions, self._accounts, process_id=resources.process_id)
        self._undoing = Undoing(self._log, self._tools, lambda: self._accounts)
        self._library = Library(self._log, resources.config.workflows_dir)
        self._customers = Customers.of(resources.config, resources.redis, self._log)
        self._decisions = Decisions(self._log, self._tools, self._library, self._accounts.count, self._customers)
        self._timers = Timers[Key](self._fire)
        self._doing = Tasks[None]("the tool executor")
        self._handling = 0
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._drained = asyncio.Event()
        self._published = 0

    def health(self) -> Mapping[str, bool | Condition]:
        """Return whether the functions are in the catalogue, and which packs were left out."""
        return {"catalogue": self._published > 0, "packs": self._loaded.condition}

    def stats(self) -> Mapping[str, float]:
        """Return counts: effects that run, calls that are open, sessions, calls taken, handed over and refused, and children."""
        return (
            {
                "running": len(self._effects),
                "open": len(self._intake),
                "sessions": len(self._sessions),
                "taken": self._intake.taken,
                "handed_over": self._handover.given,
                "refused": self._intake.refused,
                "children": len(self._children),
            }
            | dict(self._tools.figures())
            | dict(self._mcp.figures())
        )

    async def prepare(self, *, retention_days: int, recording: Recording | None = None, replicas: int = 0) -> None:
        """Create the service's streams and consumer in NATS, and subscribe."""
        await self._log.ensure_streams(retention_days=retention_days, recording=recording, replicas=replicas)
        await self._intake.ensure()
        await self._handover.start()
        await self._unwanted.start()
        for subject in LIVE:
            await self._nc.subscribe(subject, cb=self._live)

    async def answer(self, micro: Micro) -> None:
        """Answer `vx.svc.tools.list`, `vx.svc.tools.mcp`, `vx.svc.tools.thermal`, `vx.svc.tools.tasks`, `vx.svc.tools.names` and
        `vx.svc.tools.handlers`."""
        await micro.add_endpoint(name="list", subject="vx.svc.tools.list", handler=self._tools.answer)
        await micro.add_endpoint(name="mcp", subject="vx.svc.tools.mcp", handler=self._mcp.answer)
        await micro.add_endpoint(name="tasks", subject=SUBJECT, handler=self._accounts.answer)
        await micro.add_endpoint(name="handlers", subject=checking.SUBJECT, handler=self._customers.answer)
        names = Names(self._library, asking(self._nc), terminals.asking(self._nc, LOCAL_HOST))
        await micro.add_endpoint(name="names", subject=things.SUBJECT, handler=names.answer)
        await micro.add_endpoint(name="thermal", subject=endpoint.SUBJECT, handler=endpoint.answer)

    async def serve(self) -> None:
        """Take calls until drained."""
        self._do(asyncio.to_thread(prepare, self._loaded.packs))
        self._do(self._children.warm_up())
        beside = [asyncio.create_task(work) for work in (self._intake.renew(), self._look_after(), self._mcp.run())]
        try:
            await self._intake.run(self._stopping, self._room, self._room_changed)
            await self._settle()
        finally:
            await ended(*beside)
            self._effects.close()
            await self._children.stop()
            await self._customers.close()
            self._drained.set()

    async def drain(self) -> None:
        """Take no more calls, and return when the running ones are done or given up."""
        self._stopping.set()
        await self._drained.wait()

    # --- messages ---

    def _take(self, recorded: events.Recorded) -> None:
        self._handling += 1
        self._do(self._handle(recorded))

    def _room(self) -> int:
        return RUNNING_LIMIT - len(self._effects) - self._handling

    def _room_for_others(self) -> int | None:
        return None if self._stopping.is_set() else self._room() + HANDED_OVER_LIMIT

    async def _room_changed(self, timeout_s: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    async def _handle(self, recorded: events.Recorded) -> None:
        sid, seq = recorded.sid, recorded.seq
        try:
            if await self._intake.is_elsewhere(sid, seq):
                self._intake.release(sid, seq)
            elif not self._stopping.is_set() and await self._handover.offer(sid, seq):
                pass
            elif self._stopping.is_set():
                await self._intake.give_back(sid, seq)
            elif isinstance(recorded.event, SessionEnded) and await self._never_called(sid):
                await self._intake.done(sid, seq)
            elif isinstance(recorded.event, Decision) and await self._concerns_another(sid, recorded.event):
                await self._intake.give_back(sid, seq, after_s=AGAIN_S)
            elif isinstance(recorded.event, TasksWanted):
                await self._accounts.recall(self.session(sid), recorded.event)
                await self._intake.done(sid, seq)
            else:
                await self._decisions.learn(sid, recorded.event)
                await self._sessions.take(self.session(sid), LogInput(recorded))
                if (counted := self._decisions.taken(recorded.event)) is not None:
                    await self._accounts.uncount(counted.account, sid, counted.call_id)
        except VoxbridgeError as error:
            _log.warning("session %s: %s waits: %s", sid, recorded.type, error.message)
            if error.retryable or isinstance(error, Conflict):
                await self._intake.give_back(sid, seq, after_s=AGAIN_S)
            else:
                await self._intake.failed(sid, seq, after_s=AGAIN_S)
        except Exception:
            await self._intake.failed(sid, seq, after_s=ACK_WAIT_S)
            raise
        finally:
            self._handling -= 1
            self._changed.set()

    async def _live(self, message: Msg) -> None:
        """Take what concerns an open call in the process that has the call, whichever process the consumer delivers it to."""
        if reader.type_of(message) not in _STOPPING:
            return
        recorded = reader.decode(message)
        if isinstance(recorded.event, SessionEnded):
            self._customers.ended(recorded.sid)
        here = self._intake.holds_any(recorded.sid) and not self._intake.holds(recorded.sid, recorded.seq)
        if here and not self._stopping.is_set() and not isinstance(recorded.event, events.Unreadable):
            self._do(self._sessions.record(self.session(recorded.sid), LogInput(recorded)))

    async def _never_called(self, sid: str) -> bool:
        """Tell whether no function was ever called in a session. Most sessions end like that, and nothing need be logged."""
        return self._sessions.held(sid) is None and not (await self._log.position(sid, WRITER))[0]

    async def _concerns_another(self, sid: str, event: Decision) -> bool:
        """Tell whether another process has the call that is decided upon: that one is to run it, and hears the decision too."""
        session = self.session(sid)
        await session.opened()
        call = concerned(session.state, event)
        return call is not None and not self._intake.holds(sid, call.seq) and await self._intake.held_elsewhere(sid, call.seq)

    # --- sessions ---

    def session(self, sid: str) -> Session:
        """Return the session of this id in this process; open it at its first input."""
        return self._sessions.of(sid)

    def _decide(self, wanted: Resolve) -> Accepted | Rejected | None:
        if self._stopping.is_set():  # a run's next step is its successor's
            return None
        return self._decisions.decide(wanted, full=len(self._intake) > HELD_LIMIT)

    async def _perform(self, session: Session, output: Any) -> None:
        if isinstance(output, StartEffect):
            self._start(session, output)
        elif isinstance(output, CancelEffect):
            self._effects.cancel((session.sid, output.call_id))
        elif isinstance(output, SetTimer):
            self._timers.set((session.sid, output.call_id), (output.at - self._clock.now_us()) / 1_000_000)
        elif isinstance(output, CancelTimer):
            self._timers.cancel((session.sid, output.call_id))
        elif isinstance(output, ForAccount):
            await self._accounts.perform(session, output)
        elif isinstance(output, Done):
            await self._intake.done(session.sid, output.seq)

    def _facilities(self) -> Facilities:
        return Facilities(
            time_zone=self._time_zone,
            store=self._store,
            notes=self._notes,
            workspace=self._workspace,
            playbooks_dir=self._playbooks_dir,
            tours_dir=self._tours_dir,
            in_child=self._effects.in_child,
            fetcher=self._fetcher,
            knowledge=asking(self._nc),
            terminals=terminals.asking(self._nc, LOCAL_HOST),
            children=self._children_asked,
            tools=self._tools,
            keep=self._keep,
            approvals=partial(standing.read, self._log),
            library=self._library,
            tasks=self._accounts.tasks,
            unwanted=self._unwanted.cancel,
            undo=self._undoing.undo,
        )

    async def _keep(self, account: str, event: events.Event) -> None:
        await self.session(subjects.account_log(account)).take(fact(event))

    def _start(self, session: Session, effect: StartEffect) -> None:
        call_id, attempt = effect.call_id, effect.attempt
        tool = runnable(self._customers.called(call_id) or self._tools, effect)
        if isinstance(tool, Failure):
            self._do(self._sessions.record(session, Raised(call_id=call_id, attempt=attempt, error=tool)))
            return
        context = context_of(session, effect, self._facilities(), now=self._clock.now_us())
        self._effects.start((session.sid, call_id), effect, tool, context)

    def _ended(self, key: Key, outcome: Outcome) -> None:
        self._changed.set()
        if not self._stopping.is_set() or not isinstance(outcome, Raised) or outcome.error.code != Code.CANCELLED:
            self._do(self._sessions.record(self.session(key[0]), outcome))

    # --- timers ---

    def _fire(self, key: Key) -> None:
        sid, call_id = key
        self._do(self._sessions.record(self.session(sid), TimerFired(call_id=call_id)))

    # --- the rest ---

    async def _look_after(self) -> None:
        """Restore what Valkey lost: the notes first, then the catalogue, which marks the notes as complete. Publish what changed."""
        while True:
            version = self._tools.version
            try:
                lost = not self._published or self._notes.stale or await self._notes.lost()
                if lost:
                    count = await self._notes.restore()
                    _log.info("the catalogue has %d functions; the log has %d notes.", len(self._tools), count)
                if lost or self._published != version:
                    await self._store.publish_functions(self._tools.cards())
                    self._published = version
            except VoxbridgeError as error:
                _log.warning("the catalogue waits: %s", error.message)
                await asyncio.sleep(LOOK_AFTER_S)
            else:
                await self._tools.changed(version, LOOK_AFTER_S)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._doing.background(work)

    async def _settle(self) -> None:
        """Hand waiting work to a successor at once, let short functions end, and record that the others were interrupted."""
        self._timers.cancel_all()
        await self._doing.background_idle(_STOP_S)  # after that, every call being taken has either begun or not
        await asyncio.gather(*(self._intake.give_back(one.sid, one.seq) for one in self._intake.held() if not self._runs(one)))
        await self._effects.idle(_IDLE_S)
        await self._effects.stop(_STOP_S)
        await self._doing.background_idle(_STOP_S)
        try:
            async with asyncio.timeout(_SAY_S):
                await asyncio.gather(*(self._interrupt(one) for one in self._intake.held() if self._runs(one)))
        except TimeoutError:
            _log.warning("not all that ran could be said to be interrupted; a successor says it.")
        self._effects.close()
        await self._intake.give_all_back()
        await self._sessions.close(_STOP_S)

    def _runs(self, called: events.Recorded) -> bool:
        return bool(self._running(called))

    async def _interrupt(self, called: events.Recorded) -> None:
        """Redeliver the call to its session, which records the interruption. An idempotent call is left to the successor."""
        if any(not call.rules.idempotent for call in self._running(called)):
            with suppress(VoxbridgeError):  # the log is away: the successor records it
                await self.session(called.sid).take(LogInput(called))

    def _running(self, called: events.Recorded) -> list[Call]:
        """Return the calls that run because of this event: the call itself, or a step of the run that it began."""
        session = self._sessions.held(called.sid)
        if session is None or not isinstance(called.event, ToolCalled | ToolRequested):
            return []
        return [call for call in session.state.open.values() if call.seq == called.seq and isinstance(call.phase, Running)]


async def build(resources: Resources) -> ToolService:
    """Build the service: load the functions, make the streams and the consumer, and answer `vx.svc.tools.list`."""
    config = resources.config
    service = ToolService(resources, await asyncio.to_thread(usable, named(config.tool_packs), timeout_s=config.tool_timeout_s))
    await service.prepare(retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
    await service.answer(resources.micro)
    return service
