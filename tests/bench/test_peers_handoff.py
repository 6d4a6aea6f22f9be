"""The handoffs of the comparison: the stand-in's two agents, as the vendor's SDK sees them, and the caller that times them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from google.genai import types
from websockets.asyncio.server import ServerConnection, serve

from bench.clients.websocket import connect as open_socket
from bench.peers import handoff
from bench.peers.adapters.wire import FIRST, PREFIX_SIZE, RESUMABLE_MODEL, SECOND, BareSocket, framed
from bench.peers.echo import Finder, Sent, payload
from bench.peers.handoff_google import KNOWS, UNRESUMABLE, Script, arguments
from bench.peers.systems import cores, on_cores
from tests.eventually import BOUND_S
from tests.fakes.gemini.client import connect, kinds, rest, sound, until
from tests.fakes.gemini.server import GeminiServer, Options

TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="hand_over",
            parameters_json_schema={
                "type": "object",
                "properties": {"target": {"type": "string", "enum": ["second"]}, "reason": {"type": "string"}, "more": {"type": "string"}},
                "required": ["target", "reason"],
            },
        )
    ]
)


@pytest.mark.parametrize("resumes", [True, False])
async def test_the_stand_in_hands_over_and_its_second_agent_says_when_it_was_asked_and_what_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    async with GeminiServer(tmp_path, Options()) as google:
        google.reply = Script().reply
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", google.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(google.ca_file))
        began = time.perf_counter_ns()
        found: list[Sent] = []
        for _ in range(2):
            async with connect(model=RESUMABLE_MODEL, system_instruction=FIRST, tools=[TOOL], session_resumption={}) as first:
                await first.send_realtime_input(text="hello")
                assert sound(await rest(first))
                handle = google.sessions[-1].handles[-1] if resumes else None
                await first.send_realtime_input(text="on, please")
                call = await until(first, lambda message: message.tool_call)
                assert call.tool_call is not None
                assert [(one.name, one.args) for one in call.tool_call.function_calls or ()] == [
                    ("hand_over", {"target": "second", "reason": "advice"})
                ]
            async with connect(model=RESUMABLE_MODEL, system_instruction=SECOND, session_resumption={"handle": handle}) as second:
                await second.send_realtime_input(text="you are on")
                found += Finder().take(sound(await rest(second)))
    knows = KNOWS if resumes else 0
    assert [sent.number for sent in found] == [knows] * 3 + [knows | UNRESUMABLE] * 3
    assert all(began < sent.sent_ns < time.perf_counter_ns() for sent in found)
    assert all(0 < sent.session * 1_000 < time.perf_counter_ns() - sent.sent_ns for sent in found)


async def test_every_other_tool_call_comes_with_the_news_that_the_session_cannot_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with GeminiServer(tmp_path, Options()) as google:
        google.reply = Script().reply
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", google.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(google.ca_file))
        said = []
        resumable = types.LiveServerSessionResumptionUpdate(resumable=True)
        for _ in range(2):
            async with connect(model=RESUMABLE_MODEL, system_instruction=FIRST, tools=[TOOL], session_resumption={}) as first:
                await first.send_realtime_input(text="hello")
                await rest(first)
                await first.send_realtime_input(text="on, please")
                messages = []
                async for message in first.receive():
                    messages.append(message)
                    if message.tool_call:
                        break
                # The handle of the turn before comes first and is not tested here.
                news = [one for one in messages if one.tool_call or not (one.session_resumption_update or resumable).resumable]
                said.append(kinds(news))
    assert said == [["tool_call"], ["session_resumption_update", "tool_call"]]


def test_a_function_without_a_schema_is_called_with_nothing() -> None:
    assert arguments({"name": "hand_over"}) == {}


async def test_the_caller_speaks_twice_and_times_the_second_agent_from_the_call() -> None:
    async def answer(socket: ServerConnection) -> None:
        spoke, quiet = 0, True
        async for message in socket:
            assert isinstance(message, bytes)
            loud = any(message[PREFIX_SIZE:])
            if quiet and loud:
                spoke += 1
                called = time.perf_counter_ns() - 5_000_000
                await socket.send(framed(b"\1\2" * 480 if spoke == 1 else payload(Sent(1_250, KNOWS, called))))
            quiet = not loud

    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        found = await handoff.handoffs(handoff.Task(url=url, bare=True, calls=1))
    assert (found.plain, found.plain_kept, found.unresumable, found.failed) == (1, 1, 0, [])
    assert found.ms[0] >= 5
    assert found.stand_in_ms == [1.25]


async def test_handoffs_that_do_not_come_about_are_given_up_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handoff, "PATIENCE_S", 0.2)

    async def answer(socket: ServerConnection) -> None:
        async for _ in socket:
            pass

    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        found = await handoff.handoffs(handoff.Task(url=url, bare=True, calls=10))
    assert found.ms == []
    assert found.failed == ["no handoff within 0.2 s"] * 2


@pytest.mark.parametrize("calls", [0, handoff.CALLS_LIMIT + 1])
async def test_a_number_of_calls_out_of_bounds_is_refused(calls: int) -> None:
    with pytest.raises(ValueError, match="1 to 100 calls"):
        await handoff.main(handoff.Task(url="ws://127.0.0.1:1/", bare=True, calls=calls))


async def test_a_framework_is_given_plain_audio_and_only_its_audio_goes_out() -> None:
    heard: list[bytes] = []
    over = asyncio.Event()

    async def answer(socket: ServerConnection) -> None:
        bare = BareSocket(socket)
        await bare.send("its own words")
        async for pcm in bare:
            heard.append(pcm)
            await bare.send(pcm)
        over.set()

    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        back: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        socket = await open_socket(f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/")
        socket.on_binary = back.set_result
        socket.send_binary(bytes(PREFIX_SIZE) + b"audio!")
        async with asyncio.timeout(BOUND_S):
            assert (await back)[PREFIX_SIZE:] == b"audio!"
            socket.close()
            await over.wait()
    assert heard == [b"audio!"]


def test_what_is_started_on_a_core_stays_there_and_this_process_does_not() -> None:
    own, others = cores()
    before = os.sched_getaffinity(0)
    asked = [sys.executable, "-c", "import os; print(*sorted(os.sched_getaffinity(0)))"]
    for chosen in (own, others):
        with on_cores(chosen):
            said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert set(map(int, said.split())) == (chosen or before)
    assert os.sched_getaffinity(0) == before
