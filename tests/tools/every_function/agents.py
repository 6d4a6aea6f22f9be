"""The functions about agents, and a voice service that answers their sessions: each text gets the same answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from nats.aio.msg import Msg

from tests.tools.every_function.entry import Entry
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.events import Event, gateway, voice
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.log.writer import SessionWriter

ANSWER: Final = "Thirty days [1]."
MISSING: Final = "NOT_FOUND"
WRONG: Final = "INVALID_ARGUMENT"

AGENTS: Final[dict[str, Entry]] = {
    "list_agents": Entry(
        wanted={"count": 13},
        check=lambda result: {"researcher", "librarian", "advice"} <= {one["name"] for one in result["agents"]},
    ),
    "list_experts": Entry(wanted={"count": 1, "spoken": "There is one expert: librarian."}),
    "run_agent": Entry(
        arguments={"name": "researcher", "input": "How many holidays are there?"},
        wanted={"agent": "researcher", "answer": ANSWER, "announce": f"researcher is done: {ANSWER}"},
        varies=("session",),
        hostile=(
            ({"name": "nobody"}, MISSING),
            ({"name": "../advisor"}, MISSING),
            ({"name": "triage"}, WRONG),
            ({"name": "advisor"}, "PROVIDER_UNAVAILABLE"),
        ),
    ),
    "chat_with_expert": Entry(
        arguments={"expert": "librarian", "message": "How many holidays are there?"},
        wanted={"expert": "librarian", "answer": "Thirty days.", "sources": []},
        varies=("session", "searched_by"),
        hostile=(({"expert": "nobody"}, MISSING), ({"expert": "researcher"}, WRONG), ({"expert": "*"}, MISSING)),
    ),
}


class ChildVoice:
    """The voice service's side of child sessions."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._kinds: dict[str, str] = {}
        self._writers: dict[str, SessionWriter] = {}
        self._turns: dict[str, int] = {}
        self._order = asyncio.Lock()

    async def hear(self, message: Msg) -> None:
        recorded = decode(message)
        async with self._order:
            match recorded.event:
                case gateway.SessionRequested(child=child) if child is not None:
                    self._kinds[recorded.sid] = child.kind
                    self._writers[recorded.sid] = SessionWriter(self._log, recorded.sid, "voice")
                case gateway.TextReceived(text=text, text_id=text_id) if recorded.sid in self._kinds:
                    turn = self._turns[recorded.sid] = self._turns.get(recorded.sid, 0) + 1
                    await self._say(recorded.sid, voice.UserSaid(text=text, turn=turn, source="text", text_id=text_id))
                    await self._say(recorded.sid, voice.AgentSaid(text=ANSWER, turn=turn, generation=turn, output="text"))
                    await self._say(recorded.sid, voice.TurnCompleted(number=turn, reason="completed"))
                    if self._kinds[recorded.sid] == "run":
                        await self._say(recorded.sid, voice.SessionEnded(reason="completed", turns=turn))

    async def _say(self, sid: str, event: Event) -> None:
        await self._writers[sid].append(event, ts=SystemClock().now_us(), cause=None)


@asynccontextmanager
async def answered(log: Log) -> AsyncIterator[None]:
    """Answer the sessions that functions ask for."""
    subscription = await log.nc.subscribe(subjects.live_subject("*", "gateway", "i"), cb=ChildVoice(log).hear)
    await log.nc.flush()
    yield
    await subscription.unsubscribe()
