"""The pure parts of the area `functions`, and its callers on a real executor."""

from __future__ import annotations

import pytest

from bench.areas import macros
from bench.clients.function_calls import FUNCTION, PACK, calling, faults, rate
from bench.clients.tool_session import CallFailedError, Heard, tool_session
from tests.tools.conftest import Executors
from voxbridge.shared import events
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import RunStepCompleted, ToolCompleted, ToolFailed, ToolInterrupted, ToolStarted
from voxbridge.shared.events.voice import Failure

CALL = ("s1", "c1")
STARTED = ToolStarted(call_id="c1", name="nothing", attempt=1)
COMPLETED = ToolCompleted(call_id="c1", name="nothing", result={}, ms=0)


def recorded(*told: events.Event, sid: str = "s1") -> list[events.Recorded]:
    written = [events.encode(event, event_id="x", sid=sid, ts=0, cause=None) for event in told]
    return [events.decode(payload, seq=n, writer="tools", visible=True) for n, payload in enumerate(written, 1)]


def test_a_rate_counts_the_ends_of_its_period_alone() -> None:
    assert rate([0.5, 1.0, 1.5, 2.0, 3.0], 1.0, 3.0) == 1.5


def test_a_rate_of_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        rate([1.0], 2.0, 2.0)


def test_a_call_that_began_once_and_completed_once_is_no_fault() -> None:
    assert list(faults([CALL], recorded(STARTED, COMPLETED))) == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((), "begun 0 times and completed 0 times"),
        ((STARTED,), "begun 1 times and completed 0 times"),
        ((STARTED, STARTED, COMPLETED), "begun 2 times and completed 1 times"),
        ((STARTED, COMPLETED, COMPLETED), "begun 1 times and completed 2 times"),
        ((STARTED, ToolInterrupted(call_id="c1", name="nothing")), "ended with tool.interrupted"),
        (
            (STARTED, ToolFailed(call_id="c1", name="nothing", error=Failure(code=Code.OVERLOADED, message="Full."), ms=0)),
            "ended with tool.failed",
        ),
    ],
)
def test_any_other_end_is_named(told: tuple[events.Event, ...], said: str) -> None:
    assert said in next(faults([CALL], recorded(*told)))


def test_the_same_call_id_in_another_session_is_another_call() -> None:
    both = [*recorded(STARTED, COMPLETED), *recorded(STARTED, COMPLETED, sid="s2")]
    assert list(faults([CALL, ("s2", "c1")], both)) == []
    assert len(list(faults([CALL, ("s2", "c1")], both[:2]))) == 1


@pytest.fixture
def executors(nats_url: str, redis_url: str) -> Executors:
    return Executors(Config(nats_url=nats_url, redis_url=redis_url))


async def test_callers_hear_each_call_end_and_find_it_once_in_the_log(executors: Executors, nats_url: str) -> None:
    async with executors.running(PACK), calling(nats_url, 3) as callers:
        trip = await callers.one(callers.sids[0])
        assert trip.append > 0
        assert await callers.appends(0.05) > 0
        load = await callers.load(0.2, window=2)
        assert len(load.calls) == len(load.ended_at) >= 6
        await callers.check(load.calls)
        with pytest.raises(ValueError, match="begun 0 times"):
            await callers.check([*load.calls, (callers.sids[0], "never")])


async def test_a_session_hears_its_calls_and_is_told_of_those_that_fail(executors: Executors, nats_url: str) -> None:
    async with executors.running(PACK), tool_session(nats_url) as session:
        await session.there(FUNCTION)
        assert await session.call(FUNCTION) > 0
        assert await session.append_ms() > 0
        with pytest.raises(CallFailedError, match="nowhere failed"):
            await session.call("nowhere")
        ended = await session.until(lambda event: isinstance(event, ToolFailed))
        assert ended.at >= session.heard[0].at


def test_a_run_whose_steps_did_not_all_end_once_fails_the_measurement() -> None:
    ended = [Heard(0.0, RunStepCompleted(run_id="r", step=f"s{number}", attempt=1)) for number in range(macros.LINGERING)]
    macros.check(ended)
    for wrong in (ended[1:], [*ended, ended[0]]):
        with pytest.raises(ValueError, match=f"of {macros.LINGERING} steps"):
            macros.check(wrong)
