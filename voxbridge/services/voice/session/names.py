"""The names of the things that a session's functions may name, asked anew while the session goes on: a terminal that was started during a
conversation is one to its templates, to its model and to its recogniser.

Owns when they are asked: as the user begins to speak, and after each call. Owns no facts; executors know them. While none answers, the
names are those that were known last.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nats.aio.client import Client

from voxbridge.services.voice.core import inputs, opening
from voxbridge.services.voice.core.state import State
from voxbridge.shared import things
from voxbridge.shared.agents.functions import GROWING, Function


class Names:
    """The looks of one session. `run` runs work in the background; `take` gives the core what is new."""

    def __init__(
        self,
        nc: Client,
        state: Callable[[], State],
        take: Callable[[inputs.NamesChanged], None],
        run: Callable[[Awaitable[None]], None],
    ) -> None:
        self._nc, self._state, self._take, self._run = nc, state, take, run
        self._asking = self._again = False

    def look(self) -> None:
        """Ask, in the background, if functions of the session name things that come and go, and the session may learn of them. While a
        question is under way, another one follows it: its answer may be of before."""
        state = self._state()
        if not opening.is_the_accounts(state) or state.realtime is not None or not any(map(_grows, state.team.catalogue)):
            return
        if self._asking:
            self._again = True
            return
        self._asking = True
        self._run(self._ask())

    async def _ask(self) -> None:
        try:
            while True:
                self._again = False
                request = self._state().request
                names = await things.ask(self._nc, request.account) if request is not None else None
                if names is not None:
                    self._tell(names)
                if not self._again:
                    return
        finally:
            self._asking = False

    def _tell(self, names: things.Things) -> None:
        team = self._state().team
        found = {function: dict(named) for function, named in told(names, team.catalogue).items()}
        if found != team.names:
            self._take(inputs.NamesChanged(found))


def told(names: things.Things, functions: Sequence[Function]) -> things.Things:
    """Return the names without those of functions that the session does not have and that can only be called by name, as terminals' are:
    who is not steered from here is not written into its log."""
    have = {function.name for function in functions}
    return {function: named for function, named in names.items() if function in have or not GROWING.issuperset(named)}


def _grows(function: Function) -> bool:
    return not GROWING.isdisjoint(function.parameters.get("properties", {}))
