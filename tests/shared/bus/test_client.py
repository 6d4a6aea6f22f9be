"""The client's fast paths: the same results as nats-py's, and bounded, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import BadSubjectError

from tests.eventually import BOUND_S
from tests.shared.backends import Server
from voxbridge.shared.bus.client import FastClient, parse
from voxbridge.shared.bus.connection import AUDIO_PENDING, close_nats, connect_nats

SUBJECT = "vx.s.0.audio.in"
_NAME = st.text(alphabet=st.sampled_from("AZaz09-_ \t\x1c\x0b é:\r\n"), max_size=12).map(str.encode)
_VALUE = st.binary(max_size=20)
_LINE = st.builds(lambda name, separator, value: name + separator + value, _NAME, st.sampled_from([b":", b": ", b"\t:\t", b""]), _VALUE)


@given(st.lists(_LINE, max_size=8).map(b"\r\n".join))
@example(b"Nats-Sequence: 12\r\nNats-Subject: vx.s.a.ev.voice.c.user.said\r\n\r\n")
@example(b": empty name\r\nspace in name: x\r\n\xffbad: y\r\nok:\xff\r\n")
def test_headers_are_read_as_the_client_reads_them(raw: bytes) -> None:
    assert parse(raw) == Client._parse_header_lines(raw)


async def test_the_client_reads_headers_this_way() -> None:
    client = FastClient()
    headers = await client._process_headers(b"NATS/1.0\r\nNats-Sequence: 12\r\nB:c\r\n\r\n")
    assert headers == {"Nats-Sequence": "12", "B": "c"}
    assert await client._process_headers(b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\n") == {
        "Status": "204",
        "Description": "EOB",
        "Nats-Num-Pending": "0",
    }


class Heard:
    """A listener that keeps its payloads."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self._came = asyncio.Event()

    def __call__(self, frame: bytes) -> None:
        self.frames.append(frame)
        self._came.set()

    async def until(self, count: int) -> list[bytes]:
        async with asyncio.timeout(BOUND_S):
            while len(self.frames) < count:
                self._came.clear()
                await self._came.wait()
        return self.frames


@asynccontextmanager
async def connected(url: str, back: asyncio.Event | None = None) -> AsyncIterator[FastClient]:
    async def again() -> None:
        if back is not None:
            back.set()

    client = await connect_nats(url, "fast-client-test", pending=AUDIO_PENDING, on_reconnected=again)
    try:
        yield client
    finally:
        await close_nats(client)


async def test_a_listener_hears_what_is_published_in_order_beside_other_subscriptions(nats_url: str) -> None:
    async with connected(nats_url) as client:
        heard, others = Heard(), asyncio.Queue[Msg]()
        await client.listen(SUBJECT, heard)
        await client.subscribe(SUBJECT, cb=others.put)
        frames = [b"", b"\r\n", b"MSG a 1 2\r\n", *(bytes([number]) * 656 for number in range(100)), bytes(60_000)]
        assert all(client.publish_now(SUBJECT, frame) for frame in frames)
        assert await heard.until(len(frames)) == frames
        assert [(await asyncio.wait_for(others.get(), BOUND_S)).data for _ in frames] == frames


async def test_what_goes_straight_does_not_overtake_what_waits(nats_url: str) -> None:
    async with connected(nats_url) as client:
        heard = Heard()
        await client.listen(SUBJECT, heard)
        await client.flush()
        await client.publish(SUBJECT, b"first")
        assert client.publish_now(SUBJECT, b"second")
        await client.publish(SUBJECT, b"third")
        assert await heard.until(3) == [b"first", b"second", b"third"]


