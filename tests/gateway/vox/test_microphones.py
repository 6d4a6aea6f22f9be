"""Delivery of microphone frames to the bus: at once from few sockets, batched from many, always in order, and exactly once over a cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count

import pytest
import pytest_asyncio
from nats.aio.msg import Msg

from tests.eventually import BOUND_S
from voxbridge.services.gateway.metrics import Metrics
from voxbridge.services.gateway.vox import microphones
from voxbridge.services.gateway.vox.microphones import HELD_S, LATE_S, MANY, RECENT, SOME, Gathering, Microphone, Microphones
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.bus.connection import AUDIO_PENDING, close_nats, connect_nats
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.ids import new_session_id

FRAME_MS = 20
PCM = bytes(2 * frames.INPUT_RATE * FRAME_MS // 1_000)


def frame(number: int) -> bytes:
    return frames.pack(frames.PCM16, 0, number, 1_000 + number * FRAME_MS, PCM)


class Bench:
    """A gateway's microphones, and a worker that receives one of them."""

    def __init__(self, nc: FastClient, worker: FastClient) -> None:
        self.nc = nc
        self.worker = worker
        self.metrics = Metrics()
        self.microphones = Microphones(nc, self.metrics)
        self.microphone = self.microphones.open(new_session_id())
        self.heard: list[bytes] = []
        self.answers = True
        self._more = asyncio.Event()

    async def listen(self) -> None:
        await self.worker.listen(self.microphone.subject, self._hear)
        await self.worker.subscribe(subjects.MICROPHONE, cb=self._asked)
        await self.worker.flush()

    def _hear(self, payload: bytes) -> None:
        self.heard.append(bytes(payload))
        self._more.set()

    async def _asked(self, message: Msg) -> None:
        if self.answers and message.data.decode() == self.microphone.sid:
            await message.respond(self.heard[-1][: frames.PREFIX_SIZE] if self.heard else b"")

    def says(self, payload: bytes) -> None:
        self.microphones.publish(self.microphone, payload)

    async def until(self, count: int) -> list[bytes]:
        async with asyncio.timeout(BOUND_S):
            while len(self.heard) < count:
                self._more.clear()
                await self._more.wait()
        return self.heard

    def numbers(self) -> list[int]:
        return [frames.parse(payload).sequence for payload in self.heard]

    async def until_number(self, number: int) -> list[int]:
        async with asyncio.timeout(BOUND_S):
            while number not in self.numbers():
                self._more.clear()
                await self._more.wait()
        return self.numbers()


async def benches(url: str) -> AsyncIterator[Bench]:
    nc = await connect_nats(url, "microphones-test", pending=AUDIO_PENDING)
    worker = await connect_nats(url, "worker-test", pending=AUDIO_PENDING)
    found = Bench(nc, worker)
    await found.listen()
    yield found
    await close_nats(nc)
    await close_nats(worker)


@pytest_asyncio.fixture
async def bench(nats_url: str) -> AsyncIterator[Bench]:
    async for found in benches(nats_url):
        yield found


@pytest.fixture
def server(own_nats: Callable[[], NatsServer]) -> NatsServer:
    return own_nats()


@pytest_asyncio.fixture
async def cut_off(server: NatsServer) -> AsyncIterator[Bench]:
    """A bench whose server may be killed."""
    async for found in benches(server.url):
        yield found


async def talk(bench: Bench, numbers: Iterator[int], until: Callable[[], bool]) -> int:
    """Send a frame each 20 ms until a condition holds. Return the number of the last frame."""
    number = -1
    while not until():
        number = next(numbers)
        bench.says(frame(number))
        await asyncio.sleep(FRAME_MS / 1_000)
    return number


async def test_frames_of_few_sockets_are_written_at_once(bench: Bench) -> None:
    bench.metrics.sockets = SOME.sockets - 1
    bench.says(b"a")
    assert bench.metrics.frames_in == 1
    assert await bench.until(1) == [b"a"]


async def test_frames_of_many_sockets_wait_for_one_another_and_stay_in_order(bench: Bench) -> None:
    bench.metrics.sockets = MANY.sockets
    for number in range(5):
        bench.says(b"%d" % number)
    assert bench.metrics.frames_in == 0
    assert await bench.until(5) == [b"0", b"1", b"2", b"3", b"4"]
    assert bench.metrics.frames_in == 5


