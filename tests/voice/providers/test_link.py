"""Connections that open late: the buffered microphone audio, and the begin and end of speech in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from tests.eventually import eventually
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.provider_events import ProviderLost, ProviderReady
from voxbridge.services.voice.providers.realtime import link
from voxbridge.services.voice.providers.realtime.base import Answer, ConnectionLost, Listener, Setup
from voxbridge.services.voice.providers.realtime.handles import Handles, Kept
from voxbridge.services.voice.providers.realtime.link import ProviderLink
from voxbridge.services.voice.providers.realtime.registry import Vendors
from voxbridge.shared.audio import frames

FRAME_SAMPLES = 320
FRAME_MS = 20


class Connection:
    """A connection that accepts everything, and joins consecutive audio."""

    resumed = False

    def __init__(self) -> None:
        self.took: list[tuple[Any, ...]] = []
        self.open = True
        self.lost = asyncio.Event()
        self.may_close = asyncio.Event()
        self.may_close.set()

    async def run(self, listener: Listener) -> None:
        await self.lost.wait()
        raise ConnectionLost("Gone.")

    def send_audio(self, pcm: bytes | memoryview) -> None:
        ms = len(pcm) // 32
        if self.took and self.took[-1][0] == "audio":
            ms += self.took.pop()[1]
        self.took.append(("audio", ms))

    async def say(self, text: str, *, respond: bool = True) -> None:
        self.took.append(("say", text))

    async def answer(self, answers: Sequence[Answer]) -> None:
        self.took.append(("answer",))

    async def activity(self, *, speaking: bool) -> None:
        self.took.append(("activity", speaking))

    async def end_audio(self) -> None:
        self.took.append(("end of audio",))

    async def close(self) -> None:
        await self.may_close.wait()
        self.open = False


class House:
    """The session, the vendors and the model in one."""

    sid = "s"

    def __init__(self) -> None:
        self.may_connect = asyncio.Event()
        self.connections: list[Connection] = []
        self.told: list[Any] = []
        self.uplink = ProviderLink(self, cast("Vendors", self), cast("Handles", self))
        self.waits = False
        self.overlapping = 0
        """Connections requested with a handle while an earlier one was open."""

        self.goes_on = False
        self._closing: set[asyncio.Future[None]] = set()
        self._samples = 0

    def asking(self) -> bool:
        return self.waits

    async def get(self, provider: str) -> House:
        return self

    async def connect(self, setup: Setup) -> Connection:
        await self.may_connect.wait()
        if setup.handle and setup.closed is not None:
            await setup.closed()
        self.overlapping += bool(setup.handle) and any(one.open for one in self.connections)
        self.connections.append(Connection())
        return self.connections[-1]

    def take(self, input: Any) -> None:
        self.told.append(input)
        if isinstance(input, ProviderLost) and self.goes_on:
            self.open(input.effect + 1, handle="h")

    async def find(self, sid: str, ref: str) -> Kept:
        return Kept(ref=ref, handle="handle", provider="gemini", model="m", config="", position=0, at=0)

    def play(self, generation: int, pcm: bytes) -> None:
        raise AssertionError("nobody speaks")

    def position(self) -> int:
        return 0

    def now_us(self) -> int:
        return 0

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        closing = asyncio.ensure_future(work)
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def open(self, effect: int, **asked: Any) -> None:
        """Request a connection."""
        self.uplink.open(effect, out.Connect(provider="gemini", model="m", voice="", language="", instructions="", **asked))

    def hears(self, count: int) -> None:
        """Take so many microphone frames of 20 ms."""
        for _ in range(count):
            self._samples += FRAME_SAMPLES
            self.uplink.hear(frames.pack(frames.PCM16, 0, 0, 0, bytes(2 * FRAME_SAMPLES)), self._samples)

    async def settles(self) -> None:
        """Run all pending callbacks."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def closes(self) -> None:
        """Wait until all connections are closed."""
        while self._closing:
            await asyncio.wait(self._closing)

    async def took(self, number: int, what: list[tuple[Any, ...]]) -> None:
        """Wait until a connection has received exactly this."""
        await eventually(lambda: len(self.connections) > number and self.connections[number].took == what, within_s=5)


async def test_the_end_of_speech_follows_the_speech_over_a_connection_that_opens_late() -> None:
    house = House()
    house.open(1)
    house.uplink.do(out.Activity(1, speaking=True))
    house.hears(100)
    house.uplink.do(out.Activity(1, speaking=False))
    house.hears(5)
    house.uplink.do(out.EndAudio(1))
    house.may_connect.set()
    await house.took(0, [("activity", True), ("audio", 2_000), ("activity", False), ("audio", 100), ("end of audio",)])
    house.uplink.close(1)


