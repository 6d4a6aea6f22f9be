"""The model behind a connection of the fake Gemini: performs one turn after the other, and can be interrupted.

Content is sent without delay unless `Options.pace` is set. A test that interrupts therefore uses a turn that stops by itself
(`Turn.stops_at_ms`), which needs no clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.gemini.turns import PIECE_MS, Call, Line, Turn, audio_content, content, spoken, usage, words

if TYPE_CHECKING:
    from tests.fakes.gemini.session import Session


class _Interrupted(Exception):
    pass


@dataclass
class _Round:
    """Calls of one message that are not all answered. `after` follows the answers when no turn blocks on the calls."""

    open: set[str]
    after: Turn
    blocking: bool
    scheduling: set[str] = field(default_factory=set)


@dataclass
class _Job:
    turn: Turn | None
    done: asyncio.Future[None]


class Model:
    """Performer of a session's turns, in order."""

    def __init__(self, session: Session) -> None:
        self.stopped = False
        """The turn waits in the middle of its audio (`Turn.stops_at_ms`)."""

        self.turns = 0
        self._session = session
        self._jobs: asyncio.Queue[_Job] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._rounds: list[_Round] = []
        self._current: Turn | None = None
        self._job: _Job | None = None
        self._waiting_for: _Round | None = None
        self._cut = self._went_on = False
        self._said: list[str] = []
        self._sent_ms = 0.0
        self._began = 0.0
        self._count = 0

    def trigger(self, turn: Turn | None = None, *, interrupts: bool = True) -> asyncio.Future[None]:
        """Perform a turn, or the next one of the script, after those before it. The future completes with the turn."""
        if interrupts:
            self.interrupt()
        job = _Job(turn, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        return job.done

    def interrupt(self) -> None:
        """Interrupt the turn, because the user spoke or wrote. A turn with open blocking calls continues, unless it says otherwise."""
        if self._current is not None and (self._waiting_for is None or self._current.cancels):
            self._cut = True
            self._wake.set()

    def go_on(self) -> None:
        """Continue a turn that stopped by itself."""
        self._went_on = True
        self._wake.set()

    def answer(self, response: dict[str, Any]) -> bool:
        """Handle a function response. Return whether this connection still waits for the call."""
        asked = next((one for one in self._rounds if response["id"] in one.open), None)
        if asked is None:
            return False
        if response.get("willContinue"):
            return True
        asked.open.discard(response["id"])
        asked.scheduling.add(response.get("scheduling", "WHEN_IDLE"))
        if not asked.open:
            self._rounds.remove(asked)
            if not asked.blocking and asked.after.speaks and asked.scheduling != {"SILENT"}:
                self.trigger(asked.after, interrupts="INTERRUPT" in asked.scheduling)
        self._wake.set()
        return True

    async def run(self) -> None:
        """Perform the triggered turns until cancelled; then release all waiters."""
        try:
            while True:
                self._job = await self._jobs.get()
                turn = self._job.turn or self._session.next_turn()
                if turn is not None:
                    self._current = turn
                    await self._perform(turn)
                    self._current = None
                self._finish(self._job)
        finally:
            self._finish(self._job)
            while not self._jobs.empty():
                self._finish(self._jobs.get_nowait())

    def _finish(self, job: _Job | None) -> None:
        if job is not None and not job.done.done():
            job.done.set_result(None)
        self._session.changed()

    async def _perform(self, turn: Turn) -> None:
        session = self._session
        self._cut = self._went_on = False
        self._sent_ms, self._said, self._began = 0.0, [], asyncio.get_running_loop().time()
        heard = words(turn.hears)
        if heard:
            session.history.append(Line("user", "".join(heard)))
        if not turn.unordered:
            await self._hear(heard)
        try:
            if not turn.empty:
                await self._content(turn)
                self._remember()
                await session.send(content(generationComplete=True))
                await self._played()
        except _Interrupted:
            await self._interrupted(turn)
        self._remember()
        if turn.unordered:
            await self._hear(heard)
        await self._complete(turn)

    async def _content(self, turn: Turn) -> None:
        await self._speak(turn)
        if not turn.calls:
            return
        self._remember()
        after = turn.after if isinstance(turn.after, Turn) else Turn(says=turn.after, text_only=turn.text_only, quiet=turn.quiet)
        calls = [Call(call.name, call.args, call.id or self._new_id()) for call in turn.calls]
        blocking = turn.blocking if turn.blocking is not None else any(self._session.blocks(call.name) for call in calls)
        asked = _Round({call.id for call in calls}, after, blocking)
        self._rounds.append(asked)
        if turn.unresumable and self._session.resumption:
            await self._session.send({"sessionResumptionUpdate": {} if self._session.options.bare_unresumable else {"resumable": False}})
        await self._session.send({"toolCall": {"functionCalls": [{"id": one.id, "name": one.name, "args": one.args} for one in calls]}})
        self._session.calls.extend(calls)
        self._session.changed()
        if blocking:
            self._waiting_for = asked
            try:
                await self._until(lambda: not asked.open)
            finally:
                self._waiting_for = None
            await self._content(after)

    def _new_id(self) -> str:
        self._count += 1
        return f"function-call-{self._session.number}-{self._count}"

    async def _hear(self, pieces: list[str]) -> None:
        for piece in pieces if self._session.transcribes_user else ():
            await self._session.send(content(inputTranscription={"text": piece}))

    async def _speak(self, turn: Turn) -> None:
        session = self._session
        if turn.text_only or session.writes:
            for text in words(turn.says):
                await session.send(content(modelTurn={"parts": [{"text": text}]}))
                self._said.append(text)
                await self._rest(turn, 0.0)
            return
        for text, pieces in spoken(turn):
            if text and session.transcribes_model:
                await session.send(content(outputTranscription={"text": text}))
            self._said.append(text)
            for piece in pieces:
                await session.send(audio_content(piece))
                self._sent_ms += len(piece) / 48
                await self._rest(turn, PIECE_MS / 1_000)

    async def _rest(self, turn: Turn, length_s: float) -> None:
        """Pause between two pieces: stop if the turn says so, keep the pace, handle an interruption."""
        if turn.stops_at_ms is not None and self._sent_ms >= turn.stops_at_ms and not self._went_on:
            self.stopped = True
            self._session.changed()
            try:
                await self._until(lambda: self._went_on)
            finally:
                self.stopped = False
        elif self._session.options.pace and length_s:
            await self._until(lambda: False, length_s / self._session.options.pace)
        else:
            await self._until(lambda: True)

    async def _played(self) -> None:
        if self._session.options.playback:
            left = self._began + self._sent_ms / 1_000 - asyncio.get_running_loop().time()
            await self._until(lambda: False, max(0.0, left))

    async def _until(self, ready: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait until ready or timeout. Raises `_Interrupted` at once when the user interrupts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._cut and not ready():
                    self._wake.clear()
                    await self._wake.wait()
        if self._cut:
            raise _Interrupted

    async def _interrupted(self, turn: Turn) -> None:
        cancelled = [one for one in self._rounds if one.blocking]
        ids = sorted(id for one in cancelled for id in one.open)
        self._rounds = [one for one in self._rounds if not one.blocking]
        if ids and turn.cancels:
            await self._session.send({"toolCallCancellation": {"ids": ids}})
        await self._session.send(content(interrupted=True))

    def _remember(self) -> None:
        if self._said:
            self._session.history.append(Line("model", "".join(self._said)))
            self._said = []

    async def _complete(self, turn: Turn) -> None:
        session = self._session
        fields: dict[str, Any] = {"turnComplete": True}
        if turn.reason:
            fields["turnCompleteReason"] = turn.reason
        if session.options.interaction_status:
            fields["interactionStatus"] = "IN_PROGRESS" if self._rounds else "IDLE"
        self.turns += 1
        await session.send({**content(**fields), "usageMetadata": usage(turn)})
        if not self._rounds:
            await session.issue_handle()
