"""A core that raises unexpectedly ends only its own session, with the reason. On real servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.voice.conftest import MakePage, Page, Workers, left
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import step as core_step
from voxbridge.services.voice.core.state import State
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.store.store import Store

Fails = Callable[[State, Any], bool]


def _fails(monkeypatch: pytest.MonkeyPatch, fails: Fails) -> None:
    """Make the core raise where `fails` says so, with words of the call in the error."""
    step = core_step.step

    def failing(state: State, input: Any, now: int) -> Any:
        if fails(state, input):
            raise AttributeError("the secret that was said")
        return step(state, input, now)

    monkeypatch.setattr(core_step, "step", failing)


def _text(input: Any) -> str:
    said = input.recorded.event if isinstance(input, LogInput) else None
    return said.text if isinstance(said, gateway.TextReceived) else ""


async def _one_answers(page: Page) -> None:
    await page.says(gateway.TextReceived(text="Hello"))
    assert (await page.event(ev.TurnCompleted)).reason == "completed"
    await page.ends()


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.past_is_broken)])
async def test_a_core_that_fails_ends_its_session_and_no_other(
    again: bool, workers: Workers, pages: MakePage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`again`: the core also fails at the end of the session."""
    broken, other, later = pages(), pages(), pages()
    _fails(monkeypatch, lambda _, input: _text(input) == "boom" or (again and isinstance(input, inputs.Broken)))
    async with workers.running() as worker:
        for page in (broken, other):
            await page.open()
            await page.until(ev.SessionStarted)
        await broken.says(gateway.TextReceived(text="boom"))
        ended = await broken.event(ev.SessionEnded)
        assert ended.reason == "worker_lost"
        assert ended.error is not None
        assert (ended.error.code, ended.error.retryable) == ("INTERNAL", False)
        assert "secret" not in ended.error.message
        await left(store, broken)
        await _one_answers(other)
        await later.open()
        await later.until(ev.SessionStarted)
        await _one_answers(later)
        assert worker.health()["leases"]
    assert [len(page.told(ev.SessionOwned, ev.SessionEnded)) for page in (broken, other, later)] == [2, 2, 2]


async def test_a_core_that_fails_at_what_the_worker_tells_all_its_sessions_keeps_the_leases_of_the_others(
    workers: Workers, pages: MakePage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = pages(), pages()
    _fails(monkeypatch, lambda state, input: isinstance(input, inputs.GatewayLost) and state.sid == broken.sid)
    async with workers.running() as worker:
        for page in (broken, other):
            await page.open()
            await page.says(gateway.ClientConnected(gateway="nobody", connection="c", resumed=False))
            await page.until(ev.SessionStarted)
        assert (await broken.event(ev.SessionEnded)).reason == "worker_lost"
        await left(store, broken)
        await _one_answers(other)
        assert not worker.draining()


async def test_a_core_that_cannot_begin_a_session_refuses_it(
    workers: Workers, pages: MakePage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = pages(), pages()
    _fails(monkeypatch, lambda state, input: isinstance(input, inputs.Opened) and state.sid == broken.sid)
    async with workers.running():
        await broken.open()
        ended = await broken.event(ev.SessionEnded)
        assert (ended.reason, ended.error and ended.error.code) == ("refused", "INTERNAL")
        await left(store, broken)
        await other.open()
        await other.until(ev.SessionStarted)
        await _one_answers(other)