async def test_an_answered_flush_says_that_the_server_has_what_was_asked_before(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(nats_url) as client:
        await client.flush()
        transport: Any = client._transport
        write, written = transport._io_writer.write, bytearray()

        def recorded(data: bytes) -> None:
            written.extend(data)
            write(data)

        monkeypatch.setattr(transport._io_writer, "write", recorded)
        monkeypatch.setattr(transport._io_writer, "writelines", lambda lines: recorded(b"".join(lines)))
        await client.listen(SUBJECT, Heard())
        await client.flush()
        asked, ping = written.index(b"SUB "), written.index(b"PING")
        assert asked < ping


async def test_what_is_published_on_a_socket_that_has_just_closed_is_dropped(nats_url: str) -> None:
    async with connected(nats_url) as client:
        transport: Any = client._transport
        transport._io_writer.transport.close()
        assert client.is_connected  # it learns of the cut in the next turn of the loop; uvloop's transport would raise
        assert not client.publish_now(SUBJECT, b"late")


async def test_a_listener_that_raises_is_logged_and_hears_on(nats_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(nats_url) as client:
        heard = Heard()

        def listen(frame: bytes) -> None:
            if frame == b"bad":
                raise ValueError("what is this?")
            heard(frame)

        await client.listen(SUBJECT, listen)
        for frame in (b"bad", b"good"):
            client.publish_now(SUBJECT, frame)
        assert await heard.until(1) == [b"good"]
    assert "A listener failed." in caplog.text


async def test_after_unsubscribing_nothing_is_heard_and_nothing_kept(nats_url: str) -> None:
    async with connected(nats_url) as client:
        gone, heard = Heard(), Heard()
        subscription = await client.listen(SUBJECT, gone)
        await client.listen(SUBJECT, heard)
        await subscription.unsubscribe()
        client.publish_now(SUBJECT, b"a")
        assert await heard.until(1) == [b"a"]
        assert gone.frames == []
        assert len(client._listeners) == 1


async def test_a_subject_that_cannot_be_subscribed_to_leaves_no_listener(nats_url: str) -> None:
    async with connected(nats_url) as client:
        with pytest.raises(BadSubjectError):
            await client.listen("not a subject", Heard())
        assert client._listeners == {}


async def test_what_is_published_while_the_server_is_away_is_dropped_and_listeners_hear_again(own_server: Callable[[str], Server]) -> None:
    server, back = own_server("nats"), asyncio.Event()
    async with connected(server.url, back) as client:
        heard = Heard()
        await client.listen(SUBJECT, heard)
        client.publish_now(SUBJECT, b"before")
        await heard.until(1)
        server.kill()
        async with asyncio.timeout(BOUND_S):
            while client.publish_now(SUBJECT, b"late"):  # noqa: ASYNC110 - a cut has no event before it is repaired
                await asyncio.sleep(0)
        server.start()
        await asyncio.wait_for(back.wait(), BOUND_S)
        assert client.publish_now(SUBJECT, b"now")
        assert await heard.until(2) == [b"before", b"now"]


@asynccontextmanager
async def server_that_stops_reading() -> AsyncIterator[str]:
    """Run a server that greets a client as NATS does, and reads nothing after that."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":1048576,"headers":true}\r\n')
        await reader.readuntil(b"PING\r\n")
        writer.write(b"PONG\r\n")
        await over.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        over.set()


async def test_a_server_that_takes_nothing_is_given_no_more_than_the_limit() -> None:
    frame = bytes(32_000)
    async with server_that_stops_reading() as url, connected(url) as client:
        transport: Any = client._transport
        waiting, sent = 0, 0
        while client.publish_now(SUBJECT, frame):
            waiting, sent = transport._io_writer.transport.get_write_buffer_size(), sent + len(frame)
            assert waiting <= AUDIO_PENDING
            assert sent < 256 * 1024 * 1024
        assert waiting > AUDIO_PENDING - 2 * len(frame)


_INFO: Final = b'INFO {"server_id":"x","version":"2.11.0","max_payload":1048576,"headers":true}\r\n'


@asynccontextmanager
async def faulty(says: bytes) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that states an error to its first two connections once they are open, and closes them; the event is set when a third one
    has subscribed."""
    connections, subscribed = 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        writer.write(_INFO)
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
            elif line.startswith(b"SUB") and number < 3:
                writer.write(b"-ERR '" + says + b"'\r\n")
                break
            elif line.startswith(b"SUB"):
                subscribed.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", subscribed


@pytest.mark.parametrize("says", [b"Authentication Timeout", b"Maximum Payload Violation", b"Authorization Violation", b"Stale Connection"])
async def test_no_error_that_a_server_states_ends_a_connection_for_good(says: bytes) -> None:
    async with faulty(says) as (url, subscribed), connected(url) as client:
        await client.listen(SUBJECT, Heard())
        await asyncio.wait_for(subscribed.wait(), BOUND_S)
        assert not client.is_closed


async def test_an_attempt_that_fails_by_an_error_of_the_loop_is_followed_by_the_next(
    own_server: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, back, failures = own_server("nats"), asyncio.Event(), [RuntimeError("the handler is closed")]
    async with connected(server.url, back) as client:
        heard = Heard()
        await client.listen(SUBJECT, heard)
        connect = client._process_connect_init

        async def failing() -> None:
            if failures:
                raise failures.pop()
            await connect()

        monkeypatch.setattr(client, "_process_connect_init", failing)
        server.kill()
        server.start()
        await asyncio.wait_for(back.wait(), BOUND_S)
        assert "the handler is closed" in caplog.text
        async with connected(server.url) as other:
            await other.publish(SUBJECT, b"one")
            assert await heard.until(1) == [b"one"]


async def test_an_attempt_that_is_cancelled_ends_though_the_client_raises_behind_it(own_server: Callable[[str], Server]) -> None:
    """Kind: nats-py takes the cancellation, and then answers a future that has an answer already."""
    server, trying = own_server("nats"), asyncio.Event()
    async with connected(server.url) as client:

        async def hangs() -> None:
            trying.set()
            await asyncio.get_running_loop().create_future()

        client._select_next_server = hangs  # type: ignore[method-assign]
        server.kill()
        await asyncio.wait_for(trying.wait(), BOUND_S)
        assert client._reconnection_task is not None
        assert client._reconnection_task_future is not None
        client._reconnection_task_future.set_result(True)
        client._reconnection_task.cancel()
        ended, _ = await asyncio.wait({client._reconnection_task}, timeout=BOUND_S)
        assert ended
