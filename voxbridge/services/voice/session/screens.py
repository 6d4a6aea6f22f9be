"""The screens of accounts, as far as they are known, for the sessions of this worker.

Owns how it is read, and that a session of an account which several people may share is told what came from itself alone. Does not own the
following (`account_facts`) nor what is known (`voxbridge.services.awareness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.session.account_facts import AccountFacts
from voxbridge.shared.awareness.view import NOTHING, View, of_session
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.awareness import AwarenessChanged
from voxbridge.shared.secrets.access_tokens import LOCAL

if TYPE_CHECKING:
    from voxbridge.services.voice.session.session import Session

TOPIC = "awareness.changed"


class Screens(AccountFacts[View]):
    """The screens of the accounts that have sessions here."""

    followed = (subjects.live_subject(subjects.AWARENESS_OF_ALL, "awareness", "i", TOPIC),)
    called = "screens"
    nothing = NOTHING

    async def read(self, account: str) -> View:
        """Read what the awareness service said last. Raises `UNAVAILABLE`."""
        log_id = subjects.awareness_log(account)
        found = await self.log.last([subjects.event_subject(log_id, "awareness", visible=False, event_type=TOPIC)])
        return found[-1].event.view if found and isinstance(found[-1].event, AwarenessChanged) else NOTHING

    def known(self, session: Session) -> View:
        """Return what a session knows."""
        return session.state.conversation.screen.known

    def of_session(self, view: View, account: str, sid: str) -> View:
        """Return the part that a session may be told."""
        return view if account == LOCAL else of_session(view, sid)

    def changed(self, facts: View) -> inputs.Input:
        """Return the input that tells a session of it."""
        return inputs.ScreenChanged(facts)
