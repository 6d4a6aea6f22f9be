"""Plain VOX clients that resume their session after `go_away`: the rules, and then real gateways, a real bus and log."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Client, Running, Serve, alike
from tests.gateway.core.driver import SID, START, Driven, appended, called, error_of, fresh, live, recorded, requested, say
from tests.gateway.stand_in import Session, StandIn
from voxbridge.services.gateway.core import messages, session_token
from voxbridge.services.gateway.core.closing import WRONG_LIMIT
from voxbridge.services.gateway.core.inputs import Opened, ResumeRefused, Stopping
from voxbridge.services.gateway.core.outputs import Append, Attach, Close, Open, PublishMic, Resume, Send
from voxbridge.services.gateway.core.resume_rules import Known
from voxbridge.services.gateway.core.session import START_TIMEOUT_MS
from voxbridge.services.gateway.core.session_token import SessionToken
from voxbridge.services.gateway.core.state import Live, Opening
from voxbridge.services.gateway.door import tokens
from voxbridge.services.gateway.vox import shell
from voxbridge.shared import events
from voxbridge.shared.audio.frames import PCM16, pack
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.bus.connection import EVENTS_PENDING, connect_nats
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.ids import new_session_id

v, g = events.voice, events.gateway
SECRET = "t" * 43
OTHER = "a" * 32
TOKEN = f"{OTHER}.{SECRET}.20"
AGAIN = {**START, "session_token": TOKEN}
STARTED = v.SessionStarted(mode="local", model="m", voice="v", output="audio")


def said(text: str) -> events.Event:
    return v.UserSaid(text=text, turn=1, source="text")


def known(*, started: bool = True) -> Known:
    return Known(mode="echo", top=30, begins=0, started=started, turns=2, state="listening" if started else "connecting")


def asked(**fields: Any) -> Driven:
    connection = fresh(v1=False)
    assert say(connection, {**AGAIN, **fields}) == [Resume(OTHER, SECRET, 20, fields.get("record") is False)]
    return connection


def test_a_token_says_what_was_written_into_it_and_nothing_else_is_one() -> None:
    for token in (
        SessionToken(SID, tokens.new_token(), 0),
        SessionToken(SID, tokens.new_token(), messages.POSITION_LIMIT),
    ):
        assert session_token.read(str(token)) == token
        assert len(str(token)) <= 93
    sid = SID.replace("0", "G")
    parts = (f"{SID}.{SECRET}x.1", f"{SID}.{SECRET[1:]}.1", f"{sid}.{SECRET}.1", f"{SID}.{SECRET}")
    positions = (f"{SID}.{SECRET}.{last_seq}" for last_seq in ("", "-1", "01", "1\n", "\u0661", 10**16))
    for other in ("", SID, *parts, *positions):
        assert session_token.read(other) is None, other


def test_go_away_has_the_token_and_the_position_up_to_which_this_client_was_told() -> None:
    connection = live(v1=False)
    connection.read(recorded(said("hello"), 17))
    away = connection.take(Stopping())[0]
    assert isinstance(away, Send)
    assert away.message["session_token"] == f"{SID}.token.17"


@pytest.mark.parametrize(("phase", "token"), [("fresh", ""), ("opening", ""), ("requested", f"{SID}.token.0"), ("resuming", TOKEN)])
def test_before_a_session_was_set_up_go_away_has_what_is_true_by_then(phase: str, token: str) -> None:
    connection = requested(v1=False) if phase == "requested" else asked() if phase == "resuming" else fresh(v1=False)
    if phase == "opening":
        say(connection, START)
    away = connection.take(Stopping())[0]
    assert isinstance(away, Send)
    assert away.message["session_token"] == token


def test_with_voxbridge_v1_neither_go_away_nor_start_goes_on_with_anything() -> None:
    away = live().take(Stopping())[0]
    assert isinstance(away, Send)
    assert away.message["session_token"] == SID
    assert isinstance(say(fresh(), AGAIN)[0], Open)


def test_a_session_that_goes_on_is_set_up_at_once_and_once() -> None:
    connection = asked()
    outputs = connection.resumed(known(), None, 0)
    assert outputs == (
        Send({"type": "setup_complete", "sessionId": OTHER, "mode": "echo", "resumed": True}),
        Attach(g.ClientConnected(gateway="g", connection="g-1", resumed=True, last_seq=20)),
    )
    assert (connection.phase, connection.last_seq) == (Live(), 20)
    assert connection.read(recorded(STARTED, 21)) == ()  # `go_away` was sent before the session was set up
    assert connection.read(recorded(said("a"), 20)) == ()
    assert connection.read(recorded(said("b"), 22)) == (Send({"type": "transcript", "role": "user", "text": "b", "seq": 22}),)
    assert connection.hear(moments.StateChanged(state="thinking")) == ()
    assert [type(one) for one in say(connection, {"type": "audio", "data": "AQI="})] == [PublishMic]


def test_one_that_had_not_been_set_up_is_when_it_is() -> None:
    connection = asked()
    assert [type(one) for one in connection.resumed(known(started=False), None, 0)] == [Attach]
    (told,) = connection.read(recorded(STARTED, 40))
    assert told == Send({"type": "setup_complete", "sessionId": OTHER, "mode": "local", "resumed": True, "seq": 40})
    assert isinstance(connection.phase, Live)


def test_what_the_log_no_longer_has_is_left_out() -> None:
    connection = asked()
    connection.resumed(known(), {}, 0)
    assert connection.last_seq == 30


def test_without_a_session_to_go_on_with_there_is_a_new_one_as_start_asks_for_it() -> None:
    connection = asked(voice="joe")
    assert say(connection, {"type": "text", "text": "hello"}) == []
    assert say(connection, {"type": "browser_function_result", "name": "open_page", "result": {}}) == []
    told, opening = connection.take(ResumeRefused(START_TIMEOUT_MS))
    assert error_of([told])["code"] == "NOT_FOUND", "no call is open in a new session"
    assert isinstance(opening, Open)
    assert (opening.event.mode, opening.event.voice, opening.event.resume_hash) == ("local", "joe", "hash")
    assert isinstance(connection.phase, Opening)
    assert connection.tick(2 * START_TIMEOUT_MS - 1, owned=None) == ()
    assert [type(one) for one in connection.take(Opened())] == [Attach, Append]
    (complete,) = connection.read(recorded(STARTED, 5))
    assert complete == Send({"type": "setup_complete", "sessionId": SID, "mode": "local", "resumed": False, "seq": 5})
    connection.read(called(seq=6))
    assert appended(say(connection, {"type": "browser_function_result", "name": "open_page", "result": {}}))
    away = connection.take(Stopping())[0]
    assert isinstance(away, Send)
    assert away.message["session_token"] == f"{SID}.token.6"


def test_who_is_closed_for_wrong_messages_meanwhile_gets_no_session() -> None:
    connection = asked()
    for _ in range(WRONG_LIMIT - 1):
        say(connection, {"type": "no such type"})
    say(connection, {"type": "browser_function_result", "name": "open_page", "result": {}})
    outputs = connection.take(ResumeRefused(0))
    assert isinstance(outputs[-1], Close)
    assert not any(isinstance(one, Open) for one in outputs)


@pytest.mark.parametrize("record", [None, True, False])
def test_who_wants_no_audio_kept_looks_for_no_session_whose_audio_is(record: bool | None) -> None:
    asked(record=record)


@pytest.mark.parametrize("length", [1, 93, messages.TOKEN_LIMIT])
def test_what_is_no_token_begins_anew_without_a_question(length: int) -> None:
    assert isinstance(say(fresh(v1=False), {**START, "session_token": "x" * length})[0], Open)


def test_a_longer_one_is_refused_with_the_limit_and_start_may_be_said_again() -> None:
    connection = fresh(v1=False)
    error = error_of(say(connection, {**START, "session_token": "x" * (messages.TOKEN_LIMIT + 1)}))
    assert (error["code"], error["field"], error["limit"]) == ("INVALID_ARGUMENT", "session_token", messages.TOKEN_LIMIT)
    assert isinstance(say(connection, START)[0], Open)


@pytest.fixture
async def other(serve: Serve, running: Running, nats_url: str, redis_url: str) -> Running:
    """A second gateway over the same servers."""
    assert running
    return await serve(nats_url, redis_url)


async def sent_away(running: Running, voice: StandIn, count: int = 1) -> list[tuple[Session, str]]:
    """Return sessions whose gateway has stopped, each with one transcript, and the token of its `go_away`."""
    async with AsyncExitStack() as stack:
        calls: list[tuple[Session, Client]] = []
        for _ in range(count):
            client = await stack.enter_async_context(running.client(v1=False))
            assert (await client.started())["resumed"] is False
            session = await voice.session()
            seq = await session.says(said("before"))
            assert (await client.until("transcript"))["seq"] == seq
            calls.append((session, client))
        draining = asyncio.create_task(running.gateway.drain())
        found = [(session, (await client.until("go_away"))["session_token"]) for session, client in calls]
        assert [await client.close_code() for _, client in calls] == [1012] * count
        await draining
    return found


async def start(client: Client, token: str, **fields: Any) -> dict[str, Any]:
    """Return the first message after a `start` with this token."""
    await client.say({"type": "start", "mode": "echo", "session_token": token, **fields})
    first: dict[str, Any] = await client.next()
    return first


async def test_the_token_of_go_away_goes_on_with_the_same_session_and_tells_exactly_what_was_missed(
    running: Running, other: Running, voice: StandIn
) -> None:
    ((session, token),) = await sent_away(running, voice)
    missed = [await session.says(said(f"missed {number}")) for number in range(3)]
    async with other.client(v1=False) as client:
        answer = await start(client, token, mode="gemini", voice="Puck")
        assert answer == {"type": "setup_complete", "sessionId": session.sid, "mode": "echo", "resumed": True}
        assert [await client.next() for _ in missed] == [
            {"type": "transcript", "role": "user", "text": f"missed {number}", "seq": seq} for number, seq in enumerate(missed)
        ]
        await client.say({"type": "audio", "data": "AQI="})
        assert (await asyncio.wait_for(session.microphone.get(), BOUND_S))[16:] == b"\x01\x02"
        await session.plays(pack(PCM16, 4, 0, wall_ms32(), b"\x05\x06"))
        assert await client.next() == {"type": "audio", "data": "BQY="}
        await client.say({"type": "text", "text": "still here"})
        top = await session.says(said("live"))
        assert (await client.next())["seq"] == top
        draining = asyncio.create_task(other.gateway.drain())
        again = (await client.until("go_away"))["session_token"]
        assert session_token.read(again) == SessionToken(session.sid, token.split(".")[1], top), "the next one has it again, from there"
        await draining
    log = [one.event async for one in voice.log.read_all(session.sid, writer="gateway")]
    assert [(one.resumed, one.last_seq > 0) for one in log if isinstance(one, g.ClientConnected)] == [(False, False), (True, True)]
    assert [one.text for one in log if isinstance(one, g.TextReceived)] == ["still here"]


async def test_a_wrong_a_foreign_an_unknown_and_an_ended_one_begin_anew_alike_and_take_as_long(
    running: Running, other: Running, voice: StandIn
) -> None:
    (one, own), (two, foreign), (over, ended) = await sent_away(running, voice, 3)
    await over.says(v.SessionEnded(reason="idle"))
    assert len({token.split(".")[1] for token in (own, foreign, ended)}) == 3
    cases = {
        "wrong": f"{one.sid}.{tokens.new_token()}.1",
        "foreign": foreign.replace(two.sid, one.sid),
        "unknown": own.replace(one.sid, new_session_id()),
        "ended": ended,
    }
    took: dict[str, list[float]] = {name: [] for name in cases}
    before = {session.sid for session in (one, two, over)}
    while not alike(took):
        for name, token in cases.items():
            async with other.client(v1=False) as client:
                began = asyncio.get_running_loop().time()
                answer = await start(client, token)
                took[name].append(asyncio.get_running_loop().time() - began)
                assert answer.keys() == {"type", "sessionId", "mode", "resumed", "seq"}
                assert (answer["type"], answer["mode"], answer["resumed"]) == ("setup_complete", "echo", False)
                assert answer["sessionId"] not in before
                before.add(answer["sessionId"])
    assert min(min(times) for times in took.values()) >= shell.REFUSAL_S * 0.99
    async with other.client(v1=False) as client:  # the failed attempts have not affected the sessions
        assert (await start(client, own))["sessionId"] == one.sid


async def test_only_so_much_may_be_said_for_a_token(running: Running, voice: StandIn) -> None:
    async with running.client(v1=False) as client:
        refused = await start(client, "x" * (messages.TOKEN_LIMIT + 1))
        assert (refused["code"], refused["field"], refused["limit"]) == ("INVALID_ARGUMENT", "session_token", messages.TOKEN_LIMIT)
        longest = await start(client, "x" * messages.TOKEN_LIMIT)
        assert (longest["type"], longest["resumed"]) == ("setup_complete", False)


@pytest.mark.parametrize(("kept", "goes_on"), [(True, False), (False, True)])
async def test_who_refuses_a_recording_does_not_go_on_with_one(
    running: Running, other: Running, voice: StandIn, kept: bool, goes_on: bool
) -> None:
    ((session, token),) = await sent_away(running, voice)
    await session.says(v.SessionStarted(mode="echo", model="none", voice="none", output="audio", recorded=kept))
    async with other.client(v1=False) as client:
        answer = await start(client, token, record=False)
        assert (answer["resumed"], answer["sessionId"] == session.sid) == (goes_on, goes_on)


async def test_beyond_the_retention_nothing_of_what_was_missed_is_told(running: Running, other: Running, voice: StandIn) -> None:
    ((session, token),) = await sent_away(running, voice)
    seqs = [await session.says(said(str(number))) for number in range(3)]
    await voice.log.js.purge_stream(subjects.EVENT_STREAM, seq=seqs[1])
    async with other.client(v1=False) as client:
        assert (await start(client, token))["resumed"] is True
        top = await session.says(said("live"))
        assert (await client.next())["seq"] == top


async def test_who_goes_on_with_it_a_second_time_takes_it_over(running: Running, other: Running, voice: StandIn) -> None:
    ((session, token),) = await sent_away(running, voice)
    async with other.client(v1=False) as first, other.client(v1=False) as second:
        assert (await start(first, token))["sessionId"] == session.sid
        assert (await start(second, token))["sessionId"] == session.sid
        assert (await first.until("error"))["code"] == "CONFLICT"
        assert await first.close_code() == 4010
        top = await session.says(said("live"))
        assert (await second.next())["seq"] == top


async def test_while_the_log_is_away_the_token_is_not_spent(serve: Serve, own_nats: Callable[[], NatsServer], redis_url: str) -> None:
    server = own_nats()
    one, two = await serve(server.url, redis_url), await serve(server.url, redis_url)
    nc = await connect_nats(server.url, "voice-test", pending=EVENTS_PENDING)
    async with StandIn(nc, one.gateway.store) as voice:
        ((session, token),) = await sent_away(one, voice)
        server.kill()
        async with two.client(v1=False) as client:
            assert (await start(client, token))["code"] == "UNAVAILABLE"
            assert await client.close_code() == 1013
        server.start()
        seq = await asyncio.wait_for(session.says(said("live")), BOUND_S)
        async with two.client(v1=False) as client:
            assert (await start(client, token))["resumed"] is True
            assert (await client.next())["seq"] == seq
    await nc.close()


async def test_the_token_stands_in_no_event_and_no_line_of_a_log(
    running: Running, other: Running, voice: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        ((session, token),) = await sent_away(running, voice)
        wrong = f"{session.sid}.{tokens.new_token()}.0"
        async with other.client(v1=False) as client:
            assert (await start(client, wrong))["resumed"] is False
        async with other.client(v1=False) as client:
            assert (await start(client, token))["resumed"] is True
            await voice.nc.publish(subjects.moments(session.sid), b"no moment")
            await eventually(lambda: "a moment cannot be read" in caplog.text)
            seq = await session.says(said("live"))
            assert (await client.next())["seq"] == seq
    # The test's own client also logs its traffic, which does not count.
    lines = [record.getMessage() for record in caplog.records if not record.name.startswith("websockets.client")]
    for secret in (token.split(".")[1], wrong.split(".")[1]):
        assert [line for line in lines if secret in line] == []
        async for one in voice.log.read_all("*"):
            assert secret not in str(one)
        async for key in running.gateway.store.redis.scan_iter("vx:*"):
            assert secret.encode() not in (await running.gateway.store.redis.dump(key) or b"")
    hashes = [one.event.resume_hash async for one in voice.log.read_all(session.sid) if isinstance(one.event, g.SessionRequested)]
    assert hashes == [tokens.hash_of(token.split(".")[1])]
    assert re.fullmatch("[0-9a-f]{64}", hashes[0])
