"""`/session` in the words of its protocol alone, with a scripted voice service."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running
from tests.gateway.platform.conftest import CONFIGURE, SHOP, make_key, page
from tests.gateway.stand_in import StandIn
from voxbridge.shared.audio.frames import FLUSH, LAST, PCM16, pack
from voxbridge.shared.bus import moments
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

READY = {"type": "ready", "sampleRate": 16_000, "ttsSampleRate": 24_000}


async def test_a_page_configures_speaks_and_is_answered_in_the_words_of_the_protocol(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE | {"voice": "jess"})
        session = await voice.session()
        assert await client.next() == READY
        await client.socket.send(b"\x01\x00" * 320)
        heard = await asyncio.wait_for(session.microphone.get(), BOUND_S)
        assert heard[16:] == b"\x01\x00" * 320
        await session.moment(moments.GreetingBegun("Hey!"))
        assert await client.next() == {"type": "greeting", "text": "Hey!"}
        await session.moment(moments.PartialTranscript("user", "what is", turn=1))
        assert await client.next() == {"type": "transcript", "text": "what is", "final": False}
        await session.says(ev.UserSaid(text="What is the weather?", turn=1, source="speech"))
        assert await client.next() == {"type": "turn", "text": "What is the weather?"}
        assert await client.next() == {"type": "thinking"}
        await session.moment(moments.ReplyWritten("It is sunny.", turn=1, generation=2, calls=("get_weather",)))
        assert await client.next() == {"type": "chat", "text": "It is sunny.", "steps": ["Using get_weather"]}
        await session.plays(pack(PCM16, 2, 0, wall_ms32(), b"\x02\x00" * 480))
        assert await client.next() == b"\x02\x00" * 480
        await session.plays(pack(PCM16, 2, 1, wall_ms32(), b"\x03\x00" * 480, LAST))
        assert await client.next() == b"\x03\x00" * 480
        assert await client.next() == {"type": "tts_done"}


async def test_a_greeting_and_its_sound_wait_for_ready(running: Running, voice: StandIn) -> None:
    voice.silent = True
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        await session.holds_lease()
        await session.moment(moments.GreetingBegun("Hey!"))
        await session.plays(pack(PCM16, 1, 0, wall_ms32(), b"\x02\x00" * 480, LAST))
        await voice.nc.flush()
        (connection,) = running.gateway.connections
        await eventually(lambda: running.gateway.metrics.frames_out == 1)
        await session.says(ev.SessionStarted(mode="local", model="none", voice="none", output="audio"))
        assert await client.next() == READY
        assert await client.next() == {"type": "greeting", "text": "Hey!"}
        assert await client.next() == b"\x02\x00" * 480
        assert await client.next() == {"type": "tts_done"}
        assert connection.core.attached


async def test_cancel_and_reset_become_events_and_are_answered(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        await client.until("ready")
        await client.say({"type": "cancel"})
        await session.plays(pack(FLUSH, 1, 0, wall_ms32()))
        assert await client.next() == {"type": "cancelled"}
        await client.say({"type": "reset"})
        await session.says(ev.ConversationReset(turns=0))
        assert await client.next() == {"type": "reset"}
        await running.gateway.idle()
        events = [recorded.event for recorded in await voice.log.read(session.sid, writer="gateway")]
        assert [type(event) for event in events[-2:]] == [gateway.InterruptRequested, gateway.ResetRequested]


async def test_a_session_of_a_key_has_its_account_its_limits_and_nothing_of_the_installation(running: Running, voice: StandIn) -> None:
    key, text = await make_key(running, origins=(SHOP,))
    options = {
        "language": "de",
        "timeZone": "Europe/Berlin",
        "speed": 1.5,
        "bargeInWords": 2,
        "filler": False,
        "pushToTalk": True,
        "interim": False,
        "voiceCleaner": False,
    }
    async with page(running, text) as client:
        await client.say(CONFIGURE | options)
        asked = (await asyncio.wait_for(voice.requests.get(), BOUND_S)).event
        assert isinstance(asked, gateway.SessionRequested)
        assert (asked.account, asked.system_prompt, asked.output, asked.filler) == ("shop", CONFIGURE["instructions"], "audio", False)
        assert asked.options == gateway.SessionOptions(
            greeting="Hey!",
            language="de",
            time_zone="Europe/Berlin",
            speed=1.5,
            barge_in_words=2,
            push_to_talk=True,
            interim=False,
            cleaner=False,
        )
        assert asked.key is not None
        assert (asked.key.id, asked.key.live, asked.key.functions) == (key.id, False, ())
        assert (asked.key.seconds, asked.key.tokens) == (key.limits.seconds_a_call, key.limits.tokens_a_call)
        assert asked.client.chat


async def test_a_page_begins_in_text_goes_on_by_voice_and_answers_the_calls_for_it(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text, v1=True) as client:
        await client.say(CONFIGURE | {"output": "text", "modes": True})
        asked = (await asyncio.wait_for(voice.requests.get(), BOUND_S)).event
        assert isinstance(asked, gateway.SessionRequested)
        assert asked.options.output == "text"
        offered = [(one.name, one.kind) for one in asked.functions]
        assert offered == [("start_voice_session", "browser"), ("end_voice_session", "browser")]


async def test_a_client_that_cannot_answer_calls_is_told_so(running: Running) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE | {"modes": True})
        error = await client.until("error")
        assert (error["code"], error["field"]) == ("INVALID_ARGUMENT", "modes")


async def test_a_switch_becomes_an_event_and_is_told(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text, v1=True) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        await client.until("ready")
        await client.say({"type": "output", "output": "aloud"})
        assert (await client.until("error"))["field"] == "output"
        await client.say({"type": "output", "output": "text"})
        await session.says(ev.OutputChanged(output="text"))
        assert (await client.until("output"))["output"] == "text"
        await running.gateway.idle()
        events = [recorded.event for recorded in await voice.log.read(session.sid, writer="gateway")]
        assert events[-1] == gateway.OutputRequested(output="text")


async def test_a_page_that_was_refused_a_socket_is_told_why_over_http(running: Running) -> None:
    key, text = await make_key(running, origins=(SHOP,), environment="live")
    wrong = await running.get("/session?key=pk_live_nobody", headers={"Origin": SHOP})
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["access-control-allow-origin"]) == (401, "UNAUTHENTICATED", "*")
    foreign = await running.get(f"/session?key={text}", headers={"Origin": "https://other.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "FORBIDDEN_ORIGIN")
    assert "https://shop.example" in foreign.json()["message"]
    for _ in range(key.limits.concurrent + 2):  # it takes no place
        right = await running.get(f"/session?key={text}", headers={"Origin": SHOP})
        assert (right.status_code, right.headers["cache-control"]) == (200, "no-store")


async def test_a_page_without_a_greeting_gets_none(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say({"type": "configure", "instructions": "Be brief."})
        asked = (await asyncio.wait_for(voice.requests.get(), BOUND_S)).event
        assert isinstance(asked, gateway.SessionRequested)
        assert asked.options.greeting == ""


async def test_a_voice_that_nobody_has_is_the_default_voice_and_a_notice(complete: Running, voice: StandIn) -> None:
    _, text = await make_key(complete, origins=(SHOP,), mode="gemini")
    async with page(complete, text) as client:
        await client.say(CONFIGURE | {"voice": "jess"})
        asked = (await asyncio.wait_for(voice.requests.get(), BOUND_S)).event
        assert isinstance(asked, gateway.SessionRequested)
        assert (asked.mode, asked.voice) == ("gemini", "")
        assert await client.next() == READY
        assert "'jess'" in (await client.until("notice"))["message"]


async def test_a_client_that_asks_for_v1_gets_frames_states_and_resumes(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text, v1=True) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        opened = await client.until("setup_complete")
        assert await client.next() == READY
        await session.moment(moments.StateChanged("listening"))
        assert (await client.until("state"))["state"] == "listening"
        frame = pack(PCM16, 1, 0, wall_ms32(), b"\x02\x00" * 480, LAST)
        await session.plays(frame)
        assert await client.next() == frame
        assert await client.next() == {"type": "tts_done"}
        await client.say({"type": "text", "text": "hello"})
        await session.says(ev.UserSaid(text="hello", turn=1, source="text"))
        last = await client.until("transcript")
        assert await client.next() == {"type": "turn", "text": "hello"}
    async with page(running, text, v1=True) as client:
        assert (await client.resume(opened, last["seq"]))["recovered"]


async def test_messages_out_of_order_are_refused_and_the_socket_stays_open(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    wrong: list[tuple[Any, str]] = [
        ({"type": "cancel"}, "CONFLICT"),
        ({"type": "reset"}, "CONFLICT"),
        ({"type": "start", "mode": "local"}, "INVALID_MESSAGE"),
        ({"type": "text", "text": "hello"}, "INVALID_MESSAGE"),
        ({"type": 7}, "INVALID_MESSAGE"),
        ([], "INVALID_MESSAGE"),
        ({"type": "configure", "speed": 9}, "INVALID_ARGUMENT"),
        ({"type": "configure", "language": "../etc"}, "INVALID_ARGUMENT"),
        ({"type": "configure", "bargeInWords": 11}, "INVALID_ARGUMENT"),
        ({"type": "configure", "instructions": "x" * 16_385}, "TOO_LARGE"),
    ]
    async with page(running, text) as client:
        await client.socket.send(b"\x00\x00")  # comes too early, and is dropped
        for message, code in wrong:
            await client.socket.send(json.dumps(message))
            refusal = await client.next()
            assert (refusal["type"], refusal["code"]) == ("error", code), message
            assert refusal["message"]
        await client.socket.send(b"\x00\x00\x00")
        assert (await client.next())["field"] == "pcm"
        await client.say(CONFIGURE)
        assert await client.until("ready") == READY
        await client.say(CONFIGURE)
        assert (await client.next())["code"] == "CONFLICT"


async def test_a_configuration_beyond_256_kib_is_refused(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.socket.send(json.dumps(CONFIGURE | {"padding": "x" * (256 * 1024)}))
        assert await client.close_code() == 1009
