"""Resuming end to end: real gateways, a real bus and log, and writers of the session's events."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Client, Running, Serve, alike
from tests.gateway.processes import Processes
from tests.gateway.stand_in import Session, StandIn
from voxbridge.services.gateway.core import outbound, resume_rules
from voxbridge.services.gateway.vox import shell
from voxbridge.shared import events
from voxbridge.shared.audio.frames import PCM16, pack, parse
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.bus.connection import AUDIO_PENDING, EVENTS_PENDING, connect_nats
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

v, t = events.voice, events.tools
REFUSAL = {
    "type": "error",
    "code": "NOT_FOUND",
    "message": "There is no session to resume with this id and token.",
    "retryable": False,
}


@pytest.fixture
async def other(serve: Serve, running: Running, nats_url: str, redis_url: str) -> Running:
    """A second gateway over the same servers."""
    assert running
    return await serve(nats_url, redis_url)


@pytest.fixture
async def processes(tmp_path: Path, nats_url: str, redis_url: str) -> AsyncIterator[Processes]:
    """Gateways as separate processes."""
    async with Processes(tmp_path, nats_url, redis_url) as started:
        yield started


async def begun(client: Client, voice: StandIn) -> tuple[Session, dict[str, Any]]:
    """Start a session. Return the worker's side of it, and `setup_complete`."""
    ready = await client.started("local")
    return await voice.session(), ready


def said(turn: int) -> events.Event:
    return v.UserSaid(text=f"number {turn}", turn=turn, source="text")


async def visible(log: Log, sid: str, token: str, after: int = 0) -> list[dict[str, Any]]:
    """Return the messages that a client should receive according to the log."""
    reader = outbound.Reader(sid, True, token)
    told = [outbound.of_event(one, reader) async for one in log.read_all(sid, visibility="c", after=after)]
    return [message for message in told if message is not None]


