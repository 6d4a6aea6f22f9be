"""A worker follows the macros of the accounts that have sessions with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.voice.conversation import SID, Conversation
from voxbridge.services.voice.session import account_facts
from voxbridge.services.voice.session.macros import Macros
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.events.tools import MacroDeleted, MacroSaved
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.macros.known import SPOKEN_CHARACTERS, TOPICS
from voxbridge.shared.macros.triggers import Spoken, match


class Held(Conversation):
    """A session of the core that a worker has."""

    sid = SID


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


@pytest.fixture
async def log(connection: Client) -> Log:
    log = Log(connection)
    await log.ensure_streams(retention_days=1)
    return log


class Keeper:
    """The executor's hand in the log of an account."""

    def __init__(self, log: Log, account: str = "local") -> None:
        self.account = account
        self._writer = SessionWriter(log, subjects.account_log(account), "tools")

    async def save(self, name: str, *triggers: str) -> None:
        await self._keep(
            MacroSaved(macro_id=name, account=self.account, document={"name": name, "triggers": list(triggers), "steps": ["x"]})
        )

    async def delete(self, name: str) -> None:
        await self._keep(MacroDeleted(macro_id=name, account=self.account, name=name))

    async def _keep(self, event: events.Event) -> None:
        await self._writer.append(event, ts=1, cause=None)


async def knows(call: Conversation, *names: str) -> None:
    await eventually(lambda: tuple(one.name for one in call.state.team.macros) == names)


async def test_a_session_is_told_of_each_change_at_once(log: Log) -> None:
    call, keeper = Held(), Keeper(log)
    macros = Macros(log, {SID: call})  # type: ignore[dict-item]  # the core's side of a session
    await keeper.save("night", "good night")
    await Keeper(log, "other").save("alien", "beam me up")
    assert await macros.of("local") == (Spoken("night", ("good night", "run night")),)
    await macros.start()
    await keeper.save("lunch")
    await knows(call, "night", "lunch")
    await keeper.delete("night")
    await knows(call, "lunch")
    assert await macros.of("local") == (Spoken("lunch", ("run lunch",)),)
    await macros.stop()


async def test_a_macro_is_run_by_its_name_unless_another_one_is_started_so(log: Log) -> None:
    keeper = Keeper(log)
    await keeper.save("evening", "lights out")
    await keeper.save("other", "Run Evening!")
    await keeper.save("{slot}")
    found = await Macros(log, {}).of("local")
    assert found == (Spoken("evening", ("lights out",)), Spoken("other", ("Run Evening!", "run other")), Spoken("{slot}"))
    started = [match(said, found) for said in ("run evening", "run other", "run anything")]
    assert [one and one.name for one in started] == ["other", "other", None]


async def test_a_session_that_was_taken_over_is_told_what_changed_meanwhile(log: Log) -> None:
    call = Held(macros=(Spoken("gone", ("old words",)),))
    macros = Macros(log, {})
    await macros.start()
    await Keeper(log).save("night", "good night")
    macros.check(call)  # type: ignore[arg-type]
    await knows(call, "night")
    await macros.stop()


async def test_a_log_that_does_not_answer_takes_no_macro_away(own_nats: Callable[[], NatsServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_facts, "AGAIN_S", 0.05)
    server = own_nats()
    client = await nats.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)
    log = Log(client, read_timeout_s=0.2)
    await log.ensure_streams(retention_days=1)
    call = Held(macros=(Spoken("night", ("good night",)),))
    await Keeper(log).save("lunch", "time for lunch")
    macros = Macros(log, {SID: call})  # type: ignore[dict-item]
    server.kill()
    assert await macros.of("local") == ()
    await macros.catch_up()
    await knows(call, "night")
    server.start()
    await knows(call, "lunch")
    await macros.stop()
    await client.close()


async def test_what_a_session_knows_is_bounded(log: Log) -> None:
    keeper = Keeper(log)
    for number in range(3):
        await keeper.save(f"m{number}", str(number) * (SPOKEN_CHARACTERS // 2 - len("m0") - len("run m0")))
    assert [one.name for one in await Macros(log, {}).of("local")] == ["m1", "m2"]


async def test_sessions_that_begin_together_read_an_account_once_and_a_change_meanwhile_is_seen(log: Log) -> None:
    keeper = Keeper(log)
    await keeper.save("night", "good night")
    macros = Macros(log, {})
    await macros.start()
    pages = 0
    read_all = log.read_all

    async def read(*arguments: Any, **options: Any) -> AsyncIterator[events.Recorded]:
        nonlocal pages
        pages += 1
        if pages == len(TOPICS):  # one topic is read, and the other is not
            await keeper.save("lunch", "i am off")
            await eventually(lambda: "local" in macros._stale)
        async for recorded in read_all(*arguments, **options):
            yield recorded

    log.read_all = read  # type: ignore[method-assign]  # to change something in the midst of it
    found = await asyncio.gather(*(macros.of("local") for _ in range(10)))
    assert {tuple(one.name for one in each) for each in found} == {("night", "lunch")}
    assert pages == 2 * len(TOPICS)
    await macros.stop()
