"""Turns of an OpenAI Realtime session: the response in progress, the response that is due, and the calls in between.

The vendor makes one response at a time. It begins one itself after speech that its detector ended, and otherwise has to be asked. Owns
when to ask, and which response is not to be heard any more. Does not own the content of a response. A crash loses it with its connection.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from voxbridge.services.voice.providers.realtime.openai.wire import Wire

CANCEL_S: Final = 2.0
"""Seconds that a stopped response may take to end before the next one is asked for anyway."""


class Responses:
    """The responses of one connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.active = ""
        """Id of the response in progress."""

        self.muted = ""
        """Id of the last response that was stopped: its remaining output is not for the user."""

        self.user_speaks = False
        self._asked = ""
        self._asks = 0
        self._stop_next = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._waiting = False
        self._due = False
        self._open: dict[str, str] = {}
        self._owed: set[str] = set()

    @property
    def busy(self) -> bool:
        """True if a response is in progress or was asked for."""
        return not self._idle.is_set()

    @property
    def calls(self) -> int:
        """Number of calls without a result."""
        return len(self._open)

    def mute(self) -> None:
        """Mute the response in progress: the user speaks, and the vendor stops it itself. A response that was only asked for begins
        after the user began to speak, and the vendor does not stop it: it is cancelled when it begins."""
        if self.active:
            self.muted = self.active
        elif self._asked:
            self._stop_next = True

    async def stop(self) -> None:
        """Cancel the response in progress, or the one that was asked for as soon as it begins."""
        self._due = False
        goes_on = self.active not in ("", self.muted)
        self.mute()
        if goes_on:
            await self._cancel()

    async def take_turn(self) -> None:
        """Ask for a response to what was just added. A response in progress is stopped first, and given 2 s to end. While the user
        speaks nothing is asked for: the response to that speech answers both."""
        if self.user_speaks:
            await self.stop()
            return
        if self.busy:
            self._waiting = True
            try:
                await self.stop()
                with suppress(TimeoutError):
                    async with asyncio.timeout(CANCEL_S):
                        await self._idle.wait()
            finally:
                self._waiting = False
        await self._ask()

    async def go_on(self) -> None:
        """Ask for the response that is due, if there is one and the model is free: after the last result of a response's calls."""
        if self.busy or self._waiting:
            return
        ready = self._owed.difference(self._open.values())
        if not (self._due or ready):
            return
        if self.user_speaks:
            # The response to what the user is saying comes in any case, and knows the results.
            self._due = False
            self._owed -= ready
            return
        await self._ask()

    async def begun(self, response: str) -> None:
        """Note that the vendor has begun a response, whether or not it was asked for."""
        self.active, self._asked = response, ""
        self._idle.clear()
        if self._stop_next:
            self._stop_next = False
            self.muted = response
            await self._cancel()

    async def ended(self, response: str) -> None:
        """Note that a response is over, and ask for the next one if it is due."""
        if self.active in ("", response):
            self.active = ""
            self._rest()
        await self.go_on()

    def refused(self, event_id: str, *, because_busy: bool) -> None:
        """Note that the vendor refused an event. A request for a response that came too early is repeated when the model is free."""
        if because_busy:
            self._due = True
        if event_id and event_id == self._asked:
            self._asked, self._stop_next = "", False
            self._rest()

    def called(self, call: str, response: str) -> None:
        """Note a call that a response made; the model waits for its result."""
        self._open[call] = response

    def waits_for(self, call: str) -> bool:
        """Tell whether a call has no result yet."""
        return call in self._open

    def answered(self, call: str) -> None:
        """Note that the result of an open call was sent."""
        self._owed.add(self._open.pop(call))

    def goes_on(self, response: str) -> bool:
        """Tell whether the model is to be asked to go on from this response with no further input, since a call of it was refused here."""
        return response in self._owed and response not in self._open.values()

    def owe(self, response: str) -> None:
        """Note that a call of this response was refused here: the model is to be asked to go on anyway."""
        self._owed.add(response)

    async def _ask(self) -> None:
        self._due = False
        self._owed.intersection_update(self._open.values())
        self._asks += 1
        self._asked = f"ask_{self._asks}"
        self._idle.clear()
        await self._wire.send({"type": "response.create", "event_id": self._asked})

    async def _cancel(self) -> None:
        await self._wire.send({"type": "response.cancel", "response_id": self.active})

    def _rest(self) -> None:
        if not self.active and not self._asked:
            self._idle.set()
