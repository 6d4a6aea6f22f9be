"""The fast path over a provider's socket, against a real server of the `websockets` library."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.eventually import BOUND_S
from voxbridge.services.voice.providers.realtime.websocket import BEHIND_LIMIT, UNHEARD_MS, Behind, ProviderSocket, silent_until


class Provider:
    """A server, and its end of the connection."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str | bytes] = asyncio.Queue()
        self.arrived: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()
        self.reads = asyncio.Event()
        self.reads.set()
        self.says: Iterable[str | bytes] = ()
        self.server: Server

    async def serve(self, connection: ServerConnection) -> None:
        for message in self.says:
            await connection.send(message)
        self.arrived.set_result(connection)
        while True:
            await self.reads.wait()
            try:
                self.heard.put_nowait(await connection.recv())
            except ConnectionClosed:
                return

    async def opened(self) -> ProviderSocket:
        port = next(iter(self.server.sockets)).getsockname()[1]
        found = await connect(f"ws://127.0.0.1:{port}", create_connection=ProviderSocket, compression=None, proxy=None)
        assert isinstance(found, ProviderSocket)
        return found


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    found = Provider()
    async with serve(found.serve, "127.0.0.1", 0, compression=None, max_queue=4, close_timeout=1) as found.server:
        yield found
        found.reads.set()


class Taken:
    """Calls that a sink received."""

    def __init__(self, fails_at: bytes = b"\0") -> None:
        self.messages: list[bytes] = []
        self._fails_at = fails_at
        self._came = asyncio.Event()

    def __call__(self, message: bytes) -> None:
        if message == self._fails_at:
            raise ValueError("not this one")
        self.messages.append(message)
        self._came.set()

    async def until(self, count: int) -> list[bytes]:
        async with asyncio.timeout(BOUND_S):
            while len(self.messages) < count:
                self._came.clear()
                await self._came.wait()
        return self.messages


async def ended(listening: asyncio.Task[None]) -> BaseException:
    with pytest.raises((ConnectionClosed, ValueError)) as raised:
        await asyncio.wait_for(listening, BOUND_S)
    return raised.value


@pytest.mark.parametrize("early", [0, 3, 12])
async def test_every_message_is_handed_over_once_and_in_order(provider: Provider, early: int) -> None:
    provider.says = [f"early {number}" for number in range(early)]
    async with await provider.opened() as near:
        far, taken = await provider.arrived, Taken()
        listening = asyncio.create_task(near.listen(taken))
        later = ["x" * size for size in (0, 125, 126, 65_535, 65_536, 200_000)]
        for text in later:
            await far.send(text)
        await far.send([b"in ", b"several ", b"parts"])
        await far.send("last")
        expected = [*(text.encode() for text in (*provider.says, *later)), b"in several parts", b"last"]  # type: ignore[union-attr]
        assert await taken.until(len(expected)) == expected
        await far.close(1011, "enough")
        error = await ended(listening)
        assert isinstance(error, ConnectionClosed)
        assert error.rcvd is not None
        assert (error.rcvd.code, error.rcvd.reason) == (1011, "enough")


async def test_a_socket_that_is_cut_is_told_without_a_code(provider: Provider) -> None:
    async with await provider.opened() as near:
        listening = asyncio.create_task(near.listen(Taken()))
        (await provider.arrived).transport.abort()
        error = await ended(listening)
        assert isinstance(error, ConnectionClosed)
        assert error.rcvd is None


async def test_what_the_sink_raises_is_raised_where_it_is_waited_for(provider: Provider) -> None:
    async with await provider.opened() as near:
        taken = Taken(fails_at=b"bad")
        listening = asyncio.create_task(near.listen(taken))
        far = await provider.arrived
        for text in ("good", "bad", "after"):
            await far.send(text)
        assert str(await ended(listening)) == "not this one"
        assert taken.messages == [b"good"]


async def test_pings_are_answered_while_messages_go_the_short_way(provider: Provider) -> None:
    async with await provider.opened() as near:
        listening = asyncio.create_task(near.listen(Taken()))
        far = await provider.arrived
        await asyncio.wait_for(await far.ping(), BOUND_S)
        await asyncio.wait_for(await near.ping(), BOUND_S)
        await far.close()
        await ended(listening)


async def test_text_is_written_in_the_call(provider: Provider) -> None:
    async with await provider.opened() as near:
        texts = ["", "é" * 60, "x" * 126, "y" * 65_535, "z" * 65_536]
        for text in texts:
            near.send_now(text.encode())
        await near.send("the library's own")
        assert [await asyncio.wait_for(provider.heard.get(), BOUND_S) for _ in range(6)] == [*texts, "the library's own"]


async def test_nothing_is_written_to_a_socket_that_is_closed(provider: Provider) -> None:
    async with await provider.opened() as near:
        await (await provider.arrived).close(1001)
        await near.wait_closed()
        with pytest.raises(ConnectionClosed):
            near.send_now(b"{}")


async def test_a_provider_that_takes_nothing_is_cut_off_at_the_bound(provider: Provider) -> None:
    provider.reads.clear()
    async with await provider.opened() as near:
        listening = asyncio.create_task(near.listen(Taken()))
        (await provider.arrived).transport.pause_reading()
        waiting: Any = near.transport
        message, seen = b"x" * 32_000, 0

        async def talk() -> None:
            nonlocal seen
            while True:
                near.send_now(message)
                seen = max(seen, waiting.get_write_buffer_size())
                await asyncio.sleep(0)

        with pytest.raises(Behind):
            await asyncio.wait_for(talk(), BOUND_S)
        assert BEHIND_LIMIT < seen <= BEHIND_LIMIT + len(message) + 16
        assert isinstance(await ended(listening), ConnectionClosed)


async def test_a_cut_network_is_found_by_what_nobody_acknowledges(provider: Provider) -> None:
    async with await provider.opened() as near:
        bound = near.transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(bound.fileno())) as same:
            assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNHEARD_MS


async def test_a_socket_connects_at_once_and_says_nothing_until_it_may(provider: Provider) -> None:
    may_speak = asyncio.Event()

    async def until() -> None:
        await may_speak.wait()

    with silent_until(until):
        connection = await provider.opened()
    other = asyncio.create_task(connection.send("first"))
    await provider.arrived
    await connection.ping()
    assert (other.done(), provider.heard.empty()) == (False, True)
    may_speak.set()
    await other
    await connection.send("second")
    assert [await provider.heard.get(), await provider.heard.get()] == ["first", "second"]
    await connection.close()
