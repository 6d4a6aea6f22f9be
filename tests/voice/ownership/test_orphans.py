"""A session that can be neither continued nor ended: the attempts become ever rarer, and no worker holds it meanwhile."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.voice.conftest import Page, left
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.ownership import orphans
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Conflict, Unavailable
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.step.runner import StepRunner
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(60)
_opened = inputs.Opened(
    worker="w", term=1, model="m", voice="", greeting="", functions=(), providers=("local",), idle_timeout_s=60, turn_timeout_s=30
)
OPENED = Taken(at=2, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(_opened)))


class Hopeless:
    """A worker that cannot continue any session."""

    def __init__(self) -> None:
        self.adopted = 0

    def held(self) -> set[str]:
        """Return no session."""
        return set()

    def room(self) -> int:
        """Return room for one session."""
        return 1

    async def adopt(self, sid: str, term: int, past: PriorState, gap_ms: int) -> None:
        """Fail."""
        self.adopted += 1
        raise ZeroDivisionError


class Looking:
    """Orphans that look when the test says so."""

    def __init__(self, page: Page, store: Store) -> None:
        self.house = Hopeless()
        place: Any = SimpleNamespace(worker="voice-looking", clock=SystemClock(), log=page.log)
        self.orphans = orphans.Orphans(place, store, self.house)

    async def look(self, times: int = 1) -> None:
        """Look, and wait for the takeovers that were started."""
        for _ in range(times):
            await self.orphans._look()
            await asyncio.gather(*self.orphans._taking.values())


@pytest.mark.past_is_broken
@pytest.mark.parametrize("error", [Conflict("Another process writes."), Unavailable("The log is away."), ZeroDivisionError("once")])
async def test_a_session_whose_end_cannot_be_written_is_tried_ever_more_rarely_and_that_is_said_once(
    page: Page, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    append, tries = SessionWriter.append, 0

    async def refused(*_: Any, **__: Any) -> int:
        nonlocal tries
        tries += 1
        raise error

    await page.open()
    dead = SessionWriter(page.log, page.sid, "voice")
    await dead.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=999_999),)), ts=2, cause=None)
    await store.acquire_lease(page.sid, "the dead one")
    await store.release_lease(page.sid, "the dead one")
    looking = Looking(page, store)
    monkeypatch.setattr(SessionWriter, "append", refused)
    monkeypatch.setattr(orphans, "ENDINGS_S", (3_600.0, 7_200.0), raising=False)
    for failed, wait_s in ((1, 3_600.0), (2, 7_200.0), (3, 7_200.0)):
        await looking.look(5)
        assert tries == failed, "one try for each wait that is over"
        assert await store.held([page.sid]) == [False], "whoever is not trying holds nothing"
        now, ending = asyncio.get_running_loop().time(), looking.orphans._endings[page.sid]
        assert now + wait_s - 60 < ending.due <= now + wait_s
        ending.due = now
    said = [one.getMessage() for one in caplog.records if one.name == orphans.__name__ and page.sid in one.getMessage()]
    assert ["cannot be folded" in said[0], "could not be ended" in said[1], len(said)] == [True, True, 2]
    await store.acquire_lease(page.sid, "another one")
    await looking.look()
    assert (tries, page.sid in looking.orphans._endings) == (3, True), "another worker tries it, and the wait is remembered"
    await store.release_lease(page.sid, "another one")
    monkeypatch.setattr(SessionWriter, "append", append)
    await looking.look()
    ended = (await page.until(ev.SessionEnded)).event
    assert isinstance(ended, ev.SessionEnded)
    assert ended.reason == "worker_lost"
    await left(store, page)
    assert looking.orphans._endings == {}


async def test_a_session_that_nobody_can_go_on_with_is_not_tried_again_because_its_end_failed(
    page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await page.open()
    dead = SessionWriter(page.log, page.sid, "voice")
    await dead.append(VoiceJournal(first=0, inputs=(Taken(at=1, seq=page.position), OPENED)), ts=2, cause=None)
    await store.acquire_lease(page.sid, "the dead one")
    await store.release_lease(page.sid, "the dead one")
    looking = Looking(page, store)
    ending: list[Any] = []

    def refused(_: Any, input: Any) -> None:
        ending.append(input)
        raise Conflict("Another process writes.")

    monkeypatch.setattr(StepRunner, "take", refused)
    monkeypatch.setattr(orphans, "ENDINGS_S", (3_600.0,), raising=False)
    await looking.look(12)
    assert (looking.house.adopted, len(ending)) == (orphans.TRIES, 1)
    monkeypatch.undo()
    looking.orphans._endings[page.sid].due = 0
    await looking.look()
    ended = (await page.until(ev.SessionEnded)).event
    assert isinstance(ended, ev.SessionEnded)
    assert (ended.reason, looking.house.adopted) == ("worker_lost", orphans.TRIES)
    await left(store, page)
