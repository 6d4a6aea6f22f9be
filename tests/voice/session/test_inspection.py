"""The state of any session at any moment, as `vx.svc.voice.state` returns it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import nats
import pytest
from nats.aio.client import Client

from tests.long_call import Call
from tests.voice.conftest import Page, Workers
from voxbridge.services.voice import inspection
from voxbridge.services.voice.inspection import HISTORY_SHOWN, KEPT, SNAPSHOT_EVERY, TEXT_SHOWN, Inspector
from voxbridge.shared import events
from voxbridge.shared.events import gateway
from voxbridge.shared.log.reader import Log

BEGAN_US = 1_790_000_000_000_000


class Asked:
    """A request that keeps its answer."""

    def __init__(self, **question: Any) -> None:
        self.data = msgspec.json.encode(question)
        self.answer: dict[str, Any] = {}
        self.error = ""

    async def respond(self, data: bytes) -> None:
        self.answer = msgspec.json.decode(data)

    async def respond_error(self, code: str, description: str, data: bytes = b"") -> None:
        self.error = code
        self.answer = msgspec.json.decode(data)


@pytest.fixture
async def log(nats_url: str) -> AsyncIterator[Log]:
    """An empty log."""
    client = await nats.connect(nats_url)
    log = Log(client)
    await log.ensure_streams(retention_days=1)
    yield log
    await client.close()


async def ask(inspector: Inspector, **question: Any) -> Asked:
    request = Asked(**question)
    await inspector.serve(request)  # type: ignore[arg-type]  # the used part of a request
    return request


async def test_a_running_worker_tells_the_state_of_its_session(workers: Workers, page: Page, connection: Client) -> None:
    async with workers.running():
        await page.open()
        await page.until(events.voice.SessionStarted)
        await page.says(gateway.SessionEndRequested(by="client", reason="client"))
        ended = await page.until(events.voice.SessionEnded)
        # `running` builds the service as its process does, so its endpoint exists.
        reply = await connection.request(inspection.SUBJECT, msgspec.json.encode({"sid": page.sid, "seq": ended.seq}), timeout=10)
    told = msgspec.json.decode(reply.data)
    assert (told["state"], told["phase"], told["timers"], told["effects"]) == ("ended", "ended", [], [])


async def test_every_moment_is_the_same_forwards_backwards_and_afresh(log: Log) -> None:
    call = Call("a" * 32, turns=20, began_us=BEGAN_US)
    await call.write(log)
    moments = [BEGAN_US + at * 700_000 for at in range(0, 290, 7)]
    one = Inspector(log)
    forwards = [(await ask(one, sid=call.sid, at=at)).answer for at in moments]
    backwards = [(await ask(one, sid=call.sid, at=at)).answer for at in reversed(moments)]
    assert backwards[::-1] == forwards
    assert forwards[-1]["inputs"] > 2 * SNAPSHOT_EVERY
    for at, known in list(zip(moments, forwards, strict=True))[::9]:
        assert (await ask(Inspector(log), sid=call.sid, at=at)).answer == known


async def test_a_session_that_goes_on_is_read_on(log: Log) -> None:
    call = Call("b" * 32, turns=4, began_us=BEGAN_US)
    rest = call.facts[40:]
    del call.facts[40:]
    await call.write(log)
    inspector = Inspector(log)
    before = (await ask(inspector, sid=call.sid)).answer
    call.facts[:] = rest
    await call.write(log)
    after = (await ask(inspector, sid=call.sid)).answer
    assert before["inputs"] < after["inputs"]
    assert after["state"] == "ended"


async def test_what_is_told_is_bounded(log: Log) -> None:
    call = Call("c" * 32, turns=40, began_us=BEGAN_US)
    await call.write(log)
    told = (await ask(Inspector(log), sid=call.sid, at=BEGAN_US + 399_000_000)).answer
    assert len(told["history"]) == HISTORY_SHOWN < told["history_count"]
    assert inspection._cut("x" * TEXT_SHOWN) == "x" * TEXT_SHOWN
    assert inspection._cut("x" * (TEXT_SHOWN + 1)) == "x" * (TEXT_SHOWN - 1) + "…"


async def test_only_so_many_sessions_are_kept(log: Log) -> None:
    inspector = Inspector(log)
    for number in range(KEPT + 2):
        await ask(inspector, sid=f"{number:032x}")
    assert len(inspector._kept) == KEPT


@pytest.mark.parametrize(
    ("question", "code"),
    [({"sid": "not an id"}, "NOT_FOUND"), ({"sid": "a" * 32, "at": "noon"}, "INVALID_ARGUMENT"), ({}, "INVALID_ARGUMENT")],
)
async def test_a_wrong_question_gets_a_typed_error(log: Log, question: dict[str, Any], code: str) -> None:
    asked = await ask(Inspector(log), **question)
    assert (asked.error, asked.answer["code"]) == (code, code)


async def test_a_session_over_the_bound_is_refused_and_said_to_be(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "SESSION_BYTES", 2_000)
    call = Call("d" * 32, turns=2, began_us=BEGAN_US)
    await call.write(log)
    asked = await ask(Inspector(log), sid=call.sid)
    assert (asked.error, asked.answer["limit"]) == ("TOO_LARGE", 2_000)


async def test_a_session_whose_beginning_the_log_has_lost_is_not_there(log: Log) -> None:
    call = Call("f" * 32, turns=2, began_us=BEGAN_US)
    await call.write(log)
    await log.js.delete_msg("EV", call.facts[0].seq)
    asked = await ask(Inspector(log), sid=call.sid)
    await log.js.purge_stream("EV")
    assert asked.error == "NOT_FOUND"
