"""The ended tasks of accounts of which no session has told the end, for the sessions of this worker.

Owns how they are read. Does not own the following (`account_facts`) nor which session is given them (`voxbridge.services.tools.core.ends`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.session.account_facts import AccountFacts
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.tools import TasksUnheard

if TYPE_CHECKING:
    from voxbridge.services.voice.session.session import Session

TOPIC = "tasks.unheard"


class Unheard(AccountFacts[tuple[str, ...]]):
    """The ids of the ended tasks that the accounts with sessions here have to tell of, oldest first."""

    followed = tuple(subjects.live_subject(subjects.ACCOUNTS, "tools", "i", topic) for topic in (TOPIC,))
    called = "unheard tasks"
    nothing = ()

    async def read(self, account: str) -> tuple[str, ...]:
        """Read the last of these facts, which has all of them. Raises `UNAVAILABLE`."""
        subject = subjects.event_subject(subjects.account_log(account), "tools", visible=False, event_type=TOPIC)
        found = await self.log.last([subject])
        return tuple(one.task_id for last in found if isinstance(last.event, TasksUnheard) for one in last.event.tasks)

    def known(self, session: Session) -> tuple[str, ...]:
        """Return the tasks that a session knows of."""
        return session.state.pending.unheard

    def changed(self, facts: tuple[str, ...]) -> inputs.Input:
        """Return the input that tells a session of them."""
        return inputs.UnheardChanged(facts)
