"""Orders to programs in terminals, by a model of a vendor, whose services are killed before and after each of their appends: all orders at
the same time, each in a call and with a program of its own, which counts what it was given. No program is given anything twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.eventually import eventually
from tests.faults import bridge, told
from tests.faults.bridge import Stand, bridged
from tests.faults.caller import Caller
from tests.faults.installation import WORKERS
from tests.faults.wire import Stop, Wire

pytestmark = pytest.mark.timeout(300)

APPENDS: Final = {"tools": 4, "voice": 8, "gateway": 2}
"""Appends of each service to an order, from the user's words on, at which it is killed."""


class Order:
    """An order in a call of its own, the place at which a service is killed in it, and the file in which its program counts."""

    def __init__(self, function: str, arguments: dict[str, Any], stop: Stop, caller: Caller, counted: Path) -> None:
        self.caller = caller
        self._name = f"{function} held {stop.when} append {stop.number}"
        self._stop = stop
        self._words = bridge.order(function, **arguments)
        self._counted = counted
        self._said = -1
        """Sockets of the page before the one over which the order was said last."""

        self._approved: tuple[str, int] = ("", -1)

    def __str__(self) -> str:
        return f"{self._name}: {self.given} given, {self.results()}"

    @property
    def given(self) -> int:
        """Return how often the program was given something."""
        return self._counted.read_text().count("---") if self._counted.exists() else 0

    def hold(self, wire: Wire) -> None:
        """Have the service held at the place of the order, which counts from now on."""
        passed = wire.sent[self.caller.sid] if self._stop.when == "before" else wire.answered[self.caller.sid]
        wire.stop_at(self.caller.sid, Stop(self._stop.when, passed + int(self._stop.number)))

    async def is_over(self) -> bool:
        """Say what the page says by itself, and tell whether it knows how the order ended. What it said over a socket that it lost it says
        again: the order with its id, and yes while the question stands."""
        sockets = len(self.caller.resumes)
        if self._said < sockets:
            self._said = sockets
            await self.caller.says({"type": "text", "text": self._words, "id": "order"})
        asked_for = {one["approval_id"] for one in self.caller.facts("approval_requested")}
        for approval in asked_for - {one["approval_id"] for one in self.caller.facts("approval_ended")}:
            if self._approved != (approval, sockets):
                self._approved = (approval, sockets)
                await self.caller.says({"type": "approval_answer", "approval_id": approval, "answer": "approved"})
        return told.is_over(self.caller) and len(told.page(self.caller)["tasks"]) == len(asked_for)

    def results(self) -> list[dict[str, Any]]:
        """Return how the order ended, as the page was told."""
        ends = self.caller.facts("async_task_complete") or self.caller.facts("function_result")
        return [one["result"] for one in ends]


@pytest.fixture
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stand]:
    """Run everything; the service that is killed is behind a wire."""
    async with bridged(tmp_path, request.param) as found:
        yield found


async def begun(stand: Stand, victim: str, tmp_path: Path, leaving: AsyncExitStack) -> list[Order]:
    """Give all orders; each is then held at its place, or over before."""
    wire, orders = stand.servers.wires[victim], list[Order]()
    places = [Stop(when, number) for number in range(APPENDS[victim]) for when in ("before", "after")]
    for stop in places:
        for function in ("send_to_terminal", "send_key", "run_in_terminal"):
            folder = tmp_path / f"order{len(orders):02}"
            terminal = await bridge.started(stand, folder, shell=function == "run_in_terminal")
            own = {"send_to_terminal": {"text": "go on"}, "send_key": {"key": "enter"}, "run_in_terminal": {"command": "echo --- >> given"}}
            caller = Caller(stand.there.config.port)
            leaving.push_async_callback(caller.stop)
            await caller.start(mode="openai", agent="officer")
            await caller.until("provider", status="connected")
            orders.append(Order(function, own[function] | {"terminal": terminal}, stop, caller, folder / bridge.GIVEN))
    for order in orders:
        order.hold(wire)
    await until(orders, wire)
    return orders


async def until(orders: Sequence[Order], wire: Wire | None = None) -> None:
    """Wait until each order is over, or held on the wire."""
    left = list(orders)

    async def none_left() -> bool:
        left[:] = [order for order in left if not (await order.is_over() or (wire is not None and wire.holds(order.caller.sid)))]
        return not left

    try:
        await eventually(none_left)
    except AssertionError:
        raise AssertionError("\n".join(f"{order}, {order.caller.told[-3:]}" for order in left[:8])) from None


@pytest.mark.parametrize(("stand", "victim"), [(name, name) for name in APPENDS], indirect=["stand"], ids=list(APPENDS))
async def test_no_program_is_given_anything_twice(stand: Stand, victim: str, tmp_path: Path) -> None:
    there, wire = stand.there, stand.servers.wires[victim]
    async with AsyncExitStack() as leaving:
        orders = await begun(stand, victim, tmp_path, leaving)
        assert sum(wire.holds(order.caller.sid) for order in orders) > len(orders) // 2
        names = WORKERS if victim == "voice" else (victim,)
        for name in names:
            await there.kill(name)
        wire.cut()
        await there.start(*names)
        await until(orders)
        for order in orders:
            check(order)


def check(order: Order) -> None:
    """Check that what was told of an order is true, and that its program was given it once at most."""
    assert order.given <= 1, str(order)
    for result in order.results():
        if result.get("code") == "TIMED_OUT":
            assert (order.given, "not begun" in result["error"]) == (0, True), str(order)
        elif result.get("code") != "INTERRUPTED":
            assert "error" not in result, str(order)
            assert order.given == 1, str(order)
