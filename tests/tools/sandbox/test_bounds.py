"""Limits of sandboxes at their bounds, where the table of hostile handlers does not reach them."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from tests.eventually import eventually
from tests.tools.sandbox.conftest import Room
from voxbridge.services.tools.sandbox import engine, frames, sandboxes
from voxbridge.services.tools.sandbox.processes import Lost
from voxbridge.services.tools.session import customers
from voxbridge.services.tools.session.customers import Customers, CustomerTool
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import SessionConfigured
from voxbridge.shared.platform.handlers import HandlerTool, configuration_of, digest_of

SLOW = "() => new Promise((done) => setTimeout(done, 60000))"


def tool(name: str) -> HandlerTool:
    return HandlerTool(name=name, description="", parameters={"type": "object", "properties": {}}, source=f"() => '{name}'")


async def test_so_many_handlers_run_at_a_time_over_all_accounts(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "RUNNING_LIMIT", 2)
    monkeypatch.setattr(sandboxes, "WAIT_S", 0.01)
    running = [asyncio.create_task(room.call(SLOW, sid=f"s{n}", account=f"a{n}", within_s=60)) for n in range(2)]
    await eventually(lambda: room.sandboxes._running.total() == 2)
    with pytest.raises(VoxbridgeError, match="2 handlers run already") as refused:
        await room.call("() => 1", account="another")
    assert (refused.value.code, refused.value.limit) == (Code.OVERLOADED, 2)
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert await room.value("() => 1", account="another") == 1


async def test_a_call_waits_for_a_place_in_a_line_that_ends(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "ACCOUNT_LIMIT", 1)
    monkeypatch.setattr(sandboxes, "WAITING_LIMIT", 2)
    monkeypatch.setattr(sandboxes, "WAIT_S", 60.0)
    running = asyncio.create_task(room.call(SLOW, within_s=60))
    await eventually(lambda: room.sandboxes._running.total() == 1)
    line = [asyncio.create_task(room.value(f"() => {number}", sid=f"s{number}")) for number in range(2)]
    await eventually(lambda: len(room.sandboxes._waiting) == 2)
    with pytest.raises(VoxbridgeError, match="1 handlers run already"):
        await room.call("() => 3")
    assert await room.value("() => 4", account="another") == 4, "others do not wait for it"
    line[0].cancel()
    await asyncio.gather(line[0], return_exceptions=True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await line[1] == 1
    assert (room.sandboxes._running.total(), room.sandboxes._waiting) == (0, {})


def waits_alone(room: Room, sid: str) -> bool:
    return [key[1] for key in room.sandboxes._idle] == [sid]


async def test_so_many_processes_wait_for_their_sessions(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "IDLE_LIMIT", 1)
    for sid in ("one", "two"):
        await room.value("() => 1", sid=sid)
        await eventually(partial(waits_alone, room, sid))


async def test_a_process_is_replaced_after_so_many_calls(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "CALLS_LIMIT", 2)
    await room.value("() => 1")
    await eventually(lambda: bool(room.sandboxes._idle))
    (first,) = (idle.process for idle in room.sandboxes._idle.values())
    await room.value("() => 1")
    await eventually(lambda: not first.lives and not room.sandboxes._idle)
    assert await room.value("() => 1") == 1


async def test_of_so_many_sources_it_is_known_that_they_can_run(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "CHECKED_KEPT", 2)
    await room.sandboxes.check((tool("a"), tool("b")))
    assert len(room.sandboxes._checked) == 2
    await room.sandboxes.check((tool("c"),))
    assert len(room.sandboxes._checked) == 2


async def test_random_bytes_are_given_up_to_the_bound(room: Room) -> None:
    ask = "(a) => crypto.getRandomValues(new Uint8Array(a.size)).length"
    assert await room.value(ask, {"size": engine.RANDOM_LIMIT}) == engine.RANDOM_LIMIT
    assert str(engine.RANDOM_LIMIT) in (await room.failure(ask, {"size": engine.RANDOM_LIMIT + 1})).replace(",", "")


async def test_a_process_that_is_told_more_than_it_may_be_ends(room: Room) -> None:
    process = await room.sandboxes._zygote.fork()
    process.send(frames.CallFrame(source="() => 1", arguments=f'"{"x" * frames.IN_LIMIT}"', secrets={}))
    with pytest.raises(Lost):
        await process.receive()


def test_arguments_are_taken_up_to_the_bound() -> None:
    one = object.__new__(CustomerTool)
    object.__setattr__(one, "name", "save")
    object.__setattr__(one, "parameters", {"type": "object", "properties": {"text": {"type": "string"}}})
    around = len(msgspec.json.encode({"text": ""}))
    one.check({"text": "x" * (customers.ARGUMENTS_LIMIT - around)})
    with pytest.raises(VoxbridgeError) as refused:
        one.check({"text": "x" * (customers.ARGUMENTS_LIMIT - around + 1)})
    assert (refused.value.code, refused.value.limit) == (Code.TOO_LARGE, customers.ARGUMENTS_LIMIT)


async def test_the_configurations_of_so_many_sessions_are_kept(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(customers, "SESSIONS_KEPT", 2)
    configuration = configuration_of(instructions="", greeting="", tools=())
    found = SessionConfigured(account="a", environment="live", configuration=configuration, digest=digest_of(configuration))
    kept = Customers(_Last(found), room.sandboxes, None, room.fetcher)  # type: ignore[arg-type]  # no more is asked of log and secrets
    for sid in ("one", "two", "three"):
        assert await kept._of(sid) is found
    assert list(kept._configured) == ["two", "three"]


class _Last:
    """A log whose last event is always the same."""

    def __init__(self, event: SessionConfigured) -> None:
        self._event = event

    async def last(self, _subjects: list[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(event=self._event)]
