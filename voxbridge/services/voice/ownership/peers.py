"""Detection of dead workers, by NATS itself.

Each worker subscribes to a subject of its own. When another worker publishes there with a reply subject and there is no subscriber, the
server answers "no responders". It does so from the moment the kernel closes the socket of a dead process, however busy the machine is. A
worker that is slow, or stalled, stays subscribed and is not taken for dead. A worker that lost its NATS connection is, after `CONFIRM_S`:
it could not send or write either, and its leases and the fence on the log refuse what it believes to own.

Owns which workers are asked, how often, and when a death counts. Does not own what follows (`orphans`). A crash here loses nothing: the
remaining workers ask, and a lease that is not renewed runs out in any case.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.api import Header

from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError

ALIVE: Final = "vx.svc.voice.alive"
"""Prefix of the subjects: each worker listens on `vx.svc.voice.alive.<worker>`, and answers nothing."""

ASK_S: Final = 0.1
REST_S: Final = 0.5
"""Seconds between two looks for somebody to ask while nobody else holds a session."""

CONFIRM_S: Final = 0.2
"""Seconds without a listener, in at least three questions in a row, after which a worker counts as dead: a connection that was cut is made
again sooner."""

HURRY_S: Final = 1.0
HURRY_ASK_S: Final = 0.02
"""Duration and interval, in seconds, of the faster questions after a reported death (`voxbridge.shared.bus.subjects.GONE`). During that
time one "no responders" is enough."""

QUIET_S: Final = 2.0
"""Seconds after a cut of this worker's own connection in which nothing is concluded: the other workers are still reconnecting."""

AGAIN_S: Final = 1.0
"""Seconds before the same death is reported again, while the dead worker still owns something."""

WATCHED: Final = 4
"""Number of workers that one worker asks: those that follow it when all are sorted by name. If several die together, a living worker asks
the first of them, and then the next."""

_UNANSWERED: Final = "503"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Silence:
    """Silence of a worker: its start, the number of unanswered questions, and the newest of them."""

    since: float
    asked: int
    newest: int


class Peers:
    """Watch over the workers that own sessions: asks whether they are there."""

    def __init__(
        self,
        nc: Client,
        worker: str,
        owners: Callable[[], Collection[str]],
        dead: Callable[[str], Awaitable[None]],
        look_soon: Callable[[], None],
    ) -> None:
        """Create the watch. `owners` returns the workers that hold sessions and listen like this one; `dead` is called for each death, and
        `look_soon` on word of one, which may be of an owner that is not known yet."""
        self._nc = nc
        self._worker = worker
        self._owners = owners
        self._dead = dead
        self._look_soon = look_soon
        self._inbox = ""
        self._asked = 0
        self._silent: dict[str, _Silence] = {}
        self._told: dict[str, float] = {}
        self._hurry_until = 0.0
        self._quiet_until = 0.0
        self._word = asyncio.Event()
        self._subscriptions: list[Subscription] = []
        self._telling: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Subscribe, so that other workers find this one; returns once the server has the subscriptions. Raises `nats.errors.Error`."""
        nc, self._inbox = self._nc, self._nc.new_inbox()
        for subject, callback in (
            (f"{ALIVE}.{self._worker}", _ignore),
            (f"{self._inbox}.*.*", self._answered),
            (subjects.GONE, self._heard_of_a_death),
        ):
            self._subscriptions.append(await nc.subscribe(subject, cb=callback))
        await nc.flush()

    async def watch(self) -> None:
        """Ask until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            watched = await self._ask()
            hurried = loop.time() < self._hurry_until
            with suppress(TimeoutError):
                async with asyncio.timeout(HURRY_ASK_S if hurried else ASK_S if watched else REST_S):
                    await self._word.wait()
            self._word.clear()

    async def leave(self) -> None:
        """Unsubscribe, and wait for the deaths that were reported to be handled."""
        with suppress(NatsError, OSError):
            for subscription in self._subscriptions:
                await subscription.unsubscribe()
        self._subscriptions.clear()
        while self._telling:
            await asyncio.wait(self._telling)

    async def catch_up(self) -> None:
        """Conclude nothing for `QUIET_S` after a cut, as a follower of the log: the other workers reconnect a little later."""
        self._quiet_until = asyncio.get_running_loop().time() + QUIET_S
        self._silent.clear()

    def watched(self) -> list[str]:
        """Return the workers that this worker asks."""
        others = sorted({one for one in self._owners() if one != self._worker and _NAME.fullmatch(one)})
        after = [one for one in others if one > self._worker]
        return [*after, *(one for one in others if one < self._worker)][:WATCHED]

    async def _ask(self) -> bool:
        """Ask those who are watched; return whether there is anybody."""
        if not self._nc.is_connected or asyncio.get_running_loop().time() < self._quiet_until:
            return True
        self._asked += 1
        watched = self.watched()
        for gone in self._silent.keys() - set(watched):
            del self._silent[gone]
        for peer in watched:
            try:
                await self._nc.publish(f"{ALIVE}.{peer}", b"", reply=f"{self._inbox}.{self._asked}.{peer}")
            except NatsError as error:
                _log.debug("%s was not asked: %s", peer, error)
        return bool(watched)

    async def _answered(self, message: Msg) -> None:
        if (message.headers or {}).get(Header.STATUS) != _UNANSWERED:
            return
        number, peer = message.subject.rsplit(".", 2)[1:]
        asked, now = int(number), asyncio.get_running_loop().time()
        if now < self._quiet_until:
            return
        silence = self._silent.get(peer)
        if silence is None or asked > silence.newest + 1:
            silence = self._silent[peer] = _Silence(now, 0, asked)
        silence.asked, silence.newest = silence.asked + 1, asked
        hurried = now < self._hurry_until
        if hurried or (silence.asked > 2 and now - silence.since >= CONFIRM_S):
            self._tell(peer, now, first=not hurried)

    def _tell(self, peer: str, now: float, *, first: bool) -> None:
        if now - self._told.get(peer, -AGAIN_S) < AGAIN_S:
            return
        known = peer in self._told
        self._told = {one: at for one, at in self._told.items() if now - at < QUIET_S}
        self._told[peer] = now
        if not known:
            _log.warning("%s is gone; others carry its sessions on", peer)
        task = asyncio.create_task(self._pass_on(peer, tell_others=first and not known))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _pass_on(self, peer: str, *, tell_others: bool) -> None:
        if tell_others:
            await subjects.publish(self._nc, subjects.GONE, peer.encode())
        try:
            await self._dead(peer)
        except VoxbridgeError as error:
            _log.warning("what %s held is left to whoever finds its leases run out: %s", peer, error.message)

    async def _heard_of_a_death(self, _message: Msg) -> None:
        """Ask faster for a while: a death was reported. The report itself is not trusted, the questions verify it."""
        self._hurry_until = asyncio.get_running_loop().time() + HURRY_S
        self._look_soon()
        self._word.set()


async def _ignore(_: Msg) -> None:
    """Ignore a question: that there is a listener is the answer."""
