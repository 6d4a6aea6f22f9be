"""What a connection hears that opens late: the microphone's kept audio, and where in it speech began and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from services.voice import outputs as out
from services.voice import uplink
from services.voice.handles import Handles
from services.voice.provider import ProviderLost, ProviderReady
from services.voice.realtime import Answer, Listener, Setup
from services.voice.uplink import Uplink
from services.voice.vendors import Vendors
from shared import frames

FRAME_SAMPLES = 320
FRAME_MS = 20


class Connection:
    """Takes everything, and joins audio that follows audio."""

    resumed = False

    def __init__(self) -> None:
        self.took: list[tuple[Any, ...]] = []

    async def run(self, listener: Listener) -> None:
        await asyncio.Event().wait()

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
        pass


class House:
    """The session, the vendors and the model in one."""

    sid = "s"

    def __init__(self) -> None:
        self.may_connect = asyncio.Event()
        self.connections: list[Connection] = []
        self.told: list[Any] = []
        self.uplink = Uplink(self, cast("Vendors", self), cast("Handles", None))
        self.waits = False
        self._samples = 0

    def asking(self) -> bool:
        return self.waits

    async def get(self, provider: str) -> House:
        return self

    async def connect(self, setup: Setup) -> Connection:
        await self.may_connect.wait()
        self.connections.append(Connection())
        return self.connections[-1]

    def take(self, input: Any) -> None:
        self.told.append(input)

    def play(self, generation: int, pcm: bytes) -> None:
        raise AssertionError("nobody speaks")

    def position(self) -> int:
        return 0

    def now_us(self) -> int:
        return 0

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        self._closing = asyncio.ensure_future(work)

    def open(self, effect: int, **asked: Any) -> None:
        """Ask for a connection."""
        self.uplink.open(effect, out.Connect(provider="gemini", model="m", voice="", language="", instructions="", **asked))

    def hears(self, count: int) -> None:
        """So many frames of 20 ms."""
        for _ in range(count):
            self._samples += FRAME_SAMPLES
            self.uplink.hear(frames.pack(frames.PCM16, 0, 0, 0, bytes(2 * FRAME_SAMPLES)), self._samples)

    async def took(self, number: int, what: list[tuple[Any, ...]]) -> None:
        """Wait until a connection took just this."""
        async with asyncio.timeout(5):
            while len(self.connections) <= number or self.connections[number].took != what:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)


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


@pytest.mark.parametrize(("waits", "again_ms"), [(False, uplink.RESTING_MS), (True, uplink.KEPT_MS)])
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
    await house.took(0, [("audio", uplink.KEPT_MS + FRAME_MS)])
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


@pytest.mark.parametrize("count", [uplink.KEPT_LIMIT, uplink.KEPT_LIMIT + 1])
async def test_what_is_said_between_frames_that_never_come_is_bounded(count: int) -> None:
    house = House()
    house.open(1)
    for _ in range(count):
        house.uplink.do(out.EndAudio(1))
    house.may_connect.set()
    await house.took(0, [("end of audio",)] * uplink.KEPT_LIMIT)
    assert not any(isinstance(one, ProviderLost) for one in house.told)
    house.uplink.close(1)
