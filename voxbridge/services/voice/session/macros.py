"""The macros of accounts, for the sessions of this worker.

Owns how they are read. Does not own the following (`account_facts`) nor what they do (`voxbridge.services.tools.runs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.session.account_facts import AccountFacts
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.macros import known
from voxbridge.shared.macros.triggers import Spoken

if TYPE_CHECKING:
    from voxbridge.services.voice.session.session import Session


class Macros(AccountFacts[tuple[Spoken, ...]]):
    """The macros of the accounts that have sessions here, oldest first."""

    followed = tuple(subjects.live_subject(subjects.ACCOUNTS, "tools", "i", topic) for topic in known.TOPICS)
    called = "macros"
    nothing = ()

    async def read(self, account: str) -> tuple[Spoken, ...]:
        """Read the macros of an account. Raises `UNAVAILABLE`."""
        found: list[events.Recorded] = []
        for topic in known.TOPICS:
            reading = self.log.read_all(subjects.account_log(account), writer="tools", visibility="i", topic=topic)
            found += [recorded async for recorded in reading]
        return known.spoken(sorted(found, key=lambda one: one.seq))

    def known(self, session: Session) -> tuple[Spoken, ...]:
        """Return the macros that a session knows."""
        return session.state.team.macros

    def changed(self, facts: tuple[Spoken, ...]) -> inputs.Input:
        """Return the input that tells a session of its macros."""
        return inputs.MacrosChanged(facts)