async def facts(client: Client, count: int) -> list[dict[str, Any]]:
    """Return the next `count` messages with an event."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        message = await client.next()
        if isinstance(message, dict) and "seq" in message:
            found.append(message)
    return found


async def test_another_gateway_tells_exactly_what_was_missed_and_goes_on(running: Running, other: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
        client.socket.transport.abort()
    missed = [await session.says(said(turn)) for turn in range(1, 4)]
    async with other.client() as client:
        answer = await client.resume(ready, ready["seq"])
        assert answer == {
            "type": "resumed", "sessionId": session.sid, "mode": "local", "recovered": True,
            "from": ready["seq"], "to": missed[-1], "state": "thinking",
            "agent": "", "agents": [], "pipeline": "", "voice": "none", "model": "none",
        }  # fmt: skip
        assert await facts(client, 3) == await visible(voice.log, session.sid, ready["resumeToken"], after=ready["seq"])
        live = await session.says(v.AgentSaid(text="hello", turn=3, generation=1))
        assert (await client.next())["seq"] == live
        await client.say({"type": "text", "text": "still here"})
        frame = pack(PCM16, 0, 77, 0, b"\x01\x02" * 320)
        await client.socket.send(frame)
        heard = await asyncio.wait_for(session.microphone.get(), BOUND_S)
        (_, attached) = [one.seq async for one in voice.log.read_all(session.sid, writer="gateway", types=("client.connected",))]
        assert parse(heard)[:5] == (*parse(frame)[:3], attached, 77)  # the sequence is the client's own
        reply = pack(PCM16, 4, 0, wall_ms32(), b"\x05\x06" * 480)
        await session.plays(reply)
        assert await client.next() == reply
        await session.moment(moments.StateChanged(state="speaking"))
        assert await client.next() == {"type": "state", "state": "speaking"}
    connected = [one.event async for one in voice.log.read_all(session.sid, writer="gateway", types=("client.connected",))]
    assert [(one.gateway, one.resumed, one.last_seq) for one in connected if isinstance(one, events.gateway.ClientConnected)] == [
        (running.gateway.resources.process_id, False, 0),
        (other.gateway.resources.process_id, True, ready["seq"]),
    ]


async def test_a_position_of_zero_tells_the_session_from_its_start(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    await session.says(said(1))
    async with running.client() as client:
        assert (await client.resume(ready, 0))["recovered"] is True
        first, second = await facts(client, 2)
        assert first == ready
        assert second["text"] == "number 1"


async def test_a_thousand_and_one_missed_events_arrive_each_once_in_order(running: Running, other: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    writer = SessionWriter(voice.log, session.sid, "voice", stem="many", fenced=False)
    for turn in range(1, 1_001):
        writer.submit(said(turn), ts=turn, cause=None)
    last = await writer.append(v.TurnCompleted(number=1_000, reason="completed"), ts=0, cause=None)
    async with other.client() as client:
        answer = await client.resume(ready, ready["seq"])
        assert (answer["recovered"], answer["to"]) == (True, last)
        told = await facts(client, 1_001)
        assert told == await visible(voice.log, session.sid, ready["resumeToken"], after=ready["seq"])


async def test_a_call_of_the_page_that_was_open_is_answered_on_the_new_socket_and_an_answered_one_is_not(
    running: Running, other: Running, voice: StandIn
) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
        for call_id in ("c1", "c2"):
            await session.says(v.ToolCalled(call_id=call_id, name="open_page", arguments={}, kind="browser", turn=1, deadline_ms=1))
            last = await client.until("function_call")
        await client.say({"type": "browser_function_result", "name": "open_page", "result": {"n": 1}, "fn_call_id": "c1"})
        await client.say({"type": "no such type"})
        await client.until("error")
    async with other.client() as client:
        assert (await client.resume(ready, last["seq"]))["state"] == "calling_tool"
        await client.say({"type": "browser_function_result", "name": "open_page", "result": {}, "fn_call_id": "c1"})
        assert (await client.until("error"))["code"] == "NOT_FOUND"
        await client.say({"type": "browser_function_result", "name": "open_page", "result": {"n": 2}})
        await client.say({"type": "no such type"})
        assert (await client.until("error"))["code"] == "INVALID_MESSAGE"
    async with asyncio.timeout(BOUND_S):
        answers: list[Any] = []
        while len(answers) < 2:
            answers = [one.event async for one in voice.log.read_all(session.sid, writer="gateway", types=("browser_call.answered",))]
    assert [(one.call_id, one.result) for one in answers] == [("c1", {"n": 1}), ("c2", {"n": 2})]


async def test_beyond_the_retention_there_is_a_snapshot_and_no_part(running: Running, other: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    seqs = [await session.says(said(turn)) for turn in range(1, 6)]
    await voice.log.js.purge_stream(subjects.EVENT_STREAM, seq=seqs[2])
    async with other.client() as client:
        answer = await client.resume(ready, seqs[0])
        assert (answer["recovered"], answer["to"], "from" in answer) == (False, seqs[-1], False)
        assert [entry["seq"] for entry in answer["snapshot"]["transcript"]] == seqs[2:]
        assert answer["snapshot"]["truncated"] is True
        live = await session.says(said(6))
        assert (await client.next())["seq"] == live
    async with running.client() as client:  # a client whose position is still stored gets all later events
        answer = await client.resume(ready, seqs[2])
        assert answer["recovered"] is True
        assert [message["seq"] for message in await facts(client, 3)] == [*seqs[3:], live]


async def test_a_position_above_the_top_gets_a_snapshot(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    top = await session.says(said(1))
    async with running.client() as client:
        answer = await client.resume(ready, top + 1)
        assert (answer["recovered"], answer["to"]) == (False, top)
        assert answer["snapshot"] == {
            "transcript": [{**answer["snapshot"]["transcript"][0], "seq": top, "role": "user", "turn": 1, "text": "number 1"}],
            "turns": 0,
        }
        live = await session.says(said(2))
        assert (await client.next())["seq"] == live


async def test_a_wrong_token_an_unknown_session_and_an_ended_one_are_refused_alike_and_take_as_long(
    running: Running, voice: StandIn
) -> None:
    async with running.client() as client, running.client() as gone, running.client(v1=False) as plain:
        _, ready = await begun(client, voice)
        ended_session, ended = await begun(gone, voice)
        await ended_session.says(v.SessionEnded(reason="idle"))
        assert await gone.close_code() == 1000
        _, of_plain = await begun(plain, voice)
        cases = {
            "wrong": {**ready, "resumeToken": ended["resumeToken"]},
            "unknown": {**ready, "sessionId": new_session_id()},
            "ended": ended,
            "plain": {**of_plain, "resumeToken": "x"},
        }
        took: dict[str, list[float]] = {name: [] for name in cases}
        while not alike(took):
            for name, case in cases.items():
                async with running.client() as refused:
                    began = asyncio.get_running_loop().time()
                    assert await refused.resume(case, 0, answer="error") == REFUSAL
                    took[name].append(asyncio.get_running_loop().time() - began)
                    assert await refused.close_code() == 4004
        assert min(min(times) for times in took.values()) >= shell.REFUSAL_S * 0.99
    metrics = (await running.get("/metrics")).text
    assert f'voxbridge_gateway_resumes_total{{answer="refused"}} {sum(map(len, took.values()))}.0' in metrics


async def test_a_second_client_takes_the_session_over_and_the_first_is_told_and_closed_with_4010(
    running: Running, other: Running, voice: StandIn
) -> None:
    async with running.client() as first, other.client() as second, running.client() as third:
        session, ready = await begun(first, voice)
        await second.resume(ready, ready["seq"])
        assert (await first.until("error"))["code"] == "CONFLICT"
        assert await first.close_code() == 4010
        await third.resume(ready, ready["seq"])
        assert (await second.until("error"))["code"] == "CONFLICT"
        assert await second.close_code() == 4010
        seq = await session.says(said(1))
        assert (await third.next())["seq"] == seq
    gone = [one async for one in voice.log.read_all(session.sid, writer="gateway", types=("client.disconnected",))]
    assert len(gone) <= 1  # only the third's; a socket that was taken over writes no disconnection


async def test_two_clients_that_resume_at_once_leave_one(running: Running, other: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    for _ in range(5):
        async with running.client() as one, other.client() as two:
            await asyncio.gather(one.resume(ready, ready["seq"]), two.resume(ready, ready["seq"]))
            closing = [asyncio.create_task(each.close_code()) for each in (one, two)]
            done, left = await asyncio.wait(closing, timeout=BOUND_S, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result() for task in done] == [4010]
            (winner,) = left
            assert not winner.done()
            winner.cancel()
            await asyncio.wait({winner})
    assert await session.says(said(1))


async def test_a_cut_of_the_bus_hides_no_takeover(serve: Serve, own_nats: Callable[[], NatsServer], redis_url: str) -> None:
    server = own_nats()
    one = await serve(server.url, redis_url)
    nc = await connect_nats(server.url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, one.gateway.store) as voice, one.client() as client:
        session, _ = await begun(client, voice)
        server.kill()
        writer = SessionWriter(voice.log, session.sid, "gateway", stem="elsewhere", fenced=False)
        attach = asyncio.create_task(
            writer.append(events.gateway.ClientConnected(gateway="elsewhere", connection="e", resumed=True), ts=0, cause=None)
        )
        server.start()
        await asyncio.wait_for(attach, BOUND_S)
        assert await client.close_code() == 4010
    await nc.close()


async def test_a_resume_while_the_log_is_away_is_unavailable_and_closes_with_1013(
    serve: Serve, own_nats: Callable[[], NatsServer], redis_url: str
) -> None:
    server = own_nats()
    running = await serve(server.url, redis_url)
    nc = await connect_nats(server.url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, running.gateway.store) as voice:
        async with running.client() as client:
            session, ready = await begun(client, voice)
        server.kill()
        async with running.client() as client:
            error = await client.resume(ready, ready["seq"], answer="error")
            assert (error["code"], error["retryable"]) == ("UNAVAILABLE", True)
            assert await client.close_code() == 1013
        server.start()
        seq = await asyncio.wait_for(session.says(said(1)), BOUND_S)
        async with running.client() as client:
            assert (await client.resume(ready, ready["seq"]))["to"] == seq
    await nc.close()


async def test_a_resume_needs_no_valkey(serve: Serve, nats_url: str, own_valkey: Callable[[], ValkeyServer]) -> None:
    server = own_valkey()
    running = await serve(nats_url, server.url)
    nc = await connect_nats(nats_url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, running.gateway.store) as voice:
        async with running.client() as client:
            session, ready = await begun(client, voice)
        server.kill()
        seq = await session.says(said(1))
        async with running.client() as client:
            assert (await client.resume(ready, ready["seq"]))["state"] == "thinking"
            assert (await client.next())["seq"] == seq
    await nc.close()


async def test_a_session_without_a_worker_is_resumed_as_restoring_and_told_when_it_is_restored(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    await running.gateway.store.release_lease(session.sid, "voice-stand-in")
    async with running.client() as client:
        assert (await client.resume(ready, ready["seq"]))["state"] == "restoring"
        seq = await session.says(v.SessionRestored(worker="w", term=2, how="reseeded", gap_ms=900))
        assert await client.next() == {"type": "restored", "how": "reseeded", "cause": "worker", "gap_ms": 900, "lost": [], "seq": seq}


async def test_a_client_that_reads_slowly_while_it_is_told_is_closed_with_4008_and_resumes_again(
    running: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "READ_PATIENCE_S", 0.5)
    async with running.client() as client:
        session, ready = await begun(client, voice)
    writer = SessionWriter(voice.log, session.sid, "voice", stem="many", fenced=False)
    for turn in range(1, 1_000):
        writer.submit(v.UserSaid(text="x" * 8_000, turn=turn, source="text"), ts=turn, cause=None)
    last = await writer.append(said(1_000), ts=0, cause=None)
    small = socket.socket(socket.AF_INET)
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", running.port))
    told: list[int] = []
    async with running.client(sock=small, max_queue=1, ping_interval=None) as slow:
        await slow.resume(ready, ready["seq"])
        told.append((await slow.next())["seq"])
        await eventually(lambda: running.gateway.metrics.closes[4008] == 1)
        with suppress(ConnectionClosed):
            while True:
                told.append((await slow.next())["seq"])
        assert slow.socket.close_code == 4008
    assert len(told) < 1_000
    async with running.client() as client:
        assert (await client.resume(ready, told[-1]))["recovered"] is True
        while told[-1] != last:
            told.append((await client.next())["seq"])
    assert told == [message["seq"] for message in await visible(voice.log, session.sid, "", after=ready["seq"])]


async def test_over_many_cuts_and_several_writers_every_event_is_told_once_in_order_from_one_gateway_and_the_other(
    processes: Processes, nats_url: str
) -> None:
    dice = random.Random(20_261_121)
    doors = [await processes.gateway(), await processes.gateway()]
    nc = await connect_nats(nats_url, "voice-test", pending=AUDIO_PENDING)
    async with StandIn(nc, processes.store) as voice:
        async with doors[0].client() as client:
            session, ready = await begun(client, voice)
        writing = [
            asyncio.create_task(_write(voice.log, session.sid, writer, number, random.Random(dice.random())))
            for number, writer in enumerate(("voice", "voice", "tools"))
        ]
        told = [ready]
        for cut in range(60):
            async with doors[cut % 2].client() as client:
                # Some cuts come before the answer, most during the missed or the new events.
                delay_s = dice.random() * dice.choice((0.004, 0.1, 0.1, 0.1))
                cutting = asyncio.get_running_loop().call_later(delay_s, client.socket.transport.abort)
                with suppress(ConnectionClosed):
                    answer = await client.resume(ready, told[-1]["seq"])
                    assert (answer["recovered"], answer["from"]) == (True, told[-1]["seq"])
                    while True:
                        message = await client.next()
                        if "seq" in message:
                            told.append(message)
                cutting.cancel()
        for task in writing:
            task.cancel()
        written = sum(await asyncio.gather(*writing))
        whole = await visible(voice.log, session.sid, ready["resumeToken"])
        assert len(whole) == written + 1
        assert len(whole) > 300
        async with doors[0].client() as client:
            await client.resume(ready, told[-1]["seq"])
            told += await facts(client, len(whole) - len(told))
        assert told == whole
    await nc.close()


async def _write(log: Log, sid: str, writer: str, number: int, dice: random.Random) -> int:
    """Append visible events until cancelled. Return their number."""
    appender = SessionWriter(log, sid, writer, stem=str(number), fenced=False)
    count = 0
    with suppress(asyncio.CancelledError):
        while True:
            for _ in range(dice.randint(1, 12)):
                count += 1
                text = "x" * dice.choice((5, 200, 3_000))
                event: events.Event = said(count) if writer == "voice" else t.TaskStarted(task_id=text, function="f", call_id="c")
                appender.submit(event, ts=count, cause=None)
            await asyncio.sleep(dice.random() * 0.06)
    await appender.flushed()
    return count


async def test_a_gateway_that_is_killed_loses_nothing_and_its_clients_resume_at_another_and_at_the_restarted_one(
    processes: Processes, nats_url: str
) -> None:
    nc = await connect_nats(nats_url, "voice-test", pending=AUDIO_PENDING)
    first = await processes.gateway()
    async with StandIn(nc, processes.store) as voice, AsyncExitStack() as stack:
        client = await stack.enter_async_context(first.client())
        session, ready = await begun(client, voice)
        assert await processes.store.gateway_alive(first.name)
        first.kill()
        assert await client.close_code() == 1006
        seqs = [await session.says(said(1))]
        second = await processes.gateway()
        client = await stack.enter_async_context(second.client())
        assert (await client.resume(ready, ready["seq"]))["recovered"] is True
        assert (await client.next())["seq"] == seqs[0]
        second.kill()
        assert await client.close_code() == 1006
        seqs.append(await session.says(said(2)))
        again = await processes.gateway(port=first.port)
        client = await stack.enter_async_context(again.client())
        assert (await client.resume(ready, seqs[0]))["recovered"] is True
        assert (await client.next())["seq"] == seqs[1]

        async def only_the_last_lives() -> bool:
            return await processes.store.gateways_alive([first.name, second.name, again.name]) == [False, False, True]

        await eventually(only_the_last_lives)  # there is no event for the end of the first two sockets: this shows it
    gone = [one async for one in voice.log.read_all(session.sid, writer="gateway", types=("client.disconnected",))]
    assert len(gone) <= 1
    await nc.close()


async def test_a_gateway_says_that_it_lives_until_it_has_ended(serve: Serve, running: Running) -> None:
    store, name = running.gateway.store, running.gateway.resources.process_id
    await eventually(lambda: store.gateway_alive(name))
    await running.gateway.drain()

    async def gone() -> bool:
        return not await store.gateway_alive(name)

    await eventually(gone)


async def test_the_token_stands_in_no_event_and_its_hash_in_the_request(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    async with running.client() as client:
        await client.resume(ready, ready["seq"])
    async for one in voice.log.read_all(session.sid):
        assert ready["resumeToken"] not in str(one)
        if isinstance(one.event, events.gateway.SessionRequested):
            assert len(one.event.resume_hash) == 64


async def test_the_same_snapshot_is_made_however_long_the_session_was(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        session, ready = await begun(client, voice)
    writer = SessionWriter(voice.log, session.sid, "voice", stem="many", fenced=False)
    for turn in range(1, resume_rules.SNAPSHOT_ENTRIES + 501):
        writer.submit(said(turn), ts=turn, cause=None)
    await writer.flushed()
    async with running.client() as client:
        answer = await client.resume(ready, 2**53 - 1)
        assert len(answer["snapshot"]["transcript"]) == resume_rules.SNAPSHOT_ENTRIES
        assert answer["snapshot"]["transcript"][-1]["seq"] == answer["to"]
        assert answer["snapshot"]["truncated"] is True