async def test_a_frame_does_not_overtake_those_that_wait_when_sockets_leave(bench: Bench) -> None:
    bench.metrics.sockets = SOME.sockets
    bench.says(b"first")
    bench.metrics.sockets = 1
    bench.says(b"second")
    assert await bench.until(2) == [b"first", b"second"]


@pytest.mark.parametrize("how", [SOME, MANY])
async def test_frames_wait_until_there_are_so_many(bench: Bench, how: Gathering) -> None:
    bench.metrics.sockets = how.sockets
    for _ in range(how.frames - 1):
        bench.says(b"x")
    assert bench.metrics.frames_in == 0
    bench.says(b"x")
    assert bench.metrics.frames_in == how.frames
    bench.says(b"y")
    assert bench.metrics.frames_in == how.frames, "the next ones wait for a time of their own"


@pytest.mark.parametrize("sockets", [1, SOME.sockets])
async def test_each_frame_is_heard_once_and_in_order_over_the_death_of_the_server(cut_off: Bench, server: NatsServer, sockets: int) -> None:
    bench, numbers = cut_off, count()
    bench.metrics.sockets = sockets
    await talk(bench, numbers, lambda: len(bench.heard) >= 20)
    for _ in range(3):
        server.kill()  # the last writes may not have been forwarded
        await talk(bench, numbers, lambda: bool(bench.microphone.held))
        server.start()
        await talk(bench, numbers, lambda: bench.nc.is_connected and not bench.microphone.holding)
    last = next(numbers)
    bench.says(frame(last))
    assert await bench.until_number(last) == list(range(last + 1))
    assert not bench.metrics.dropped["bus_away"]


async def test_a_worker_that_comes_back_later_than_the_gateway_misses_nothing(cut_off: Bench, server: NatsServer) -> None:
    bench, numbers = cut_off, count()
    await talk(bench, numbers, lambda: len(bench.heard) >= 5)
    bench.answers = False  # as if the worker were not there yet
    server.kill()
    await talk(bench, numbers, lambda: bool(bench.microphone.held))
    server.start()
    await talk(bench, numbers, lambda: bench.nc.is_connected and bench.worker.is_connected)
    before = len(bench.heard)
    last = await talk(bench, numbers, lambda: len(bench.microphone.held) > 40)
    assert len(bench.heard) == before
    bench.answers = True
    assert await bench.until_number(last) == list(range(last + 1))


async def test_where_nobody_says_what_was_heard_what_is_held_is_sent_in_the_end(
    cut_off: Bench, server: NatsServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(microphones, "ANSWER_S", 0.3)
    bench, numbers = cut_off, count()
    await talk(bench, numbers, lambda: len(bench.heard) >= 5)
    bench.answers = False
    server.kill()
    await talk(bench, numbers, lambda: bool(bench.microphone.held))
    first = frames.parse(bench.microphone.held[0]).sequence
    server.start()
    last = await talk(bench, numbers, lambda: bench.nc.is_connected and not bench.microphone.holding)
    heard = await bench.until_number(last)
    assert heard == sorted(set(heard))
    assert set(range(first, last + 1)) <= set(heard)
    assert "nobody said what was heard" in caplog.text


async def test_ten_seconds_are_held_and_of_more_the_newest(cut_off: Bench, server: NatsServer, caplog: pytest.LogCaptureFixture) -> None:
    bench, whole, cut = cut_off, HELD_S * 1_000 // FRAME_MS, asyncio.Event()
    bench.nc.on_cut = cut.set
    server.kill()
    async with asyncio.timeout(BOUND_S):
        await cut.wait()
    for number in range(whole):
        bench.says(frame(number))
    assert bench.metrics.dropped["bus_away"] == 0
    bench.says(frame(whole))
    assert bench.metrics.dropped["bus_away"] == 1
    assert len(bench.microphone.held) == whole
    server.start()
    assert await bench.until_number(whole) == list(range(1, whole + 1))
    assert "0.0 s of the microphone's audio were lost" in caplog.text


async def test_a_server_that_takes_no_more_for_now_gets_everything_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.nc, "_max_pending_size", 10)
    for number in range(3):
        bench.says(frame(number))
    assert len(bench.microphone.held) == 3
    assert bench.metrics.frames_in == 0
    monkeypatch.setattr(bench.nc, "_max_pending_size", AUDIO_PENDING)
    assert await bench.until_number(2) == [0, 1, 2]
    assert not bench.microphone.holding