async def test_a_connection_that_hears_the_audio_again_is_told_where_it_ends_again() -> None:
    house = House()
    house.may_connect.set()
    house.open(1)
    await house.took(0, [])
    house.hears(50)
    house.uplink.do(out.EndAudio(1))
    await house.took(0, [("audio", 1_000), ("end of audio",)])
    house.hears(50)
    house.open(2, audio_from_ms=500)
    await house.took(1, [("audio", 500), ("end of audio",), ("audio", 1_000)])
    house.open(3, audio_from_ms=1_000)
    await house.took(2, [("audio", 1_000)])
    assert [type(one) for one in house.told] == [ProviderReady] * 3
    house.uplink.close(3)


@pytest.mark.parametrize(("waits", "again_ms"), [(False, link.RESTING_MS), (True, link.KEPT_MS)])
async def test_little_is_kept_while_it_is_heard_and_nobody_waits_for_an_answer(waits: bool, again_ms: int) -> None:
    house = House()
    house.waits = waits
    house.may_connect.set()
    house.open(1)
    house.hears(1)
    await house.took(0, [("audio", FRAME_MS)])
    house.hears(600)
    house.open(2)
    await house.took(1, [("audio", again_ms + FRAME_MS)])
    house.uplink.close(2)


async def test_what_is_said_while_a_connection_opens_is_kept_for_ten_seconds() -> None:
    house = House()
    house.open(1)
    house.hears(600)
    house.may_connect.set()
    await house.took(0, [("audio", link.KEPT_MS + FRAME_MS)])
    house.uplink.close(1)


async def test_a_connection_in_the_middle_of_speech_is_told_that_the_user_speaks_and_of_no_speech_before() -> None:
    house = House()
    house.may_connect.set()
    house.open(1)
    await house.took(0, [])
    house.uplink.do(out.Activity(1, speaking=True))
    house.hears(50)
    house.open(2, speaking=True)
    house.hears(50)
    house.uplink.do(out.Activity(2, speaking=False))
    await house.took(1, [("activity", True), ("audio", 2_000), ("activity", False)])
    house.uplink.close(2)


@pytest.mark.parametrize("count", [link.KEPT_LIMIT, link.KEPT_LIMIT + 1])
async def test_what_is_said_between_frames_that_never_come_is_bounded(count: int) -> None:
    house = House()
    house.open(1)
    for _ in range(count):
        house.uplink.do(out.EndAudio(1))
    house.may_connect.set()
    await house.took(0, [("end of audio",)] * link.KEPT_LIMIT)
    assert not any(isinstance(one, ProviderLost) for one in house.told)
    house.uplink.close(1)


async def _connected(house: House, *effects: int) -> None:
    house.may_connect.set()
    for effect in effects:
        house.open(effect)
        await house.took(len(house.connections), [])
        house.connections[-1].may_close.clear()


@pytest.mark.parametrize("closes", ["by itself", "with the next one"])
async def test_a_conversation_is_resumed_when_the_connections_before_are_closed(closes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 30.0)
    house = House()
    await _connected(house, 1, 2)
    first, second = house.connections
    if closes == "by itself":
        house.uplink.close(2)
    house.open(3, handle="h")
    await house.settles()
    second.may_close.set()
    await house.settles()
    assert len(house.connections) == 2, "the first one is open still"
    first.may_close.set()
    await house.took(2, [])
    assert house.overlapping == 0
    house.uplink.close(3)
    await house.closes()


async def test_a_conversation_is_resumed_when_the_connection_that_was_lost_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 30.0)
    house = House()
    house.goes_on = True
    await _connected(house, 1)
    house.connections[0].lost.set()
    await house.settles()
    assert len(house.connections) == 1
    house.connections[0].may_close.set()
    await house.took(1, [])
    assert house.overlapping == 0
    house.uplink.close(2)
    await house.closes()


async def test_a_connection_that_does_not_close_holds_the_next_one_up_no_longer_than_a_close_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 0.05)
    house = House()
    await _connected(house, 1)
    house.open(2, handle="h")
    await house.took(1, [])
    assert house.overlapping == 1
    house.connections[0].may_close.set()
    house.uplink.close(2)
    await house.closes()


async def test_a_new_conversation_does_not_wait_for_the_connection_before() -> None:
    house = House()
    await _connected(house, 1)
    house.open(2)
    await house.took(1, [])
    assert house.connections[0].open
    house.connections[0].may_close.set()
    house.uplink.close(2)
    await house.closes()
