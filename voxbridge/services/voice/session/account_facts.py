"""Facts of accounts, for the sessions of this worker: read once, and followed from then on.

Owns what this worker knows of them, a copy of what the accounts' logs say. Does not own what they mean (`macros`, `unheard`). A crash
loses nothing: the next worker reads them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from voxbridge.services.voice.core import inputs
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.step.effects import Tasks

if TYPE_CHECKING:
    from voxbridge.services.voice.session.session import Session

ACCOUNTS_KEPT: Final = 256
"""Accounts of which something is in memory."""

FRESH_S: Final = 60.0
"""Seconds for which a session that begins is told what was read before: a live copy of a change may be lost between servers."""

AGAIN_S: Final = 1.0
TRIES: Final = 30
"""Seconds between tries to read a log that does not answer, and their number, before sessions are left with what they know."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class AccountFacts(Generic[T]):
    """Facts of the accounts that have sessions here, from events on these subjects. `sessions` are told of changes."""

    followed: tuple[str, ...]
    """Subjects of their live copies."""

    called: str
    """Name of the facts in the log of the process."""

    nothing: T

    def __init__(self, log: Log, sessions: Mapping[str, Session]) -> None:
        self.log = log
        self._sessions = sessions
        self._known: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._reading: dict[str, asyncio.Task[T]] = {}
        self._stale: set[str] = set()
        """Accounts whose facts changed while they were read."""

        self._doing = Tasks[None](self.called)
        self._subscriptions: list[Subscription] = []

    async def start(self) -> None:
        """Follow the logs of accounts."""
        self.log.follow(self)
        for subject in self.followed:
            self._subscriptions.append(await self.log.nc.subscribe(subject, cb=self._live))

    async def stop(self) -> None:
        """Follow them no more."""
        self.log.unfollow(self)
        self._doing.cancel_background()
        for subscription in self._subscriptions:
            try:
                await subscription.unsubscribe()
            except (NatsError, OSError) as error:
                _log.warning("a subscription was left behind: %s", error)

    async def read(self, account: str) -> T:
        """Read the facts of an account from its log. Raises `UNAVAILABLE`."""
        raise NotImplementedError

    def known(self, session: Session) -> T:
        """Return what a session knows."""
        raise NotImplementedError

    def of_session(self, facts: T, account: str, sid: str) -> T:  # noqa: ARG002 - most are told to every session
        """Return the part of an account's facts that a session may be told."""
        return facts

    def changed(self, facts: T) -> inputs.Input:
        """Return the input that tells a session of a change."""
        raise NotImplementedError

    async def of(self, account: str) -> T:
        """Return the facts of an account; none while the log does not answer."""
        found = await self._of(account)
        return self.nothing if found is None else found

    async def catch_up(self) -> None:
        """Read again what may have changed while the connection was cut."""
        self._known.clear()
        self._doing.background(self._tell_all())

    def check(self, session: Session) -> None:
        """Have a session that was taken over told of what changed meanwhile."""
        self._doing.background(self._tell(_account(session), {session.sid: session}))

    async def _tell_all(self) -> None:
        for account in {_account(session) for session in self._sessions.values()}:
            await self._tell(account, self._sessions)

    async def _live(self, message: Msg) -> None:
        account = subjects.account_of(f"@{message.subject.split('.')[1]}")
        self._known.pop(account, None)
        if account in self._reading:
            self._stale.add(account)
        if any(_account(session) == account for session in self._sessions.values()):
            self._doing.background(self._tell(account, self._sessions))

    async def _tell(self, account: str, sessions: Mapping[str, Session]) -> None:
        facts = await self._of(account)
        for _ in range(TRIES):
            if facts is not None:
                break
            await asyncio.sleep(AGAIN_S)
            facts = await self._of(account)
        if facts is None:  # sessions keep what they know; the next change, or cut, has it read again
            return
        for session in [one for one in sessions.values() if _account(one) == account]:
            mine = self.of_session(facts, account, session.sid)
            if session.state.phase == "open" and self.known(session) != mine:
                session.take(self.changed(mine))

    async def _of(self, account: str) -> T | None:
        """Return the facts of an account as they were read `FRESH_S` ago at most, or None while the log does not answer."""
        found, read_at = self._known.get(account, (None, 0.0))
        if found is None or asyncio.get_running_loop().time() - read_at > FRESH_S:
            try:
                found = await self._read(account)
            except VoxbridgeError as error:
                _log.warning("the %s of %s cannot be read now: %s", self.called, account, error.message)
        return found

    async def _read(self, account: str) -> T:
        """Read the facts of an account, once for all who want them now. Raises `UNAVAILABLE`."""
        reading = self._reading.get(account)
        if reading is None:
            reading = self._reading[account] = asyncio.create_task(self._read_log(account))
            reading.add_done_callback(lambda _: self._reading.pop(account))
        return await asyncio.shield(reading)

    async def _read_log(self, account: str) -> T:
        again = True
        while again:
            self._stale.discard(account)
            facts = await self.read(account)
            again = account in self._stale
        self._known.pop(account, None)
        self._known[account] = (facts, asyncio.get_running_loop().time())
        while len(self._known) > ACCOUNTS_KEPT:
            self._known.popitem(last=False)
        return facts


def _account(session: Session) -> str:
    return session.state.request.account if session.state.request is not None else ""
