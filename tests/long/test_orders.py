"""Calls with random events in large numbers; `tests/voice/orders/test_orders.py` plays a few of them."""

from __future__ import annotations

from tests.voice.orders.rules import first_broken

ORDERS = 100_000


def test_any_order_of_what_may_happen_comes_to_rest() -> None:
    assert not first_broken(ORDERS)
