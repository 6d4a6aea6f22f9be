"""Requests to a consumer for many messages at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError

from tests.eventually import BOUND_S, eventually
from voxbridge.services.tools.session.pull import BATCH, Pull
from voxbridge.shared.bus import subjects
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log

DURABLE = subjects.TOOLS_CONSUMER
SUBJECT = f"vx.s.{new_session_id()}.ev.voice.c.session"


class Taker:
    """A pull with the messages that it received."""

    def __init__(self, nc: Client) -> None:
        self.messages: list[Msg] = []
        self.pull = Pull(nc, subjects.EVENT_STREAM, DURABLE, self._receive)

    async def _receive(self, message: Msg) -> None:
        self.messages.append(message)
        await message.ack()


@pytest.fixture
async def taker(connection: Client, log: Log) -> AsyncIterator[Taker]:
    await streams.ensure_consumer(log.js, streams.CONSUMERS[DURABLE])
    taker = Taker(connection)
    await taker.pull.start()
    yield taker
    await taker.pull.stop()


async def store(log: Log, count: int) -> None:
    for number in range(count):
        await log.js.publish(SUBJECT, b"%d" % number)


async def test_what_is_there_comes_with_one_request_in_order(taker: Taker, log: Log) -> None:
    await store(log, 5)
    await taker.pull.take(5, 30.0)
    assert [message.data for message in taker.messages] == [b"0", b"1", b"2", b"3", b"4"]
    assert {message.subject for message in taker.messages} == {SUBJECT}


async def test_a_message_is_handed_over_before_the_request_is_filled(taker: Taker, log: Log) -> None:
    taking = asyncio.create_task(taker.pull.take(5, 30.0))
    await store(log, 1)
    await eventually(lambda: len(taker.messages) == 1)
    assert not taking.done()
    await store(log, 4)
    await taking
    assert len(taker.messages) == 5


async def test_no_more_are_taken_than_were_asked_for(taker: Taker, log: Log) -> None:
    await store(log, 3)
    await taker.pull.take(2, 30.0)
    assert len(taker.messages) == 2
    assert (await log.js.consumer_info(subjects.EVENT_STREAM, DURABLE)).num_pending == 1


async def test_one_request_asks_for_the_batch_at_most(taker: Taker, log: Log) -> None:
    await store(log, BATCH + 1)
    await taker.pull.take(BATCH + 1, 30.0)
    assert len(taker.messages) == BATCH


async def test_a_request_that_nothing_answers_ends_with_its_time(taker: Taker) -> None:
    await taker.pull.take(1, 0.05)
    assert taker.messages == []


async def test_a_consumer_that_is_not_there_is_told(taker: Taker, log: Log) -> None:
    await log.js.delete_consumer(subjects.EVENT_STREAM, DURABLE)
    with pytest.raises(APIError):
        await taker.pull.take(1, 5.0)


async def test_a_consumer_that_is_deleted_ends_the_request(taker: Taker, log: Log) -> None:
    taking = asyncio.create_task(taker.pull.take(1, 30.0))

    async def waits() -> bool:
        return bool((await log.js.consumer_info(subjects.EVENT_STREAM, DURABLE)).num_waiting)

    await eventually(waits)
    await log.js.delete_consumer(subjects.EVENT_STREAM, DURABLE)
    await asyncio.wait_for(taking, BOUND_S)
    assert taker.messages == []


async def test_a_receiver_that_raises_for_the_last_message_does_not_hold_the_request_up(connection: Client, log: Log) -> None:
    await streams.ensure_consumer(log.js, streams.CONSUMERS[DURABLE])

    async def fail(message: Msg) -> None:
        raise ValueError(message.data)

    pull = Pull(connection, subjects.EVENT_STREAM, DURABLE, fail)
    await pull.start()
    await store(log, 1)
    await asyncio.wait_for(pull.take(1, 30.0), BOUND_S)
    await pull.stop()
