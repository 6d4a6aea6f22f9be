"""The bare SDK's handoff, the baseline of the product's, keeps the history as the product does."""

from __future__ import annotations

from bench.areas.realtime import relay
from bench.peers import handoff
from bench.peers.measure import handing_google


async def test_the_bare_sdk_hands_over_with_the_history_by_handle_and_without_one() -> None:
    async with handing_google() as found, relay(found, "bench.clients.relay_handoff") as (url, _):
        done = await handoff.handoffs(handoff.Task(url=url, bare=True, calls=2))
    assert done.failed == []
    assert (done.plain, done.plain_kept, done.unresumable, done.unresumable_kept) == (1, 1, 1, 1)
    assert all(0 < ours < whole for ours, whole in zip(done.stand_in_ms, done.ms, strict=True))
