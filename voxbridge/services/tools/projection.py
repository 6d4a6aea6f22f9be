"""The notes in Valkey: a projection of `note.remembered`, rebuilt from the log when it is lost.

A note is a fact of the session in which it was made, and one of its account, where it outlives the session's age. Owns the latter, and the
decision when to rebuild. Does not own the former nor the keys (`voxbridge.shared.store.store`). Losing Valkey costs one
read of the notes in the log. The catalogue's key, written after the notes, says that the projection is complete.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from nats.errors import Error as NatsError

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.events.tools import NoteForgotten, NoteRemembered
from voxbridge.shared.log.once import publish_once
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Note, Store

_TYPE: Final = "note.remembered"
_ACK_S: Final = (2.0, 2.0, 4.0)
"""Seconds that each try to write a note may take."""

_log = logging.getLogger(__name__)


class Notes:
    """The notes of all accounts."""

    def __init__(self, log: Log, store: Store) -> None:
        self._log = log
        self._store = store
        self._making = asyncio.Lock()
        self.stale = False
        """True when Valkey missed a note that is in the log."""

    async def add(self, account: str, note: Note) -> None:
        """Keep a note in the account's log, once for each id, and in Valkey. While Valkey is away, the projection is marked stale. Raises
        `UNAVAILABLE` when the log did not take it."""
        await self._remember(account, note)
        try:
            await self._store.add_note(account, note)
        except Unavailable as error:
            self.stale = True
            _log.warning("a note waits for Valkey: %s", error.message)

    async def forget(self, account: str, note_id: str, *, ts: int) -> None:
        """Take a note back, at `ts` (µs): in the account's log, once, and in Valkey, as `add` does. Raises as `add`."""
        await self._state(account, NoteForgotten(note_id=note_id, account=account), f"{note_id}.forgotten", ts)
        try:
            await self._store.forget_notes([(account, note_id)])
        except Unavailable as error:
            self.stale = True
            _log.warning("a note that was taken back waits for Valkey: %s", error.message)

    async def _remember(self, account: str, note: Note) -> None:
        await self._state(account, NoteRemembered(note_id=note.note_id, account=account, text=note.text), note.note_id, note.ts)

    async def _state(self, account: str, event: NoteRemembered | NoteForgotten, mark: str, ts: int) -> None:
        log_id = subjects.account_log(account)
        event_id = f"{log_id}.{subjects.FACTS}.{mark}"
        payload = events.encode(event, event_id=event_id, sid=log_id, ts=ts, cause=None)
        place = subjects.event_subject(log_id, subjects.FACTS, visible=False, event_type=events.kind_of(event).name)
        for patience_s in _ACK_S:
            try:
                await publish_once(self._log, log_id, place, payload, event_id, timeout_s=patience_s)
            except (TimeoutError, NatsError) as error:
                _log.warning("a note is offered to the log again: %s", error or type(error).__name__)
            else:
                return
        raise Unavailable("The event log did not take the note.", retry_after_ms=1_000)

    async def of(self, account: str) -> list[Note]:
        """Return the notes of an account, newest first. Raises `UNAVAILABLE`."""
        found = await self._store.notes(account)
        if found or not (self.stale or await self.lost()):
            return found
        await self.restore()
        return await self._store.notes(account)

    async def lost(self) -> bool:
        """Tell whether Valkey lost its data."""
        return not await self._store.functions()

    async def restore(self) -> int:
        """Rebuild the projection from the log; return how many notes were read. Imported notes belong to no account here and are skipped.
        Raises `UNAVAILABLE`.

        A session may be erased meanwhile. The store refuses its notes; where the store forgot the erasure, they are removed after the log
        is read for erasures.
        """
        async with self._making:
            found: set[str] = set()
            forgotten: set[tuple[str, str]] = set()
            async for recorded in self._log.read_all(subjects.ACCOUNTS, writer=subjects.FACTS, visibility="i", topic="note.forgotten"):
                if isinstance(recorded.event, NoteForgotten):
                    forgotten.add((recorded.event.account, recorded.event.note_id))
            for logs, writer in (("*", "tools"), (subjects.ACCOUNTS, "tools"), (subjects.ACCOUNTS, subjects.FACTS)):
                async for recorded in self._log.read_all(logs, writer=writer, visibility="i", topic=_TYPE, imported=False):
                    event = recorded.event
                    if isinstance(event, NoteRemembered) and (event.account, event.note_id) not in forgotten:
                        note = Note(note_id=event.note_id, text=event.text, ts=recorded.ts)
                        await self._store.add_note(event.account, note)
                        found.add(note.note_id)
            erased = {recorded.sid async for recorded in self._log.read_all("*", writer="operator", topic="session.erased")}
            if erased:
                await self._store.forget_notes(await self._store.noted_from(erased))
            if forgotten:  # one may have been taken back by another process while they were read
                await self._store.forget_notes(sorted(forgotten))
            self.stale = False
            return len(found)
