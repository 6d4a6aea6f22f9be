"""Connections that open late: the buffered microphone audio, and the begin and end of speech in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from tests.eventually import eventually
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.provider_events import ProviderLost, ProviderReady
from voxbridge.services.voice.providers.realtime import kept, link
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


class Owner:
    """The session, the vendors and the model in one."""

    sid = "s"

    def __init__(self) -> None:
        self.may_connect = asyncio.Event()
        self.connections: list[Connection] = []
        self.told: list[Any] = []
        self.link = ProviderLink(self, cast("Vendors", self), cast("Handles", self))
        self.waits = False
        self.overlapping = 0
        """Connections requested with a handle while an earlier one was open."""

        self.goes_on = False
        self._closing: set[asyncio.Future[None]] = set()
        self._samples = 0

    def asking(self) -> bool:
        return self.waits

    async def get(self, provider: str) -> Owner:
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
        self.link.open(effect, out.Connect(provider="gemini", model="m", voice="", language="", instructions="", **asked))

    def hears(self, count: int) -> None:
        """Take so many microphone frames of 20 ms."""
        for _ in range(count):
            self._samples += FRAME_SAMPLES
            self.link.hear(frames.pack(frames.PCM16, 0, 0, 0, bytes(2 * FRAME_SAMPLES)), self._samples)

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
        await eventually(lambda: len(self.connections) > number and self.connections[number].took == what)


async def test_the_end_of_speech_follows_the_speech_over_a_connection_that_opens_late() -> None:
    owner = Owner()
    owner.open(1)
    owner.link.do(out.Activity(1, speaking=True))
    owner.hears(100)
    owner.link.do(out.Activity(1, speaking=False))
    owner.hears(5)
    owner.link.do(out.EndAudio(1))
    owner.may_connect.set()
    await owner.took(0, [("activity", True), ("audio", 2_000), ("activity", False), ("audio", 100), ("end of audio",)])
    owner.link.close(1)


async def test_a_connection_that_hears_the_audio_again_is_told_where_it_ends_again() -> None:
    owner = Owner()
    owner.may_connect.set()
    owner.open(1)
    await owner.took(0, [])
    owner.hears(50)
    owner.link.do(out.EndAudio(1))
    await owner.took(0, [("audio", 1_000), ("end of audio",)])
    owner.hears(50)
    owner.open(2, audio_from_ms=500)
    await owner.took(1, [("audio", 500), ("end of audio",), ("audio", 1_000)])
    owner.open(3, audio_from_ms=1_000)
    await owner.took(2, [("audio", 1_000)])
    assert [type(one) for one in owner.told] == [ProviderReady] * 3
    owner.link.close(3)


@pytest.mark.parametrize(("waits", "again_ms"), [(False, kept.RESTING_MS), (True, kept.KEPT_MS)])
async def test_little_is_kept_while_it_is_heard_and_nobody_waits_for_an_answer(waits: bool, again_ms: int) -> None:
    owner = Owner()
    owner.waits = waits
    owner.may_connect.set()
    owner.open(1)
    owner.hears(1)
    await owner.took(0, [("audio", FRAME_MS)])
    owner.hears(600)
    owner.open(2)
    await owner.took(1, [("audio", again_ms + FRAME_MS)])
    owner.link.close(2)


async def test_what_is_said_while_a_connection_opens_is_kept_for_ten_seconds() -> None:
    owner = Owner()
    owner.open(1)
    owner.hears(600)
    owner.may_connect.set()
    await owner.took(0, [("audio", kept.KEPT_MS + FRAME_MS)])
    owner.link.close(1)


async def test_a_connection_in_the_middle_of_speech_is_told_that_the_user_speaks_and_of_no_speech_before() -> None:
    owner = Owner()
    owner.may_connect.set()
    owner.open(1)
    await owner.took(0, [])
    owner.link.do(out.Activity(1, speaking=True))
    owner.hears(50)
    owner.open(2, speaking=True)
    owner.hears(50)
    owner.link.do(out.Activity(2, speaking=False))
    await owner.took(1, [("activity", True), ("audio", 2_000), ("activity", False)])
    owner.link.close(2)


@pytest.mark.parametrize("count", [kept.KEPT_LIMIT, kept.KEPT_LIMIT + 1])
async def test_what_is_said_between_frames_that_never_come_is_bounded(count: int) -> None:
    owner = Owner()
    owner.open(1)
    for _ in range(count):
        owner.link.do(out.EndAudio(1))
    owner.may_connect.set()
    await owner.took(0, [("end of audio",)] * kept.KEPT_LIMIT)
    assert not any(isinstance(one, ProviderLost) for one in owner.told)
    owner.link.close(1)


async def _connected(owner: Owner, *effects: int) -> None:
    owner.may_connect.set()
    for effect in effects:
        owner.open(effect)
        await owner.took(len(owner.connections), [])
        owner.connections[-1].may_close.clear()


@pytest.mark.parametrize("closes", ["by itself", "with the next one"])
async def test_a_conversation_is_resumed_when_the_connections_before_are_closed(closes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 30.0)
    owner = Owner()
    await _connected(owner, 1, 2)
    first, second = owner.connections
    if closes == "by itself":
        owner.link.close(2)
    owner.open(3, handle="h")
    await owner.settles()
    second.may_close.set()
    await owner.settles()
    assert len(owner.connections) == 2, "the first one is open still"
    first.may_close.set()
    await owner.took(2, [])
    assert owner.overlapping == 0
    owner.link.close(3)
    await owner.closes()


async def test_a_conversation_is_resumed_when_the_connection_that_was_lost_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 30.0)
    owner = Owner()
    owner.goes_on = True
    await _connected(owner, 1)
    owner.connections[0].lost.set()
    await owner.settles()
    assert len(owner.connections) == 1
    owner.connections[0].may_close.set()
    await owner.took(1, [])
    assert owner.overlapping == 0
    owner.link.close(2)
    await owner.closes()


async def test_a_connection_that_does_not_close_holds_the_next_one_up_no_longer_than_a_close_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "CLOSE_S", 0.05)
    owner = Owner()
    await _connected(owner, 1)
    owner.open(2, handle="h")
    await owner.took(1, [])
    assert owner.overlapping == 1
    owner.connections[0].may_close.set()
    owner.link.close(2)
    await owner.closes()


async def test_a_new_conversation_does_not_wait_for_the_connection_before() -> None:
    owner = Owner()
    await _connected(owner, 1)
    owner.open(2)
    await owner.took(1, [])
    assert owner.connections[0].open
    owner.connections[0].may_close.set()
    owner.link.close(2)
    await owner.closes()
