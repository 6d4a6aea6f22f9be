"""Microphone frames over a cut between the bus and the worker: each is heard once and in order."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import BOUND_S
from tests.voice.conftest import Page, Workers
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.audio import catch_up, inbound
from voxbridge.services.voice.audio.inbound import Inbound
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.events import voice as ev
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log

FRAME_MS = 20


def cut(connection: FastClient) -> None:
    """Break the connection as a network failure does."""
    connection._transport._io_writer.transport.abort()  # type: ignore[union-attr]  # an internal of nats-py


def frame(number: int) -> bytes:
    return frames.pack(frames.PCM16, 0, number, 1_000 + FRAME_MS * number, bytes(640))


async def test_what_is_said_while_a_worker_is_cut_off_is_heard_once_and_in_order(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbound, "CATCH_UP_S", 10.0)  # on a busy machine the frames are late, and no worker may give them up for that
    monkeypatch.setattr(inbound, "KNOWN_S", 10.0)  # as long as the servers of a busy machine need to tell each other of a subscription
    async with workers.running() as worker:
        await page.open(mode="echo")
        await page.until(ev.SessionStarted)
        session, connection = worker._sessions[page.sid], worker._place.audio_nc
        heard: list[int] = []
        more = asyncio.Event()

        def hear(payload: bytes) -> None:
            heard.append(frames.parse(payload).sequence)
            more.set()

        session.inbound._hear = hear
        for _ in range(3):
            await page.speaks(silence(200))
            cut(connection)
            while connection.is_connected:
                await page.speaks(silence(100))
            while not connection.is_connected:
                await page.speaks(silence(100))
                await asyncio.sleep(FRAME_MS / 1_000)  # real time, as from a microphone
        await page.speaks(silence(100))
        async with asyncio.timeout(BOUND_S):
            while page._sequence - 1 not in heard:
                more.clear()
                await more.wait()
        assert heard == list(range(page._sequence))
        assert session.inbound.heard() is not None
        await page.ends()


async def test_a_catch_up_that_begins_when_the_bus_is_away_again_leaves_the_frames_to_its_return(
    workers: Workers, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers.running() as worker:
        await page.open(mode="echo")
        await page.until(ev.SessionStarted)
        inbound = worker._sessions[page.sid].inbound
        worker._cut_off()
        with monkeypatch.context() as away:
            away.setattr(FastClient, "is_connected", property(lambda client: client is not worker._place.audio_nc))
            await worker._catch_up()
            held = inbound.holds
        assert held
        await worker._catch_up()
        assert not inbound.holds
        await page.ends()


async def test_speech_is_not_over_because_its_rest_waits_to_be_heard(workers: Workers, page: Page) -> None:
    async with workers.running() as worker:
        await page.open()
        await page.until(ev.SessionStarted)
        session = worker._sessions[page.sid]
        await page.speaks(silence(500) + speech(1_500))
        await page.until(ev.SpeechStarted)
        session.inbound.cut_off()
        for _ in range(3):
            await page.speaks(speech(500))
            session._ears._look(session._ears._ears.end_ms)  # as after a second
        await session.inbound.catch_up()
        await page.speaks(silence(600))
        ended = await page.event(ev.SpeechEnded)
        await page.ends()
    assert 3_300 <= ended.audio_ms <= 3_700, "two seconds, three times half a second"
    assert len(page.told(ev.SpeechStarted)) == 1


@pytest.fixture
def heard() -> list[int]:
    return []


@pytest.fixture
def held(heard: list[int], monkeypatch: pytest.MonkeyPatch) -> Inbound:
    """Return a microphone during a cut: it has heard frames 0 to 2, the bus keeps 0 to 5, and 5 to 7 arrive after the cut."""

    async def read(log: Log, sid: str) -> catch_up.Kept:
        return catch_up.Kept([frame(number) for number in range(6)], [])

    monkeypatch.setattr(catch_up, "read", read)
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    for number in range(3):
        found.take(frame(number))
    assert found.heard() == frame(2)[: frames.PREFIX_SIZE]
    found.cut_off()
    for number in range(5, 8):
        found.take(frame(number))
    assert found.heard() is None
    return found


async def test_what_the_bus_kept_comes_before_what_came_since(held: Inbound, heard: list[int]) -> None:
    waited = [held.holds]
    await held.catch_up()
    waited.append(held.holds)
    assert waited == [True, False]
    assert heard == list(range(8))
    await held.catch_up()
    assert heard == list(range(8))


async def test_what_the_bus_keeps_before_all_its_servers_know_of_the_worker_is_read_too(
    held: Inbound, heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = iter([[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]])

    async def read(log: Log, sid: str) -> catch_up.Kept:
        return catch_up.Kept([frame(number) for number in next(kept)], [])

    monkeypatch.setattr(catch_up, "read", read)
    monkeypatch.setattr(inbound, "KNOWN_S", 10.0)
    await held.catch_up()
    assert heard == list(range(8))


async def test_frames_that_nobody_kept_are_not_waited_for_for_long(
    held: Inbound, heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(log: Log, sid: str) -> catch_up.Kept:
        return catch_up.Kept([frame(number) for number in range(3)], [])

    monkeypatch.setattr(catch_up, "read", read)
    monkeypatch.setattr(inbound, "KNOWN_S", 0.05)
    await held.catch_up()
    assert heard == [0, 1, 2, 5, 6, 7]


async def test_a_cut_while_what_was_missed_is_read_loses_nothing(held: Inbound, heard: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    kept, asked = list(range(6)), asyncio.Event()
    answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
    waiting = iter(answers)

    async def read(log: Log, sid: str) -> catch_up.Kept:
        numbers = list(kept)
        asked.set()
        await next(waiting)
        return catch_up.Kept([frame(number) for number in numbers], [])

    monkeypatch.setattr(catch_up, "read", read)
    first = asyncio.create_task(held.catch_up())
    await asked.wait()
    held.cut_off()
    asked.clear()
    kept += [6, 7, 8, 9]
    held.take(frame(10))
    second = asyncio.create_task(held.catch_up())
    await asked.wait()
    for answer in answers:
        answer.set_result(None)
    await asyncio.gather(first, second)
    assert heard == list(range(11))
    assert not held.holds


async def test_a_cut_during_a_takeover_loses_nothing(heard: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(log: Log, sid: str) -> catch_up.Kept:
        return catch_up.Kept([frame(number) for number in range(8)], [])

    monkeypatch.setattr(catch_up, "read", read)
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    found.take_over()
    found.take(frame(4))
    found.cut_off()
    found.take(frame(8))
    await found.catch_up()
    assert found.go_on([frame(number) for number in range(4)]) == []
    assert found.holds
    await found.catch_up()
    assert heard == [4, 5, 6, 7, 8], "those before were in what the takeover read"


async def test_a_bus_that_answers_nothing_is_waited_for_for_a_second(
    held: Inbound, heard: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(log: Log, sid: str) -> catch_up.Kept:
        kept: catch_up.Kept = await asyncio.get_running_loop().create_future()
        return kept

    monkeypatch.setattr(catch_up, "read", silent)
    monkeypatch.setattr(inbound, "CATCH_UP_S", 0.05)
    await held.catch_up()
    assert heard == [0, 1, 2, 5, 6, 7]
    assert "cannot be read: no answer" in caplog.text


async def test_a_bus_that_fails_loses_what_it_kept_and_nothing_more(
    held: Inbound, heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(log: Log, sid: str) -> catch_up.Kept:
        raise Unavailable("The event log does not answer.")

    monkeypatch.setattr(catch_up, "read", fails)
    await held.catch_up()
    assert heard == [0, 1, 2, 5, 6, 7]


async def test_what_comes_during_a_takeover_follows_what_the_bus_kept(heard: list[int]) -> None:
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    found.take_over()
    found.take(frame(4))
    await found.catch_up()
    assert found.heard() is None
    assert found.go_on([frame(number) for number in range(4)]) == [frame(4)]
    assert heard == []
    assert found.heard() == frame(4)[: frames.PREFIX_SIZE]


@pytest.mark.parametrize("top", [100, 2**32 - 20, 2**32 + 7])
def test_what_was_said_on_a_new_socket_is_heard_behind_the_event_that_attached_it(heard: list[int], top: int) -> None:
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    found.reach(top)
    found.take(frame(0))
    found.take(behind(top + 30, 1))
    found.take(frame(2))  # from the previous socket, without a position
    found.take(behind(top - 30, 3))
    found.take(behind(top + 30, 4))
    found.take(behind(top + 60, 5))
    assert heard == [0, 2, 3]
    assert found.holds
    assert found.heard() == behind(top + 60, 5)[: frames.PREFIX_SIZE], "it is not to be sent again"
    found.reach(top + 30)
    assert heard == [0, 2, 3, 1, 4]
    found.take(behind(top + 30, 6))
    found.reach(top + 61)
    assert heard == [0, 2, 3, 1, 4, 6, 5]
    assert not found.holds


def test_of_what_waits_for_its_event_the_newest_ten_seconds_stay(heard: list[int], caplog: pytest.LogCaptureFixture) -> None:
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    whole = inbound.HELD_S * 50
    for number in range(whole + 1):
        found.take(behind(9, number))
    assert "the oldest are lost" in caplog.text
    found.reach(9)
    assert heard == list(range(1, whole + 1))


def behind(position: int, number: int) -> bytes:
    """Return a frame sent on a socket that was attached by the event at this position."""
    return frames.restamp(frames.pack(frames.PCM16, 0, number, 0, bytes(640)), number, position)


def test_the_subject_of_the_microphone_is_one_that_the_bus_keeps() -> None:
    assert subjects.audio_in("s").startswith(subjects.MICROPHONE_SUBJECTS.split("*")[0])


@pytest.mark.parametrize(("size", "limit"), [(640, inbound.HELD_S * 50), (64, inbound.HELD_LIMIT)])
def test_of_what_is_held_the_newest_ten_seconds_stay(heard: list[int], size: int, limit: int) -> None:
    found = Inbound(None, new_session_id(), lambda payload: heard.append(frames.parse(payload).sequence))  # type: ignore[arg-type]
    found.take_over()
    every = [frames.pack(frames.PCM16, 0, number, number, bytes(size)) for number in range(limit + 3)]
    for one in every[:limit]:
        found.take(one)
    for one in every[limit:]:
        found.take(one)
    assert found.go_on([]) == every[3:]
    assert heard == []
    found.take(every[0])
    assert heard == [0]
