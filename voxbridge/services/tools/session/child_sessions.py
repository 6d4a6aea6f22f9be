"""Child sessions as functions use them: who there is, and an answer to a text.

Owns the wait for an answer, which is read from the child's own log: it is there whoever asked first and whichever worker made it, so a call
that is taken up after a crash finds the answer that was made meanwhile. Does not own the session, nor its limits. A crash here loses the
wait alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from nats.aio.client import Client

from voxbridge.shared import child_sessions, events
from voxbridge.shared.child_sessions import Card, Put
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import voice
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log

PATIENCE_S: Final = 12.0
"""Seconds for which a gateway that does not answer is asked again: one that died is back in about two."""

AGAIN_S: Final = 0.5
ENDS_S: Final = 2.0
"""Seconds after a turn that was cut off, within which the session's end is taken for the reason."""

Calls = Callable[[str, int], Awaitable[None]]
"""Told of each function that the child calls, with its number from 1."""


class ChildSessions:
    """The child sessions that the functions of one executor ask for."""

    def __init__(self, nc: Client, log: Log) -> None:
        self._nc = nc
        self._log = log
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def cards(self) -> tuple[Card, ...]:
        """Return the agents of the installation. Raises `UNAVAILABLE`."""
        return await child_sessions.cards(self._nc)

    async def answer(self, put: Put, calls: Calls) -> str:
        """Put a text into a child session, and return what it answers; one text at a time in one session.

        Raises as `child_sessions.put`, and the error with which the child ended. A child that ended after it had answered this very text
        is not an error: its answer is in its log.
        """
        turn = self._turns.setdefault(put.child, asyncio.Lock())
        async with turn:
            refused: VoxbridgeError | None = None
            try:
                await self._put(put)
            except VoxbridgeError as error:
                if error.code != Code.CONFLICT:
                    raise
                refused = error
            heard = _Heard(put.text_id, calls, refused)
            feed = Feed(self._log, put.child, heard.take, writer="voice", visibility="c")
            try:
                await feed.start()
                return await heard.answer
            finally:
                await feed.stop()

    async def _put(self, put: Put) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                await child_sessions.put(self._nc, put)
            except VoxbridgeError as error:
                if error.code != Code.UNAVAILABLE or loop.time() + AGAIN_S > until:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return


class _Heard:
    """Reader of a child's log up to the end of the turn that answers one text."""

    def __init__(self, text_id: str, calls: Calls, refused: VoxbridgeError | None) -> None:
        """Read for this text. `refused` is the error of a session that was over before the text came."""
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._text_id = text_id
        self._calls = calls
        self._refused = refused
        self._turn = 0
        self._called = 0
        self._words: list[str] = []
        self._failed: voice.Failure | None = None

    async def take(self, recorded: events.Recorded) -> None:
        match recorded.event:
            case voice.UserSaid(text_id=text_id, turn=turn) if text_id == self._text_id:
                self._turn = turn
            case voice.AgentSaid(turn=turn, text=text, apology=apology) if turn and turn == self._turn and not apology:
                self._words.append(text)
            case voice.ToolCalled(turn=turn, name=name) if turn and turn == self._turn:
                self._called += 1
                if not self.answer.done():
                    await self._tell(name)
            case voice.ProviderFailed(turn=turn, error=error, handled=False) if turn and turn == self._turn:
                self._failed = error
            case voice.TurnCompleted(number=number, reason=reason) if number and number == self._turn:
                self._over(reason)
            case voice.SessionEnded(reason=reason, error=error):
                self._end(self._refused or _ended(reason, error))

    async def _tell(self, name: str) -> None:
        try:
            await self._calls(name, self._called)
        except VoxbridgeError as error:  # the call for which this is done is over
            self._end(error)

    def _over(self, reason: voice.TurnReason) -> None:
        text = " ".join(filter(None, (one.strip() for one in self._words)))
        if self.answer.done():
            return
        if reason == "completed" and text:
            self.answer.set_result(text)
        elif self._failed is not None:
            self.answer.set_exception(_of(self._failed))
        else:  # the end of the session comes right behind the turn that it cut off, and says why
            message = "The agent was interrupted and did not answer."
            error = VoxbridgeError(Code.INTERRUPTED, message, retryable=True)
            asyncio.get_running_loop().call_later(ENDS_S, self._end, error)

    def _end(self, error: VoxbridgeError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def _ended(reason: str, error: voice.Failure | None) -> VoxbridgeError:
    if error is not None:
        return _of(error)
    if reason in ("cancelled", "parent_ended"):
        return VoxbridgeError(Code.CANCELLED, "The agent was stopped: nobody waits for it any more.", retryable=False)
    return VoxbridgeError(Code.INTERRUPTED, f"The agent's session ended before it answered ({reason}).", retryable=False)


def _of(failure: voice.Failure) -> VoxbridgeError:
    known = failure.code if failure.code in Code.__members__.values() else Code.INTERNAL
    return VoxbridgeError(Code(known), failure.message, retryable=failure.retryable)