async def test_a_server_that_is_behind_gets_the_newest_second(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.nc, "_max_pending_size", 10)
    whole = LATE_S * 1_000 // FRAME_MS
    for number in range(whole):
        bench.says(frame(number))
    assert bench.metrics.dropped["bus_busy"] == 0
    bench.says(frame(whole))
    assert bench.metrics.dropped["bus_busy"] == 1
    monkeypatch.setattr(bench.nc, "_max_pending_size", AUDIO_PENDING)
    assert await bench.until_number(whole) == list(range(1, whole + 1))


async def test_what_is_said_before_the_log_has_the_socket_is_held_and_then_sent_in_order(bench: Bench) -> None:
    bench.microphone.unattached = True
    bench.says(frame(0))
    bench.metrics.sockets = SOME.sockets
    bench.says(frame(1))
    assert bench.metrics.frames_in == 0
    bench.metrics.sockets = 1
    bench.microphones.attached(bench.microphone, 7)
    bench.says(frame(2))
    assert await bench.until_number(2) == [0, 1, 2]
    assert [frames.parse(one).generation for one in bench.heard[:2]] == [7, 7]
    assert [frames.parse(one).time_ms for one in bench.heard] == [1_000, 1_020, 1_040], "when they came, not when they were written"


async def test_ten_seconds_are_held_for_the_log_and_of_more_the_newest(bench: Bench) -> None:
    bench.microphone.unattached = True
    whole = HELD_S * 1_000 // FRAME_MS
    for number in range(whole):
        bench.says(frame(number))
    assert bench.metrics.dropped["log_away"] == 0
    bench.says(frame(whole))
    assert bench.metrics.dropped["log_away"] == 1
    bench.microphones.attached(bench.microphone, 7)
    assert await bench.until_number(whole) == list(range(1, whole + 1))


async def test_a_client_that_leaves_before_the_log_has_it_is_heard_all_the_same(bench: Bench) -> None:
    bench.microphone.unattached = True
    bench.says(frame(0))
    bench.microphones.close(bench.microphone)
    bench.microphones.attached(bench.microphone, 7)
    assert await bench.until_number(0) == [0]


async def test_what_a_client_said_before_it_left_is_still_sent(cut_off: Bench, server: NatsServer) -> None:
    bench, numbers = cut_off, count()
    server.kill()
    last = await talk(bench, numbers, lambda: len(bench.microphone.held) > 2)
    bench.microphones.close(bench.microphone)
    server.start()
    heard = await bench.until_number(last)
    assert heard == sorted(set(heard))


def test_only_frames_after_the_one_that_was_heard_are_written_again() -> None:
    microphone = Microphone(new_session_id())
    microphone.recent.extend(frame(number) for number in range(RECENT + 10))
    microphone.hold(frame(RECENT + 10), HELD_S)
    microphone.go_on_after(frame(RECENT + 7)[: frames.PREFIX_SIZE])
    assert [frames.parse(one).sequence for one in microphone.held] == [RECENT + 8, RECENT + 9, RECENT + 10]
    microphone.go_on_after(frame(3)[: frames.PREFIX_SIZE])  # older than the known frames
    assert len(microphone.held) == 3
    microphone.go_on_after(b"")  # no frame was heard
    assert len(microphone.held) == 3


async def test_sockets_that_said_nothing_yet_ask_nothing(cut_off: Bench, server: NatsServer, caplog: pytest.LogCaptureFixture) -> None:
    bench, numbers = cut_off, count()
    silent = bench.microphones.open(new_session_id())
    server.kill()
    last = await talk(bench, numbers, lambda: len(bench.microphone.held) > 2)
    server.start()
    await bench.until_number(last)
    assert not silent.holding
    assert "nobody said" not in caplog.text
