"""The measured calls on Gemini Live: numbered frames, the definitions of lost frames and gaps, the caller, and the remote-controlled
stand-in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from bench.areas.live_calls import PIPELINES, longest_gap_ms, write_agents
from bench.areas.realtime import google
from bench.clients.live_call import NUMBERS, LiveCall, number_of, numbered
from bench.clients.live_google import Google, lost_frames
from bench.stack import StackError
from tests.fakes.gemini.client import connect, rest, said, send, until
from tests.fakes.gemini.process import Connection, GoAway, Script, Watch
from tests.fakes.gemini.turns import Call, Turn
from voxbridge.shared.agents import reading
from voxbridge.shared.audio import frames

OUTGOING = b"\x29\x09" * 480
"""20 ms of audio with the value 2,345 in each sample."""


def mark(number: int) -> int:
    return int.from_bytes(numbered(number)[:8], "little")


def seen(*numbers: int) -> Connection:
    marks = [mark(number) for number in numbers]
    return Connection(
        number=1, open=True, voice="", resumed=False, marks=marks, ready=None, called=[], spoke=[], told=[], answers=[], history=[]
    )


@pytest.mark.parametrize("number", [0, 63, 64, 4_095, 4_096, NUMBERS - 1])
def test_a_numbered_frame_lasts_20_ms_and_says_its_number(number: int) -> None:
    frame = numbered(number)
    assert len(frame) == 640
    assert max(abs(sample) for sample in memoryview(frame).cast("h")) < 64
    assert number_of(mark(number)) == number


@pytest.mark.parametrize("number", [-1, NUMBERS])
def test_a_number_that_a_frame_cannot_carry_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"not {number}"):
        numbered(number)


@pytest.mark.parametrize("samples", [bytes(8), b"\x01\x00\x02\x00\x03\x00\x22\x00", b"\x40\x00\x00\x00\x00\x00\x21\x00"])
def test_another_frame_has_no_number(samples: bytes) -> None:
    assert number_of(int.from_bytes(samples, "little")) is None


def test_a_frame_is_lost_when_no_connection_was_sent_it_and_not_when_two_were() -> None:
    assert lost_frames(6, [seen(0, 1, 2), seen(2, 4)]) == {3, 5}


def test_the_longest_gap_begins_and_ends_within_the_range() -> None:
    assert longest_gap_ms([1.0, 1.02, 1.06, 1.08, 2.0], 1.0, 1.1) == pytest.approx(40)
    assert longest_gap_ms([1.02], 1.0, 1.5) == pytest.approx(480)


def test_the_agents_that_are_called_can_be_read_and_hand_over_to_another_voice(tmp_path: Path) -> None:
    write_agents(tmp_path / "agents")
    roster = reading.load(tmp_path / "agents")
    for name in PIPELINES:
        first, second = roster.team(name).agents
        assert second.name in first.handoffs
        assert first.voice != second.voice


@asynccontextmanager
async def gateway(heard: list[bytes], told: list[dict[str, Any]], *, refuses: bool = False) -> AsyncIterator[str]:
    """Run a gateway that takes a call, answers three frames with one reply, and ends the call."""

    async def take(socket: ServerConnection) -> None:
        async for message in socket:
            if isinstance(message, bytes):
                heard.append(message)
                if len(heard) <= 3:
                    flags = frames.LAST if len(heard) == 3 else 0
                    await socket.send(frames.pack(frames.PCM16, 7, len(heard) - 1, 0, OUTGOING, flags))
                continue
            told.append(json.loads(message))
            if told[-1]["type"] == "start" and refuses:
                await socket.send('{"type": "error", "message": "There is no such agent."}')
            elif told[-1]["type"] == "start":
                await socket.send('{"type": "provider", "status": "connected"}')
            elif told[-1]["type"] == "end":
                await socket.send('{"type": "session_ended"}')

    async with serve(take, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/ws/vox"


async def test_a_caller_numbers_its_frames_notes_what_it_hears_and_reports_what_it_plays() -> None:
    heard: list[bytes] = []
    told: list[dict[str, Any]] = []
    async with gateway(heard, told) as url, LiveCall.begun(url, "front") as call:
        call.speak()
        call.type("Hello?")
        await call.until_heard(lambda one: one.sample == 2_345, count=3)
    assert [number_of(int.from_bytes(frame[16:24], "little")) for frame in heard] == list(range(len(heard)))
    assert [one.generation for one in call.heard] == [7, 7, 7]
    assert [one.at for one in call.heard] == sorted(one.at for one in call.heard)
    assert told[0] == {"type": "start", "mode": "gemini", "agent": "front"}
    assert {"type": "text", "text": "Hello?"} in told
    reports = [(one["generation"], one["played_ms"], one["state"]) for one in told if one["type"] == "playback"]
    assert reports == [(7, 20, "playing"), (7, 60, "finished")]


async def test_a_call_that_is_refused_says_why() -> None:
    with pytest.raises(ConnectionError, match="There is no such agent"):
        async with gateway([], [], refuses=True) as url, LiveCall.begun(url, "nobody"):
            raise AssertionError("it was taken")


@asynccontextmanager
async def commanded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    async with google() as found:
        for name, value in found.items():
            monkeypatch.setenv(name, value)
        async with Google.of(Path(found["SSL_CERT_FILE"]).parent) as there:
            yield there


async def test_the_stand_in_says_what_it_is_told_to_and_reports_when(monkeypatch: pytest.MonkeyPatch) -> None:
    async with commanded(monkeypatch) as there:
        await there.tell(Watch(echo=False))
        await there.tell(Script([Turn(says="Good morning."), Turn(calls=[Call("book", {"seats": 2})], unresumable=True, blocking=False)]))
        async with connect(session_resumption={}) as session:
            await send(session, b"".join(map(numbered, range(3))))
            await session.send_realtime_input(text="Hello?")
            assert said(await rest(session)) == "Good morning."
            await session.send_realtime_input(text="A table.")
            called = (await until(session, lambda message: message.tool_call)).tool_call
            await rest(session)
            (one,) = await there.seen()
        assert called is not None
        assert [call.name for call in called.function_calls or ()] == ["book"]
        assert [number_of(found) for found in one.marks] == [0, 1, 2]
        assert one.told == ["Hello?", "A table."]
        assert [line.text for line in one.history] == ["Hello?", "Good morning.", "A table."]
        assert one.ready is not None
        times = [one.ready.at, *(spoke.at for spoke in one.spoke), one.called[0].at]
        assert times == sorted(times)
        assert await there.tell(Script([])) == one.number
        assert await there.seen(one.number) == []


async def test_the_stand_in_echoes_says_that_it_will_go_and_has_given_a_handle_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with commanded(monkeypatch) as there:
        await there.tell(Watch(echo=True))
        async with connect(session_resumption={}) as session:
            update = (await until(session, lambda message: message.session_resumption_update)).session_resumption_update
            await send(session, numbered(5))
            back = await until(session, lambda message: message.data)
            assert back.data == numbered(5)
            await there.tell(GoAway("3s"))
            leaving = (await until(session, lambda message: message.go_away)).go_away
            (one,) = await there.seen()
        assert update is not None
        assert update.new_handle
        assert leaving is not None
        assert leaving.time_left == "3s"
        assert [number_of(found) for found in one.marks] == [5]
        assert len(one.spoke) == 1


async def test_before_it_is_to_watch_the_stand_in_notes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with commanded(monkeypatch) as there:
        async with connect() as session:
            await send(session, numbered(1))
            await until(session, lambda message: message.data)
        assert await there.seen() == []


async def test_a_command_that_cannot_be_read_is_refused_and_the_next_one_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with commanded(monkeypatch) as there:
        with pytest.raises(StackError, match=r"does not follow: .*array"):
            await there.tell(Script("Hello"))  # type: ignore[arg-type]
        assert await there.tell(Watch(echo=False)) == 0
