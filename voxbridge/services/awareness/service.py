"""The awareness service: keeps, for each account, what its user has been doing, and answers `vx.svc.awareness.<verb>`.

Owns the wiring: which accounts are looked at, and when. Does not own the rules (`core`), the order of recording (`account`) nor how calls
end (`ends`). Without this service calls go on, and agents know what they were told last; what clients report waits in the log. A crash
loses nothing: the next process takes what the journal does not name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.micro.request import Request

from voxbridge.services.awareness.account import Account
from voxbridge.services.awareness.core.inputs import CallEnded
from voxbridge.services.awareness.core.state import view
from voxbridge.services.awareness.ends import Ends
from voxbridge.shared import awareness_client as questions
from voxbridge.shared.awareness.view import of_session
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import awareness_subject
from voxbridge.shared.cancellation import ended
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.reader import subject_of
from voxbridge.shared.service.process import Resources, Service
from voxbridge.shared.step.effects import Tasks

ACCOUNTS_KEPT: Final = 256
"""Accounts that are in memory."""

AT_ONCE: Final = 8
"""Accounts that are read at the same time."""

AGAIN_S: Final = 1.0
TRIES: Final = 60
LIVE: Final = subjects.live_subject(subjects.AWARENESS_OF_ALL, "gateway", "i", ">")

_log = logging.getLogger(__name__)


class AwarenessService(Service):
    """A process of the awareness service. Make it with `build`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._log = resources.log
        self._accounts: OrderedDict[str, Account] = OrderedDict()
        self._made = 0
        self._ends = Ends(self._log, self._ended)
        self._dirty: set[str] = set()
        """Accounts whose reports are about to be read."""

        self._doing = Tasks[None]("the awareness service")
        self._room = asyncio.Semaphore(AT_ONCE)
        self._caught_up = 0
        self._stopping = asyncio.Event()

    def stats(self) -> Mapping[str, float]:
        """Return counts: accounts in memory, times that reports were read, and ends of calls that were taken."""
        return {"accounts": len(self._accounts), "caught_up": self._caught_up, "ends": self._ends.taken}

    async def prepare(self) -> None:
        """Create the streams and consumers, and subscribe."""
        config = self._resources.config
        await self._log.ensure_streams(retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
        await self._ends.ensure()
        await self._resources.events_nc.subscribe(LIVE, cb=self._live)
        self._log.follow(self)
        for verb, answer in {"view": self._view, "rebuild": self._rebuild, "forget": self._forget}.items():
            await self._resources.micro.add_endpoint(name=verb, subject=awareness_subject(verb), handler=_answering(answer))

    async def serve(self) -> None:
        """Take reports and ends until drained."""
        self._doing.background(self.catch_up())
        working = asyncio.create_task(self._ends.run())
        try:
            await self._stopping.wait()
        finally:
            await ended(working)
            self._log.unfollow(self)

    async def drain(self) -> None:
        """Take no more, and write the rest of the journals."""
        self._stopping.set()
        self._doing.cancel_background()
        await self._doing.background_idle(1.0)
        for account in self._accounts.values():
            if not account.busy:
                await account.close()

    async def catch_up(self) -> None:
        """Read the reports of every account: after a start, and after a cut, in which live copies may be lost."""
        found: set[str] = set()
        for _ in range(TRIES):
            try:
                async for page in self._log.pages(subjects.AWARENESS_OF_ALL, writer="gateway"):
                    found.update(subjects.parse_event_subject(subject_of(message))[0] for message in page.messages)
                break
            except VoxbridgeError as error:
                _log.warning("the reports of clients wait: %s", error.message)
                await asyncio.sleep(AGAIN_S)
        for log_id in found:
            self._read(subjects.watched_account(log_id))

    def account(self, name: str) -> Account:
        """Return what is known of an account. Raises `INVALID_ARGUMENT` for what is not an account's name."""
        account = self._accounts.get(name)
        if account is None:
            self._made += 1
            stem = f"{self._resources.process_id}-{self._made}"
            account = self._accounts[name] = Account(self._log, name, stem=stem, clock=self._resources.clock)
            idle = [other for other, one in self._accounts.items() if other != name and not one.busy]
            for other in idle[: max(0, len(self._accounts) - ACCOUNTS_KEPT)]:
                self._doing.background(self._accounts.pop(other).close())
        self._accounts.move_to_end(name)
        return account

    async def _live(self, message: Msg) -> None:
        self._read(subjects.watched_account(f"~{message.subject.split('.')[1]}"))

    def _read(self, name: str) -> None:
        if name and name not in self._dirty and not self._stopping.is_set():
            self._dirty.add(name)
            self._doing.background(self._take_reports(name))

    async def _take_reports(self, name: str) -> None:
        for _ in range(TRIES):
            async with self._room:
                self._dirty.discard(name)
                try:
                    await self.account(name).catch_up()
                except VoxbridgeError as error:
                    _log.warning("the reports of %s wait: %s", name, error.message)
                else:
                    self._caught_up += 1
                    return
            await asyncio.sleep(AGAIN_S)

    async def _ended(self, name: str, call: CallEnded) -> None:
        await self.account(name).take(call)

    async def _view(self, request: Request) -> msgspec.Struct:
        asked = msgspec.json.decode(request.data, type=questions.AskView)
        state = await self.account(asked.account).catch_up()
        seen = view(state)
        return questions.Known(
            view=of_session(seen, asked.session) if asked.session else seen, off=state.off, counts=state.counts, errors=len(state.problems)
        )

    async def _rebuild(self, request: Request) -> msgspec.Struct:
        asked = msgspec.json.decode(request.data, type=questions.AskRebuild)
        begun = time.monotonic()
        equal, inputs = await self.account(asked.account).refolded()
        return questions.Rebuilt(equal=equal, inputs=inputs, ms=round((time.monotonic() - begun) * 1_000))

    async def _forget(self, request: Request) -> msgspec.Struct:
        asked = msgspec.json.decode(request.data, type=questions.AskForget)
        await self.account(asked.account).forget()
        return questions.Forgotten()


def _answering(answer: Callable[[Request], Awaitable[msgspec.Struct]]) -> Callable[[Request], Awaitable[None]]:
    async def handle(request: Request) -> None:
        try:
            await request.respond(msgspec.json.encode(await answer(request)))
        except msgspec.MsgspecError as error:
            await _refuse(request, VoxbridgeError(Code.INVALID_ARGUMENT, f"The question cannot be read: {error}."))
        except VoxbridgeError as error:
            await _refuse(request, error)
        except Exception:  # noqa: BLE001 - whoever asked is answered
            _log.exception("a question failed.")
            await _refuse(request, VoxbridgeError(Code.INTERNAL, "The awareness service failed; its log says why."))

    return handle


async def _refuse(request: Request, error: VoxbridgeError) -> None:
    await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))


async def build(resources: Resources) -> AwarenessService:
    """Build the service: make the streams and the consumers, and answer questions."""
    service = AwarenessService(resources)
    await service.prepare()
    return service
