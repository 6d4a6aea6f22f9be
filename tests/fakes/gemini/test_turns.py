"""The turns of the fake Gemini Live, seen through the google-genai SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import errors, types

from tests.eventually import BOUND_S
from tests.fakes.gemini.client import (
    MODEL,
    answer,
    connect,
    contents,
    heard,
    kinds,
    one,
    rest,
    said,
    send,
    silence,
    sound,
    until,
    voice,
)
from tests.fakes.gemini.server import Call, GeminiServer, Line, Session, Turn

HISTORY_ONLY = "gemini-3.1-flash-live-preview"
DECLARED = types.HistoryConfig(initial_history_in_client_content=True)
ASKS = types.Content(role="user", parts=[types.Part(text="hi")])


def with_functions(*functions: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"function_declarations": list(functions)}]}


async def test_text_is_answered_in_speech_with_a_transcript_and_usage(gemini: GeminiServer) -> None:
    gemini.script(Turn(says="It is noon.", usage=(5, 9)))
    async with connect() as session:
        await session.send_client_content(turns=types.Content(role="user", parts=[types.Part(text="What time is it?")]))
        messages = await rest(session)
    assert said(messages) == "It is noon."
    assert len(sound(messages)) == len("It is noon.") * 60 * 48
    assert kinds(messages)[-2:] == ["generation_complete", "turn_complete"]
    metered = messages[-1].usage_metadata
    assert metered is not None
    assert (metered.prompt_token_count, metered.response_token_count, metered.total_token_count) == (5, 9, 14)
    assert gemini.sessions[0].history == [Line("user", "What time is it?"), Line("model", "It is noon.")]


async def test_realtime_text_triggers_a_turn_and_the_usual_answer_follows_the_script(gemini: GeminiServer) -> None:
    async with connect() as session:
        await session.send_realtime_input(text="Hello")
        assert said(await rest(session)) == "All right."
        gemini.reply = lambda found: Turn(says=f"You said {found.texts[-1]}.")
        await session.send_realtime_input(text="nothing")
        assert said(await rest(session)) == "You said nothing."
        assert gemini.sessions[0].texts == ["Hello", "nothing"]


async def test_content_that_completes_no_turn_is_only_remembered(gemini: GeminiServer) -> None:
    async with connect() as session:
        history = [
            types.Content(role=role, parts=[types.Part(text=text)]) for role, text in (("user", "I am Ada."), ("model", "Hello, Ada."))
        ]
        await session.send_client_content(turns=list(history), turn_complete=False)
        await session.send_realtime_input(text="Who am I?")
        await rest(session)
    assert gemini.sessions[0].history[:2] == [Line("user", "I am Ada."), Line("model", "Hello, Ada.")]


async def test_speech_triggers_a_turn_where_its_silence_is_long_enough(gemini: GeminiServer) -> None:
    gemini.script(Turn(hears="what time is it", says="Noon."))
    detection: dict[str, Any] = {"realtime_input_config": {"automatic_activity_detection": {"silence_duration_ms": 300}}}
    async with connect(**detection) as session:
        await send(session, silence(100) + voice(400) + silence(280))
        found = await gemini.opened()
        await gemini.until(lambda: found.audio_ms == 780)
        assert found.activity == [("speech", 140)]
        await send(session, silence(40))
        messages = await rest(session)
        assert (heard(messages), said(messages)) == ("what time is it", "Noon.")
        assert found.activity == [("speech", 140), ("silence", 800)]
        assert bytes(found.audio) == silence(100) + voice(400) + silence(320)
        assert found.order == ["audio"]


async def test_the_end_of_the_stream_ends_speech(gemini: GeminiServer) -> None:
    gemini.script(Turn(hears="bye"))
    async with connect() as session:
        await send(session, voice(200), piece_ms=30)
        await session.send_realtime_input(audio_stream_end=True)
        assert heard(await rest(session)) == "bye"
    assert [name for name, _ in gemini.sessions[0].activity] == ["speech", "stream_end", "silence"]


async def test_with_manual_activity_only_what_is_said_counts(gemini: GeminiServer) -> None:
    gemini.script(Turn(hears="hi", says="Hello."))
    manual: dict[str, Any] = {"realtime_input_config": {"automatic_activity_detection": {"disabled": True}}}
    async with connect(**manual) as session:
        await session.send_realtime_input(activity_start=types.ActivityStart())
        await send(session, voice(100) + silence(900))
        await session.send_realtime_input(activity_end=types.ActivityEnd())
        messages = await rest(session)
    assert (heard(messages), said(messages)) == ("hi", "Hello.")
    assert gemini.sessions[0].activity == [("start", 0), ("end", 1_000)]


async def test_transcripts_come_only_when_asked_for(gemini: GeminiServer) -> None:
    gemini.script(Turn(hears="hi", says="Hello."))
    async with connect(input_audio_transcription=None, output_audio_transcription=None) as session:
        await session.send_realtime_input(text="hi")
        assert kinds(await rest(session)) == ["model_turn", "generation_complete", "turn_complete"]


async def test_the_odd_turns_that_were_reported_can_be_had(gemini: GeminiServer) -> None:
    pcm = voice(100)
    gemini.script(
        Turn(empty=True, reason="RESPONSE_REJECTED"),
        Turn(says="Quiet.", quiet=True),
        Turn(says="Only text.", text_only=True),
        Turn(hears="late words", says="Noon.", unordered=True),
        Turn(says="Given audio.", pcm=pcm),
    )
    gemini.options.interaction_status = True
    async with connect() as session:
        turns = []
        for _ in range(5):
            await session.send_realtime_input(text="go on")
            turns.append(await rest(session))
    empty, quiet, text, late, given = turns
    assert kinds(empty) == ["turn_complete"]
    end = contents(empty)[0]
    assert end.turn_complete_reason == types.TurnCompleteReason.RESPONSE_REJECTED
    assert end.interaction_status == types.InteractionStatus.IDLE
    assert set(sound(quiet)) == {0}
    assert ("".join(message.text or "" for message in text), sound(text)) == ("Only text.", b"")
    assert kinds(late)[-2:] == ["input_transcription", "turn_complete"]
    assert (sound(given), said(given)) == (pcm, "Given audio.")


async def test_two_parallel_calls_are_answered_and_the_turn_goes_on(gemini: GeminiServer) -> None:
    calls = [Call("get_time", {"place": "Rome"}), Call("get_time", {"place": "Oslo"}, id="mine")]
    gemini.script(Turn(says="One moment.", calls=calls, after="Noon in both.", unresumable=True))
    async with connect(session_resumption={}, **with_functions({"name": "get_time"})) as session:
        await session.send_realtime_input(text="What time is it in Rome and Oslo?")
        update = await until(session, lambda message: message.session_resumption_update)
        assert update.session_resumption_update is not None
        assert (update.session_resumption_update.resumable, update.session_resumption_update.new_handle) == (False, None)
        asked = (await one(session)).tool_call
        assert asked is not None
        assert asked.function_calls is not None
        first, second = asked.function_calls
        assert (first.name, first.args, second.id) == ("get_time", {"place": "Rome"}, "mine")
        unknown = types.FunctionResponse(id="of another connection", name="get_time", response={"time": "13:00"})
        await session.send_tool_response(function_responses=[unknown])
        await answer(session, second.id, "12:00")
        await answer(session, first.id, "12:00")
        messages = await rest(session)
        assert said(messages) == "Noon in both."
        assert kinds(messages)[-1] == "turn_complete"
        found = gemini.sessions[0]
        assert [given["id"] for given in found.answers] == ["mine", first.id]
        assert [given["id"] for given in found.ignored] == ["of another connection"]
        assert found.history[-3:-1] == [Line("function", '{"time": "12:00"}')] * 2
        await answer(session, first.id, "again")
        await gemini.until(lambda: len(found.ignored) == 2)


async def test_rounds_of_calls_follow_each_other(gemini: GeminiServer) -> None:
    gemini.script(Turn(calls=[Call("get_time")], after=Turn(says="And now", calls=[Call("get_time")], after="done.")))
    async with connect(**with_functions({"name": "get_time"})) as session:
        await session.send_realtime_input(text="go")
        for _ in range(2):
            asked = (await until(session, lambda message: message.tool_call)).tool_call
            assert asked is not None
            assert asked.function_calls is not None
            await answer(session, asked.function_calls[0].id, "12:00")
        assert said(await rest(session)) == "done."


@pytest.mark.parametrize(("scheduling", "follows"), [("WHEN_IDLE", "Noon."), ("INTERRUPT", "Noon."), ("SILENT", "All right.")])
async def test_a_function_that_does_not_block_is_answered_after_the_turn(gemini: GeminiServer, scheduling: str, follows: str) -> None:
    gemini.script(Turn(says="I will look.", calls=[Call("get_time")], after="Noon."))
    async with connect(session_resumption={}, **with_functions({"name": "get_time", "behavior": "NON_BLOCKING"})) as session:
        await session.send_realtime_input(text="What time is it?")
        first = await rest(session)
        assert kinds(first)[-3:] == ["tool_call", "generation_complete", "turn_complete"]
        (call,) = gemini.sessions[0].calls or [Call("")]
        found = gemini.sessions[0].model
        assert found.turns == 1
        asked = next(message.tool_call for message in first if message.tool_call)
        assert asked.function_calls is not None
        assert (asked.function_calls[0].id, gemini.sessions[0].handles) == (call.id, [])
        await answer(session, call.id, "11:59", will_continue=True, scheduling=scheduling)
        await answer(session, call.id, "12:00", scheduling=scheduling)
        await gemini.until(lambda: len(gemini.sessions[0].answers) == 2)
        if scheduling == "SILENT":
            await session.send_realtime_input(text="Thanks.")
        assert said(await rest(session)) == follows


def test_the_newest_model_blocks_only_where_asked() -> None:
    shared: Any = None
    wire: Any = None
    for model, blocks in (("gemini-3.8-live", False), (MODEL, True)):
        session = Session(shared, wire, 1, "", "", 0.0, setup={"model": f"models/{model}"})
        assert session.blocks("get_time") is blocks


async def test_speech_over_the_model_interrupts_it_without_generation_complete(gemini: GeminiServer) -> None:
    gemini.script(Turn(says="This is a long story.", stops_at_ms=320), Turn(hears="stop", says="All right."))
    async with connect() as session:
        await session.send_realtime_input(text="Tell me a story.")
        await gemini.until(lambda: gemini.sessions[0].model.stopped)
        await send(session, voice(100))
        messages = await rest(session)
        assert kinds(messages)[-2:] == ["interrupted", "turn_complete"]
        assert "generation_complete" not in kinds(messages)
        assert len(sound(messages)) == 320 * 48
        assert gemini.sessions[0].history[-1] == Line("model", "This is")
        await send(session, voice(100) + silence(600))
        assert heard(await rest(session)) == "stop"


async def test_a_turn_that_stopped_goes_on_when_told_and_when_nothing_may_interrupt(gemini: GeminiServer) -> None:
    gemini.script(Turn(says="This is a long story.", stops_at_ms=100))
    async with connect(realtime_input_config={"activity_handling": "NO_INTERRUPTION"}) as session:
        await session.send_realtime_input(text="Tell me a story.")
        found = await gemini.opened()
        await gemini.until(lambda: found.model.stopped)
        await send(session, voice(100))
        await gemini.until(lambda: bool(found.activity))
        found.model.go_on()
        assert said(await rest(session)) == "This is a long story."


@pytest.mark.parametrize("cancels", [True, False])
async def test_speech_takes_open_calls_back_only_if_asked(gemini: GeminiServer, cancels: bool) -> None:
    gemini.script(Turn(calls=[Call("get_time", id="a"), Call("get_time", id="b")], after="Noon.", cancels=cancels))
    async with connect(**with_functions({"name": "get_time"})) as session:
        await session.send_realtime_input(text="What time is it?")
        await until(session, lambda message: message.tool_call)
        await send(session, voice(100))
        found = gemini.sessions[0]
        await gemini.until(lambda: bool(found.activity))
        if cancels:
            cancellation = (await one(session)).tool_call_cancellation
            assert cancellation is not None
            assert cancellation.ids == ["a", "b"]
            assert kinds(await rest(session)) == ["interrupted", "turn_complete"]
        for id in ("a", "b"):
            await answer(session, id, "12:00")
        await gemini.until(lambda: len(found.answers) + len(found.ignored) == 2)
        assert len(found.ignored) == (2 if cancels else 0)
        if not cancels:
            assert said(await rest(session)) == "Noon."


async def test_while_audio_would_be_played_the_turn_is_not_over_and_can_be_interrupted(gemini: GeminiServer) -> None:
    gemini.options.playback = True
    gemini.script(Turn(says="A long story.", ms_per_char=2_000))
    async with connect() as session:
        await session.send_realtime_input(text="Tell me a story.")
        await until(session, lambda message: message.server_content and message.server_content.generation_complete)
        await send(session, voice(100))
        assert kinds(await rest(session)) == ["interrupted", "turn_complete"]


async def test_the_test_may_let_the_model_speak(gemini: GeminiServer) -> None:
    async with connect() as session:
        await gemini.turn(await gemini.opened(), Turn(says="Are you there?"))
        assert said(await rest(session)) == "Are you there?"


async def test_paced_audio_comes_whole(gemini: GeminiServer) -> None:
    gemini.options.pace = 100.0
    async with connect() as session:
        await session.send_realtime_input(text="hi")
        assert said(await rest(session)) == "All right."


@pytest.mark.parametrize("model", [MODEL, "gemini-3.8-live"])
async def test_most_models_take_content_at_any_time(gemini: GeminiServer, model: str) -> None:
    async with connect(model=model) as session:
        for _ in range(2):
            await session.send_client_content(turns=ASKS)
            await rest(session)
    assert len(gemini.sessions[0].contents) == 2


@pytest.mark.parametrize("declared", [False, True])
async def test_some_models_take_content_in_a_declared_history_only(gemini: GeminiServer, declared: bool) -> None:
    async with connect(model=HISTORY_ONLY, history_config=DECLARED if declared else None) as session:
        if declared:
            await session.send_client_content(turns=ASKS, turn_complete=True)
        await session.send_client_content(turns=ASKS)
        with pytest.raises(errors.APIError) as caught:
            await rest(session)
    assert caught.value.code == 1007
    assert len(gemini.sessions[0].contents) == declared


@pytest.mark.parametrize("model", [HISTORY_ONLY, "gemini-3.8-live"])
async def test_a_declared_history_is_answered_by_nothing_and_all_else_waits_for_its_end(gemini: GeminiServer, model: str) -> None:
    gemini.script(Turn(hears="Who am I?", says="You are Ann."))
    async with connect(model=model, history_config=DECLARED) as session:
        found = await gemini.opened()
        await send(session, voice(200) + silence(600))
        await session.send_client_content(turns=ASKS, turn_complete=False)
        await gemini.until(lambda: bool(found.contents))
        assert (found.awaits_history, found.audio_ms, found.order) == (True, 0, ["clientContent"])
        await session.send_client_content(turns=types.Content(role="model", parts=[types.Part(text="Hello Ann.")]), turn_complete=True)
        assert said(await rest(session)) == "You are Ann."
    assert (found.awaits_history, found.model.turns, len(found.declared)) == (False, 1, 2)
    assert [line.text for line in found.history] == ["hi", "Hello Ann.", "Who am I?", "You are Ann."]


async def test_a_model_that_heeds_no_declaration_answers_the_end_of_the_history(gemini: GeminiServer) -> None:
    async with connect(history_config=DECLARED) as session:
        await session.send_client_content(turns=ASKS, turn_complete=True)
        assert said(await rest(session)) == "All right."
    assert gemini.sessions[0].declared == []


@pytest.mark.parametrize(("ends_with", "known"), [("user", True), ("model", False)])
async def test_some_models_go_by_what_is_pending_only_where_it_ends_with_the_user(
    gemini: GeminiServer, ends_with: str, known: bool
) -> None:
    gemini.script(Turn(hears="Who am I?", says="You are Ann."))
    async with connect() as session:
        pending = types.Content(role=ends_with, parts=[types.Part(text="I am Ann.")])
        await session.send_client_content(turns=pending, turn_complete=False)
        await send(session, voice(200) + silence(600))
        await rest(session)
        found = gemini.sessions[0]
        assert ("I am Ann." in [line.text for line in found.history]) is known
        await session.send_realtime_input(text="hi")
        await rest(session)
        assert "I am Ann." in [line.text for line in found.history]


async def test_instructions_and_functions_can_be_replaced(gemini: GeminiServer) -> None:
    async with connect(system_instruction="First.") as session:
        tools: list[Any] = [
            types.Tool(function_declarations=[types.FunctionDeclaration(name="get_time", behavior=types.Behavior.NON_BLOCKING)])
        ]
        await session.send_context_update(system_instruction="Second.", tools=tools)
        found = await gemini.opened()
        await gemini.until(lambda: bool(found.updates))
        assert (found.instruction, found.blocks("get_time")) == ("Second.", False)


async def test_a_turn_whose_connection_is_cut_lets_go_of_whoever_waits_for_it(gemini: GeminiServer) -> None:
    async with connect():
        found = await gemini.opened()
        waiting = [asyncio.create_task(gemini.turn(found, Turn(says="A story.", stops_at_ms=100))) for _ in range(2)]
        await gemini.until(lambda: found.model.stopped)
        gemini.kill()
        async with asyncio.timeout(BOUND_S):
            await asyncio.gather(*waiting)
        assert found.model.turns == 0
