"""The notes in Valkey: a projection of `note.remembered`, rebuilt from the log when it is lost.

Owns the decision when to rebuild. Does not own the facts (the log) nor the keys (`voxbridge.shared.store.store`). Losing Valkey costs one
read of the notes in the log. The catalogue's key, written after the notes, says that the projection is complete.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from voxbridge.shared.errors import Unavailable
from voxbridge.shared.events.tools import NoteRemembered
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Note, Store

_TYPE: Final = "note.remembered"

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
        """Keep a note that is already in the log. While Valkey is away, the projection is marked stale."""
        try:
            await self._store.add_note(account, note)
        except Unavailable as error:
            self.stale = True
            _log.warning("a note waits for Valkey: %s", error.message)

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
            count = 0
            async for recorded in self._log.read_all("*", writer="tools", visibility="i", topic=_TYPE, imported=False):
                if isinstance(recorded.event, NoteRemembered):
                    note = Note(note_id=recorded.event.note_id, text=recorded.event.text, ts=recorded.ts)
                    await self._store.add_note(recorded.event.account, note)
                    count += 1
            erased = {recorded.sid async for recorded in self._log.read_all("*", writer="operator", topic="session.erased")}
            if erased:
                await self._store.forget_notes(await self._store.notes_from(erased))
            self.stale = False
            return count
