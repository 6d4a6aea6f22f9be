"""Resumption and faults of the fake Gemini Live, seen through the google-genai SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from websockets.exceptions import InvalidHandshake, InvalidStatus

from tests.eventually import BOUND_S
from tests.fakes.gemini.client import MODEL, connect, handle_of, kinds, one, refused, rest, said
from tests.fakes.gemini.server import GeminiServer, Line, Refusal, Session, Turn


async def test_close_codes_can_be_set(gemini: GeminiServer) -> None:
    gemini.options.keys = set()
    gemini.options.close_codes["key"] = (1008, "no")
    assert (await refused(connect())).code == 1008


async def test_a_resumed_connection_knows_the_conversation(gemini: GeminiServer) -> None:
    gemini.script(Turn(says="Hello, Ada."), Turn(says="Ada."))
    async with connect(session_resumption={}, system_instruction="First.") as session:
        await session.send_realtime_input(text="I am Ada.")
        await rest(session)
        update = (await one(session)).session_resumption_update
        assert update is not None
        assert update.resumable
        handle = update.new_handle
        assert handle == gemini.sessions[0].handles[-1]
    assert gemini.conversation(handle) == [Line("user", "I am Ada."), Line("model", "Hello, Ada.")]
    gemini.options.sticky_instruction = {"gemini-3.8-live"}
    async with connect(session_resumption={"handle": handle}, system_instruction="Second.") as session:
        await session.send_realtime_input(text="Who am I?")
        await rest(session)
        await one(session)
    resumed = gemini.sessions[1]
    assert (resumed.resumed, resumed.instruction) == (True, "Second.")
    assert [line.text for line in gemini.conversation(resumed.handles[-1])] == ["I am Ada.", "Hello, Ada.", "Who am I?", "Ada."]
    assert len(gemini.conversation(handle)) == 2, "an older handle stands for less"


async def test_a_model_may_stick_to_the_instruction_it_began_with(gemini: GeminiServer) -> None:
    gemini.options.sticky_instruction = {MODEL}
    gemini.options.handle_at_setup = True
    handle: str | None = None
    for instruction in ("First.", "Second.", "Third."):
        async with connect(session_resumption={"handle": handle}, system_instruction=instruction) as session:
            update = (await one(session)).session_resumption_update
            assert update is not None
            handle = update.new_handle
    assert [found.instruction for found in gemini.sessions] == ["First.", "First.", "First."]


async def test_without_resumption_in_the_setup_there_are_no_handles(gemini: GeminiServer) -> None:
    async with connect() as session:
        for _ in range(2):
            await session.send_realtime_input(text="hi")
            assert "session_resumption_update" not in kinds(await rest(session))
    assert gemini.sessions[0].handles == []


@pytest.mark.parametrize(
    ("fault", "code"),
    [("unknown", 1008), ("forgotten", 1008), ("all refused", 1008), ("expired", 1008), ("other model", 1007), ("set code", 1011)],
)
async def test_a_handle_is_refused(gemini: GeminiServer, fault: str, code: int) -> None:
    handle = await handle_of(gemini)
    model = MODEL
    match fault:
        case "unknown":
            handle = "made up"
        case "forgotten":
            gemini.handles.forget(handle)
        case "all refused":
            gemini.handles.all_refused = True
        case "expired":
            gemini.handles.expire()
        case "other model":
            model = "gemini-3.8-live"
        case _:
            gemini.handles.expire(handle)
            gemini.options.close_codes["expired_handle"] = (1011, "Internal error encountered.")
    assert (await refused(connect(model=model, session_resumption={"handle": handle}))).code == code
    async with connect(model=model, session_resumption={}) as session:
        assert session.setup_complete is not None


async def test_a_poisoned_conversation_ends_with_its_first_input_each_time(gemini: GeminiServer) -> None:
    handle = await handle_of(gemini)
    gemini.handles.poison(handle)
    for _ in range(2):
        error = await refused(
            connect(session_resumption={"handle": handle}), lambda session: session.send_realtime_input(audio_stream_end=True)
        )
        assert error.code == 1007
        assert gemini.sessions[-1].resumed


async def test_some_models_may_refuse_to_begin_a_resumable_conversation(gemini: GeminiServer) -> None:
    gemini.options.reject_empty_resumption = {MODEL}
    assert (await refused(connect(session_resumption={}))).code == 1008
    async with connect() as session:
        assert session.setup_complete is not None


async def test_a_handle_may_be_refused_while_its_connection_is_open(gemini: GeminiServer) -> None:
    gemini.options.reject_resume_while_open = True
    gemini.options.handle_at_setup = True
    async with connect(session_resumption={}) as session:
        await one(session)
        again: dict[str, Any] = {"session_resumption": {"handle": gemini.sessions[0].handles[0]}}
        assert (await refused(connect(**again))).code == 1011
    async with connect(**again):
        assert (await gemini.opened(2)).resumed


async def test_go_away_comes_as_a_duration_and_then_nothing(gemini: GeminiServer) -> None:
    async with connect() as session:
        await gemini.opened()
        await gemini.go_away("9.5s")
        warning = (await one(session)).go_away
        assert warning is not None
        assert warning.time_left == "9.5s"
        await session.send_realtime_input(text="hi")
        assert said(await rest(session)) == "All right."
        await gemini.go_away("1s", then_silent=True)
        assert (await one(session)).go_away is not None
        await session.send_realtime_input(text="hi")
        found = gemini.sessions[0]
        await gemini.until(lambda: found.model.turns == 2)
        await gemini.close(1011, "Deadline expired before operation could complete.")
        with pytest.raises(errors.APIError, match="Deadline expired") as caught:
            await rest(session)
        assert (caught.value.code, found.close_code) == (1011, 1011)


async def test_a_killed_connection_ends_in_the_middle_of_a_frame(gemini: GeminiServer) -> None:
    async with connect() as session:
        await gemini.opened()
        gemini.kill()
        with pytest.raises(errors.APIError) as caught:
            await rest(session)
        assert caught.value.code == 1006
    await gemini.until(lambda: gemini.sessions[0].closed_at is not None)


async def test_half_a_message_is_never_completed(gemini: GeminiServer) -> None:
    async with connect() as session:
        found = await gemini.opened()
        gemini.half_a_message()
        await session.send_realtime_input(text="hi")
        await gemini.until(lambda: found.model.turns == 1)
        gemini.kill()
        with pytest.raises(errors.APIError):
            await rest(session)


async def test_a_message_that_is_no_json_reaches_the_client(gemini: GeminiServer) -> None:
    async with connect() as session:
        await gemini.opened()
        await gemini.malformed()
        with pytest.raises(ValueError, match="Failed to parse"):
            await rest(session)


@pytest.mark.parametrize("status", [429, 503])
async def test_connects_are_refused_as_often_as_asked(gemini: GeminiServer, status: int) -> None:
    gemini.refuse(Refusal(status=status), Refusal(drop=True), Refusal(code=1011, reason="You exceeded your current quota."))
    with pytest.raises(InvalidStatus) as caught:
        async with connect():
            pass
    assert caught.value.response.status_code == status
    with pytest.raises((OSError, EOFError, InvalidHandshake)):
        async with connect():
            pass
    assert "exceeded your current quota" in str(await refused(connect()))
    async with connect() as session:
        assert session.setup_complete is not None
    assert (gemini.attempts, len(gemini.sessions)) == (4, 2)


async def test_a_setup_may_never_be_answered(gemini: GeminiServer) -> None:
    gemini.refuse(Refusal())

    async def opening() -> None:
        async with connect():
            pass

    waiting = asyncio.create_task(opening())
    await gemini.until(lambda: bool(gemini.sessions and gemini.sessions[0].setup))
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await gemini.until(lambda: gemini.sessions[0].closed_at is not None)


async def test_pongs_can_be_late(gemini: GeminiServer) -> None:
    gemini.options.pong_delay_s = 30.0
    async with connect() as session:
        pong = asyncio.ensure_future(await session._ws.ping())
        await session.send_realtime_input(text="hi")
        await rest(session)
        assert not pong.done()
        gemini.release_pongs()
        async with asyncio.timeout(BOUND_S):
            await pong


async def test_a_service_that_was_gone_is_back_on_its_port_with_what_it_remembers(gemini: GeminiServer) -> None:
    handle = await handle_of(gemini)
    url = gemini.url
    await gemini.stop()
    with pytest.raises(OSError, match=r"Connect|connect"):
        async with connect():
            pass
    await gemini.start()
    assert gemini.url == url
    async with connect(session_resumption={"handle": handle}):
        assert (await gemini.opened(2)).resumed


async def test_a_fault_of_the_fake_itself_is_not_kept_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Session) -> Turn | None:
        raise RuntimeError("a test's own mistake")

    gemini = GeminiServer(tmp_path)
    gemini.reply = broken
    await gemini.start()
    monkeypatch.setenv("SSL_CERT_FILE", str(gemini.ca_file))
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=gemini.url, api_version="v1beta"))
    error = await refused(client.aio.live.connect(model=MODEL), lambda session: session.send_realtime_input(text="hi"))
    assert error.code == 1006
    with pytest.raises(RuntimeError, match="own mistake"):
        await gemini.__aexit__()
