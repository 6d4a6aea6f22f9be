"""OpenAI Realtime through the provider interface: turns, interruptions, texts and calls, against a stand-in as strict as the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.fakes.openai.realtime_turns import Turn, tone
from tests.voice.providers.openai_calls import SETUP, SILENCE, SPEECH, Call, calling, the_key
from voxbridge.services.voice.core.provider_events import (
    AgentAudio,
    AgentText,
    AgentWords,
    CallRequested,
    GenerationDone,
    Interrupted,
    ModelTurnDone,
    ProviderInput,
    UserVoice,
    UserWords,
)
from voxbridge.services.voice.providers.realtime.base import Answer
from voxbridge.services.voice.providers.realtime.openai import connection, responses
from voxbridge.services.voice.providers.realtime.openai.connection import REFUSALS_LIMIT
from voxbridge.services.voice.providers.realtime.openai.model import OpenAIRealtime
from voxbridge.services.voice.providers.realtime.openai.tool_calls import ARGUMENTS_LIMIT, CALLS_LIMIT


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIRealtimeServer]:
    async with OpenAIRealtimeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
async def model(server: OpenAIRealtimeServer) -> AsyncIterator[OpenAIRealtime]:
    model = OpenAIRealtime(the_key)
    yield model
    await model.close()


@pytest.fixture
async def call(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> AsyncIterator[Call]:
    async with calling(server, model) as call:
        yield call
        assert not call.session.errors, call.session.errors


async def test_speech_is_heard_and_answered(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(hears="What time is it?", says="It is noon.", audio_ms=300))
    await call.speak(SPEECH, SILENCE)
    done = await call.heard.until(ModelTurnDone)
    inputs = [one for one in call.heard.all if not isinstance(one, bytes)]
    item = call.heard.of(UserWords)[0].item
    assert inputs[:6] == [
        UserVoice(effect=7, speaking=True, audio_ms=1_234),
        UserVoice(effect=7, speaking=False, audio_ms=1_234),
        *(UserWords(effect=7, text=text, item=item, audio_ms=1_234) for text in ("What ", "time ", "is ")),
        UserWords(effect=7, text="What time is it?", item=item, whole=True, audio_ms=1_234),
    ]
    assert item
    assert "".join(one.text for one in call.heard.of(AgentWords)) == "It is noon."
    assert [one.ms for one in call.heard.of(AgentAudio)] == [100, 300]
    assert len(call.heard.pcm) == 300 * 48
    first = next(at for at, one in enumerate(call.heard.all) if isinstance(one, bytes))
    assert isinstance(call.heard.all[first - 1], AgentAudio)
    assert call.heard.all[-2:] == [GenerationDone(effect=7, ms=300), done]
    assert done == ModelTurnDone(effect=7, ms=300, input_tokens=34, output_tokens=12)


async def test_the_microphone_is_heard_at_24_khz_without_a_gap(call: Call) -> None:
    await call.speak(tone(200))
    await call.session.until_heard(200 * 48)
    came = np.frombuffer(bytes(call.session.heard), "<i2").astype(float)
    ideal = np.frombuffer(tone(201, rate=24_000), "<i2").astype(float)[: came.size]
    assert np.abs(came[100:] - np.roll(ideal, 12)[100:]).max() < 8_000 * 0.01


async def test_a_microphone_that_is_paused_ends_what_was_being_said(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(hears="Hello", writes="Hi."))
    await call.speak(SPEECH)
    await call.connection.end_audio()
    await call.heard.until(AgentText)
    assert [one.speaking for one in call.heard.of(UserVoice)] == [True, False]


async def test_audio_is_reported_first_each_second_and_last(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=2_350))
    await call.connection.say("Tell me a story.")
    done = await call.heard.until(ModelTurnDone)
    assert [one.ms for one in call.heard.of(AgentAudio)] == [100, 1_100, 2_100, 2_350]
    assert done.ms == 2_350


@pytest.mark.parametrize(("level", "quiet"), [(127, True), (128, False), (0, True)])
async def test_a_response_that_is_next_to_silence_is_called_quiet(
    server: OpenAIRealtimeServer, call: Call, level: int, quiet: bool
) -> None:
    server.script(Turn(audio_ms=200, level=level))
    await call.connection.say("Hello?")
    assert (await call.heard.until(ModelTurnDone)).quiet is quiet
    assert {one.quiet for one in call.heard.of(AgentAudio)} == {quiet}


async def test_the_same_item_is_complete_once_and_the_same_words_may_be_said_twice(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(hears="No.", hears_twice=True), Turn(hears="No."))
    await call.speak(SPEECH, SILENCE)
    await call.heard.until(ModelTurnDone)
    await call.speak(SPEECH, SILENCE)
    await call.heard.until(ModelTurnDone, 2)
    assert [one.text for one in call.heard.of(UserWords) if one.whole] == ["No.", "No."]
    assert len({one.item for one in call.heard.of(UserWords)}) == 2


async def test_words_that_could_not_be_transcribed_are_none(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(unheard=True))
    await call.speak(SPEECH, SILENCE)
    words = await call.heard.until(UserWords)
    assert (words.text, words.whole) == ("", True)


async def test_a_turn_in_text_only_and_an_empty_one(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(writes="Noon."), Turn())
    await call.connection.say("Write it.")
    await call.heard.until(ModelTurnDone)
    await call.connection.say("And now?")
    await call.heard.until(ModelTurnDone, 2)
    assert call.heard.all == [
        AgentText(effect=7, text="Noon."),
        *(one for _ in range(2) for one in (GenerationDone(effect=7), ModelTurnDone(effect=7, input_tokens=34, output_tokens=12))),
    ]


@pytest.mark.parametrize(
    ("status", "given", "reason"),
    [
        ("incomplete", "max_output_tokens", "max_output_tokens"),
        ("incomplete", "content_filter", "content_filter"),
        ("failed", "rate_limit_exceeded", "rate_limit_exceeded"),
        ("failed", "", "failed"),
    ],
)
async def test_the_reason_of_a_response_that_failed_is_told(
    server: OpenAIRealtimeServer, call: Call, status: str, given: str, reason: str
) -> None:
    server.script(Turn(audio_ms=100, status=status, reason=given))
    await call.connection.say("Hello?")
    assert (await call.heard.until(ModelTurnDone)).reason == reason
    assert call.heard.of(GenerationDone) == [GenerationDone(effect=7, ms=100)]


async def test_speech_over_a_response_interrupts_it(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=5_000, says="A long story.", hold_after_ms=300))
    await call.connection.say("Tell me a story.")
    await call.heard.until(AgentAudio)
    await call.speak(SPEECH)
    await call.heard.until(Interrupted)
    done = await call.heard.until(ModelTurnDone)
    assert done.reason == "turn_detected"
    assert call.heard.of(GenerationDone) == []
    order = [type(one) for one in call.heard.all if isinstance(one, UserVoice | Interrupted | ModelTurnDone)]
    assert order == [UserVoice, Interrupted, ModelTurnDone]


async def test_speech_over_audio_that_may_still_be_played_interrupts_it(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=5_000), Turn())
    await call.connection.say("Tell me a story.")
    await call.heard.until(ModelTurnDone)
    await call.speak(SPEECH, SILENCE)
    await call.heard.until(Interrupted)
    await call.heard.until(ModelTurnDone, 2)
    # There is only one interruption, because the interrupted response is no longer heard.
    await call.speak(SPEECH, SILENCE)
    await call.heard.until(UserVoice, 4)
    assert len(call.heard.of(Interrupted)) == 1


async def test_speech_after_the_audio_was_played_interrupts_nothing(
    server: OpenAIRealtimeServer, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_TAIL_S", -60.0)
    server.script(Turn(audio_ms=5_000))
    await call.connection.say("Tell me a story.")
    await call.heard.until(ModelTurnDone)
    await call.speak(SPEECH, SILENCE)
    await call.heard.until(UserVoice, 2)
    assert call.heard.of(Interrupted) == []


async def test_nothing_more_is_played_of_a_response_that_was_stopped(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=5_000, says="A long story.", hold_after_ms=300), Turn(audio_ms=100))
    await call.connection.say("Tell me a story.")
    await call.heard.until(AgentAudio)
    await call.heard.until(AgentWords)
    await call.connection.interrupt()
    played = len(call.heard.all)
    # Late output of the cancelled response:
    response = (await call.session.until("response.cancel"))["response_id"]
    late = {"response_id": response, "item_id": "item_late", "output_index": 0, "content_index": 0}
    await call.session.send("response.output_audio.delta", **late, delta="AAAA")
    await call.session.send("response.output_audio_transcript.delta", **late, delta="late")
    await call.session.send("response.output_text.delta", **late, delta="late")
    assert (await call.heard.until(ModelTurnDone)).reason == "client_cancelled"
    await call.connection.say("Go on.")
    await call.heard.until(ModelTurnDone, 2)
    since = [one for one in call.heard.all[played:] if isinstance(one, bytes | AgentWords | AgentText)]
    assert b"".join(one for one in since if isinstance(one, bytes)) == call.heard.pcm[-100 * 48 :]
    assert not [one for one in since if isinstance(one, AgentWords | AgentText) and one.text == "late"]


async def test_a_response_that_was_only_asked_for_is_stopped_when_it_begins(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=5_000, hold_after_ms=0))
    await call.connection.say("Tell me a story.")
    await call.connection.interrupt()
    await call.session.until("response.cancel")
    server.script(Turn(writes="Yes?"))
    await call.connection.say("Hello?")
    # The first response had no content: it was not a turn, but its tokens count.
    done = await call.heard.until(ModelTurnDone)
    assert call.heard.all == [AgentText(effect=7, text="Yes?"), GenerationDone(effect=7), done]
    assert done == ModelTurnDone(effect=7, input_tokens=68, output_tokens=24)


async def test_speech_that_goes_on_before_anything_was_answered_is_no_turn_of_the_models(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(hears="I want", audio_ms=500, hold_after_ms=0), Turn(hears="a pizza.", audio_ms=100))
    await call.speak(SPEECH, SILENCE, SPEECH, SILENCE)
    await call.heard.until(ModelTurnDone)
    order = [type(one) for one in call.heard.all if isinstance(one, UserVoice | Interrupted | GenerationDone | ModelTurnDone)]
    assert order == [UserVoice, UserVoice, UserVoice, Interrupted, UserVoice, GenerationDone, ModelTurnDone]
    assert len(call.heard.pcm) == 100 * 48


async def test_nothing_is_cancelled_where_nothing_is_made(call: Call) -> None:
    await call.connection.interrupt()
    await call.connection.say("Hello?")
    await call.heard.until(ModelTurnDone)
    assert call.session.of("response.cancel") == []


@pytest.mark.parametrize(("heard_ms", "ends"), [(0, [0]), (120, [120]), (299, [299]), (300, []), (9_000, [])])
async def test_a_response_is_truncated_at_what_was_heard_and_never_beyond_its_end(
    server: OpenAIRealtimeServer, call: Call, heard_ms: int, ends: list[int]
) -> None:
    server.script(Turn(audio_ms=300), Turn())
    await call.connection.say("Hello?")
    await call.heard.until(ModelTurnDone)
    await call.connection.cut_short(heard_ms)
    await call.connection.cut_short(9_000)
    await call.connection.say("Go on.")
    await call.heard.until(ModelTurnDone, 2)
    assert list(call.session.truncated.values()) == ends


async def test_a_text_may_be_added_without_an_answer(call: Call) -> None:
    await call.connection.say("The door is open.", respond=False)
    await call.connection.say("Is the door open?")
    await call.heard.until(ModelTurnDone)
    texts = [event["item"]["content"][0]["text"] for event in call.session.of("conversation.item.create")]
    assert texts == ["The door is open.", "Is the door open?"]
    assert len(call.session.of("response.create")) == 1


async def test_a_text_takes_the_place_of_a_response(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=5_000, hold_after_ms=300), Turn(audio_ms=100))
    await call.connection.say("Tell me a story.")
    await call.heard.until(AgentAudio)
    await call.connection.say("Stop. What time is it?")
    await call.heard.until(ModelTurnDone, 2)
    assert [one.reason for one in call.heard.of(ModelTurnDone)] == ["client_cancelled", ""]
    assert [event["type"] for event in call.session.events[-3:]] == ["conversation.item.create", "response.cancel", "response.create"]


async def test_a_text_that_comes_while_the_user_speaks_is_answered_with_what_is_said(server: OpenAIRealtimeServer, call: Call) -> None:
    await call.speak(SPEECH)
    await call.heard.until(UserVoice)
    await call.connection.say("And a cola.")
    await call.speak(SILENCE)
    await call.heard.until(ModelTurnDone)
    assert call.session.of("response.create") == []
    assert call.session.of("conversation.item.create")[0]["item"]["content"][0]["text"] == "And a cola."


async def test_a_response_that_does_not_end_is_not_waited_for(
    server: OpenAIRealtimeServer, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "CANCEL_S", 0.05)
    server.script(Turn(audio_ms=5_000, hold_after_ms=300))
    await call.connection.say("Tell me a story.")
    await call.heard.until(AgentAudio)
    server.silent = True
    await call.connection.say("Stop.")
    await call.session.until("response.create", 2)


async def test_a_request_that_came_too_early_is_repeated(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(audio_ms=500, hold_after_ms=300), Turn(writes="Yes."))
    await call.connection.say("Tell me a story.")
    await call.heard.until(AgentAudio)
    await call.session.fail("conversation_already_has_active_response")
    call.session.release()
    assert (await call.heard.until(AgentText)).text == "Yes."
    assert len(call.session.of("response.create")) == 2


def answer(call: CallRequested, **result: Any) -> Answer:
    return Answer(ref=call.ref, name=call.name, result=result)


async def test_the_model_goes_on_once_when_all_calls_have_results(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("time", '{"place":"Rome"}'), ("time", "{}"))), Turn(writes="Noon."))
    await call.connection.say("What time is it?")
    await call.heard.until(ModelTurnDone)
    first, second = call.heard.of(CallRequested)
    assert (first.name, first.arguments, second.arguments) == ("time", {"place": "Rome"}, {})
    await call.connection.answer([answer(first, time="noon")])
    assert len((await call.session.until("conversation.item.create", 2))["item"]) == 3
    await call.connection.answer([answer(second, time="one")])
    await call.heard.until(AgentText)
    results = [event["item"] for event in call.session.of("conversation.item.create")[1:]]
    assert results == [
        {"type": "function_call_output", "call_id": first.ref, "output": '{"time":"noon"}'},
        {"type": "function_call_output", "call_id": second.ref, "output": '{"time":"one"}'},
    ]
    assert [event["type"] for event in call.session.events[-2:]] == ["conversation.item.create", "response.create"]
    assert len(call.session.of("response.create")) == 2


async def test_a_result_may_come_before_the_response_that_called_has_ended(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("time", "{}"), ("time", "{}")), says="I look it up.", audio_ms=100), Turn(writes="Noon."))

    take = call.heard.take
    answering: list[asyncio.Task[None]] = []

    def at_once(input: ProviderInput) -> None:
        take(input)
        if isinstance(input, CallRequested):
            answering.append(asyncio.create_task(call.connection.answer([answer(input, time="noon")])))

    call.heard.take = at_once  # type: ignore[method-assign]
    await call.connection.say("What time is it?")
    await call.heard.until(AgentText)
    await asyncio.gather(*answering)
    assert len(call.session.of("response.create")) == 2


async def test_a_result_for_a_call_that_is_not_open_is_not_sent(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    await call.connection.answer([Answer(ref="call_of_another_connection", name="time", result={"time": "noon"})])
    await call.connection.say("Hello?")
    await call.heard.until(ModelTurnDone)
    assert len(call.session.of("conversation.item.create")) == 1
    assert "noon" not in caplog.text


async def test_a_result_that_comes_while_the_user_speaks_waits_for_the_answer_to_that(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("time", "{}"),)), Turn(hears="Never mind.", writes="All right."))
    await call.connection.say("What time is it?")
    await call.heard.until(ModelTurnDone)
    await call.speak(SPEECH)
    await call.heard.until(UserVoice)
    await call.connection.answer([answer(call.heard.of(CallRequested)[0], time="noon")])
    await call.speak(SILENCE)
    await call.heard.until(AgentText)
    assert len(call.session.of("response.create")) == 1


async def test_a_call_that_an_interruption_cut_off_is_not_made(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("order", '{"pizzas":1}'),), hold_call=True))
    await call.connection.say("A pizza.")
    await call.session.until("response.create")
    await call.speak(SPEECH)
    await call.heard.until(Interrupted)
    await call.speak(SILENCE)
    await call.heard.until(ModelTurnDone)
    assert call.heard.of(CallRequested) == []


@pytest.mark.parametrize("arguments", ['{"place": "Ro', "[1]", "noon", '{"a":"' + "x" * (ARGUMENTS_LIMIT - 7) + '"}'])
async def test_a_call_that_cannot_be_made_is_answered_with_what_is_wrong(server: OpenAIRealtimeServer, call: Call, arguments: str) -> None:
    server.script(Turn(calls=(("time", arguments),)), Turn(writes="Sorry."))
    await call.connection.say("What time is it?")
    await call.heard.until(AgentText)
    assert call.heard.of(CallRequested) == []
    result = call.session.of("conversation.item.create")[1]["item"]
    assert "arguments" in json.loads(result["output"])["error"]


async def test_arguments_at_the_bound_are_taken(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("time", '{"a":"' + "x" * (ARGUMENTS_LIMIT - 8) + '"}'),)))
    await call.connection.say("What time is it?")
    assert len((await call.heard.until(CallRequested)).arguments["a"]) == ARGUMENTS_LIMIT - 8


async def test_a_model_that_cannot_call_is_not_asked_for_ever(server: OpenAIRealtimeServer, call: Call) -> None:
    server.usual = Turn(calls=(("time", "noon"),))
    await call.connection.say("What time is it?")
    assert await call.heard.until(ModelTurnDone) == ModelTurnDone(effect=7, input_tokens=34 * 4, output_tokens=12 * 4)
    await call.connection.say("Anything.", respond=False)
    await call.session.until("conversation.item.create", 2 + REFUSALS_LIMIT + 1)
    assert len(call.session.of("response.create")) == 1 + REFUSALS_LIMIT


async def test_open_calls_are_bounded(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(calls=(("time", "{}"),) * (CALLS_LIMIT + 1)))
    await call.connection.say("What time is it, everywhere?")
    await call.heard.until(ModelTurnDone)
    assert len(call.heard.of(CallRequested)) == CALLS_LIMIT
    refused = await call.session.until("conversation.item.create", 2)
    assert f"{CALLS_LIMIT} calls are open" in refused["item"]["output"]


@pytest.fixture
async def manual(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> AsyncIterator[Call]:
    async with calling(server, model, msgspec.structs.replace(SETUP, manual_activity=True)) as call:
        yield call
        assert not call.session.errors, call.session.errors


async def test_turns_may_be_told_instead_of_detected(server: OpenAIRealtimeServer, manual: Call) -> None:
    server.script(Turn(hears="Hello.", audio_ms=100))
    assert manual.session.of("session.update")[0]["session"]["audio"]["input"]["turn_detection"] is None
    await manual.speak(SILENCE, SPEECH)
    await manual.connection.activity(speaking=True)
    await manual.speak(SPEECH, SILENCE)
    await manual.connection.activity(speaking=False)
    await manual.heard.until(ModelTurnDone)
    assert len(manual.session.heard) == (400 * 32 + len(SPEECH) + len(SILENCE)) * 3 // 2, "how it began was said before it was told"
    kinds = [event["type"] for event in manual.session.events[1:]]
    assert kinds == ["input_audio_buffer.clear", "input_audio_buffer.commit", "response.create"]
    assert [one.text for one in manual.heard.of(UserWords)] == ["Hello."]
    assert manual.heard.of(UserVoice) + manual.heard.of(Interrupted) == []


async def test_a_pause_is_no_end_where_turns_are_told(manual: Call) -> None:
    await manual.connection.activity(speaking=True)
    await manual.speak(SPEECH)
    await manual.connection.end_audio()
    await manual.connection.activity(speaking=False)
    await manual.heard.until(ModelTurnDone)
    assert len(manual.session.heard) == len(SPEECH) * 3 // 2


async def test_a_turn_too_short_for_the_vendor_is_made_longer(manual: Call) -> None:
    await manual.connection.activity(speaking=True)
    await manual.speak(tone(60))
    await manual.connection.activity(speaking=False)
    await manual.heard.until(ModelTurnDone)
    assert len(manual.session.heard) == 100 * 48


async def test_a_told_turn_interrupts_what_is_being_said(server: OpenAIRealtimeServer, manual: Call) -> None:
    server.script(Turn(audio_ms=5_000, hold_after_ms=300), Turn(audio_ms=100))
    await manual.connection.say("Tell me a story.")
    await manual.heard.until(AgentAudio)
    await manual.connection.activity(speaking=True)
    await manual.heard.until(Interrupted)
    assert (await manual.heard.until(ModelTurnDone)).reason == "client_cancelled"
    await manual.speak(SPEECH)
    await manual.connection.activity(speaking=False)
    assert (await manual.heard.until(ModelTurnDone, 2)).ms == 100


async def test_a_short_told_turn_gets_its_answer_though_it_interrupted(server: OpenAIRealtimeServer, manual: Call) -> None:
    server.script(Turn(audio_ms=5_000), Turn(audio_ms=100))
    await manual.connection.say("Tell me a story.")
    await manual.heard.until(ModelTurnDone)
    await manual.connection.activity(speaking=True)
    await manual.speak(SPEECH)
    await manual.connection.activity(speaking=False)
    await manual.heard.until(Interrupted)
    done = await manual.heard.until(ModelTurnDone, 2)
    assert (done.ms, done.reason) == (100, "")
