"""Provider messages that no journal can hold, or that must not be read aloud: the call continues, and could move to another worker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call, Turn, audio_content, content
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.voice.conftest import Page, Workers
from tests.voice.realtime_calls import asks, connected, said
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.providers.realtime.gemini import connection
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import fold

pytestmark = pytest.mark.timeout(120)
API_KEY: Final = "a-key-for-tests"
_CALL: Final = {"type": "response.output_item.done", "event_id": "e", "output_index": 0, "response_id": "r1"}
_ITEM: Final = {"type": "function_call", "id": "i1", "status": "completed", "call_id": "c1", "name": "current_time", "arguments": "{}"}
_WORDS: Final = {"type": "conversation.item.input_audio_transcription.delta", "event_id": "e", "content_index": 0, "delta": "Hello"}
ODD: Final[dict[str, dict[str, Any]]] = {
    "a call without a name": {**_CALL, "item": {**_ITEM, "name": None}},
    "a call without an id": {**_CALL, "item": {name: value for name, value in _ITEM.items() if name != "call_id"}},
    "words of no item": {**_WORDS, "item_id": None},
}


@pytest.fixture
async def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GeminiServer]:
    async with GeminiServer(tmp_path, Options()) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
        monkeypatch.setenv("GEMINI_API_KEY", API_KEY)
        yield server


@pytest.fixture
async def openai(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIRealtimeServer]:
    async with OpenAIRealtimeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


async def test_a_whole_number_beyond_64_bits_reaches_the_function_as_text(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(calls=[Call("calculate", {"expression": 2**70})], after="That is large."))
    async with workers.running():
        await connected(page)
        await asks(page, "How much?")
        called = await page.event(ev.ToolCalled)
        await page.ends()
    assert called.arguments == {"expression": str(2**70)}
    assert page.told(ev.ProviderLost) == []


async def test_a_close_reason_that_quotes_the_key_is_not_passed_on(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(says="Here I am."))
    async with workers.running():
        await connected(page)
        await google.close(1011, f"Consumer 'api_key:{API_KEY}' has been suspended.")
        lost = await page.event(ev.ProviderLost)
        await page.until(ev.SessionRestored)
        await asks(page, "Are you there?")
        await page.until(ev.AgentSaid)
        await page.ends()
    assert "1011" in lost.error.message
    assert said(page) == ["Here I am."]
    assert all(API_KEY.encode() not in msgspec.msgpack.encode(one.event) for one in await page.everything())


@pytest.mark.parametrize("odd", ODD)
async def test_an_event_with_a_field_of_another_type_never_comes_into_the_journal(
    workers: Workers, page: Page, openai: OpenAIRealtimeServer, odd: str
) -> None:
    async with workers.running():
        await connected(page, mode="openai")
        begun = {
            "type": "response.created",
            "event_id": "e0",
            "response": {"id": "r1", "object": "realtime.response", "status": "in_progress"},
        }
        await openai.sessions[0].raw(json.dumps(begun))
        await openai.sessions[0].raw(json.dumps(ODD[odd]))
        await page.until(ev.ProviderLost)
        await page.until(ev.ProviderConnected, 2)
        await page.ends()
        log = await page.everything()
    assert not any(isinstance(one.event, events.Unreadable) for one in log)
    assert fold(step.step, step.initial(page.sid), inputs.Input, "voice", log).state.phase == "ended"


@pytest.mark.parametrize("text", ['"' * 40_000, "\\" * 40_000, "plain " * 8_000, "\x01" * 40_000, "ä" * 40_000])
def test_a_long_result_is_cut_by_what_it_takes_on_the_wire(text: str) -> None:
    cut = connection._cut(text)
    assert text.startswith(cut)
    assert connection.RESULT_LIMIT - 12 <= len(msgspec.json.encode(cut)) <= connection.RESULT_LIMIT


async def test_pieces_that_end_in_half_a_sample_are_put_together(workers: Workers, page: Page, google: GeminiServer) -> None:
    spoken = bytes(range(1, 241)) * 40
    async with workers.running():
        await connected(page)
        for at in range(0, len(spoken), 961):
            await google.sessions[0].send(audio_content(spoken[at : at + 961]))
        await google.sessions[0].send(content(generationComplete=True))
        await google.sessions[0].send(content(turnComplete=True))
        await page.until(ev.TurnCompleted)
        await page.ends()
    heard = [pcm for prefix, pcm in page.frames if prefix.kind == frames.PCM16]
    assert b"".join(heard) == spoken
    assert all(len(pcm) % 2 == 0 for pcm in heard)
