"""Calls on Gemini Live, through the real voice service, NATS and Valkey, and the vendor's SDK against the stand-in for Google."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import MakePage, Page, Workers
from tests.voice.sounds import silence, speech
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import VoiceJournal
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(120)
UTTERANCE = silence(300) + speech(1_200) + silence(900)


async def test_a_typed_question_is_answered_in_the_models_voice(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(says="It is noon."))
    async with workers.running():
        await page.open("gemini")
        started = await page.event(ev.SessionStarted)
        await page.until(ev.ProviderConnected)
        await page.says(gateway.TextReceived(text="What time is it?"))
        said = await page.event(ev.AgentSaid)
        done = await page.event(ev.TurnCompleted)
        await page.ends()
    assert (said.text, said.turn, said.interrupted) == ("It is noon.", 1, False)
    assert done.reason == "completed"
    assert started.voice == "Puck"
    assert page.sent_ms(said.generation) >= 100


async def test_speech_is_heard_transcribed_and_answered(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(hears=("What ", "time is it?"), says="It is noon."))
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [one.text for one in page.told(ev.UserSaid)] == ["What time is it?"]
    assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]
    order = [type(one.event) for one in page.heard if isinstance(one.event, ev.UserSaid | ev.AgentSaid)]
    assert order == [ev.UserSaid, ev.AgentSaid]


async def test_captions_of_a_long_reply_cost_the_bus_little_more_than_its_words(workers: Workers, page: Page, google: GeminiServer) -> None:
    story = " ".join(f"word{number}" for number in range(300))
    google.script(Turn(says=story, ms_per_char=1))
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        await page.says(gateway.TextReceived(text="Tell me a story."))
        await page.when(lambda: page.partials and page.partials[-1].text == story)
        await page.ends()
    assert len(page.partials) == len(page.pieces) == 300
    assert sum(len(msgspec.msgpack.encode(piece)) for piece in page.pieces) < 300 * 150


async def test_who_comes_in_the_middle_of_a_reply_has_its_caption_with_the_next_word(
    workers: Workers, page: Page, google: GeminiServer, store: Store
) -> None:
    story = " ".join(f"word{number}" for number in range(100))
    google.script(Turn(says=story, ms_per_char=1, stops_at_ms=300))
    await store.gateway_lives("g")
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        await page.says(gateway.TextReceived(text="Tell me a story."))
        await page.when(lambda: google.sessions[0].model.stopped and page.sent_ms(1) >= 300)
        came = await page.says(gateway.ClientConnected(gateway="g", connection="c"))
        await page.when(lambda: any(one.seq == came for journal in page.told(VoiceJournal) for one in journal.inputs))
        before = len(page.pieces)
        google.sessions[0].model.go_on()
        await page.when(lambda: page.partials[-1].text == story)
        await page.ends()
    later = [piece.offset for piece in page.pieces[before:]]
    assert later[0] == 0
    assert all(later[1:5])
    assert page.pieces[before].text == page.partials[before].text


async def test_a_function_is_called_and_its_result_reaches_the_model(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(calls=(Call("get_time", {"place": "Oslo"}),), after="In Oslo it is noon."))
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        await page.says(gateway.TextReceived(text="What time is it in Oslo?"))
        called = await page.event(ev.ToolCalled)
        await page.executes(called, {"time": "12:00"})
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [one.how for one in page.told(ev.ToolDelivered)] == ["response"]
    assert [one.text for one in page.told(ev.AgentSaid)] == ["In Oslo it is noon."]


async def test_the_installations_own_detector_tells_the_model_when_the_user_speaks(
    workers: Workers, page: Page, google: GeminiServer, tmp_path: Path
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "host.yaml").write_text("model: gemini\nprompt: You greet.\nmanual_activity: true\n")
    google.script(Turn(hears="Hello there.", says="Hello."))
    async with workers.running(agents_dir=tmp_path / "agents"):
        await page.open(agent="host")
        await page.until(ev.ProviderConnected)
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert [kind for kind, _ in google.sessions[0].activity] == ["start", "end"]
    assert [one.text for one in page.told(ev.UserSaid)] == ["Hello there."]
    assert [one.source for one in page.told(ev.SpeechStarted)] == ["vad"]


async def test_a_microphone_that_is_released_ends_the_stream(workers: Workers, page: Page, google: GeminiServer) -> None:
    google.script(Turn(hears="Hello there.", says="Hello."))
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        await page.speaks(UTTERANCE[: -len(silence(800))])
        await page.says(gateway.AudioEnded())
        await google.until(lambda: any(kind == "stream_end" for kind, _ in google.sessions[0].activity))
        await page.ends()


async def test_a_key_that_is_changed_counts_for_the_next_session(
    workers: Workers, page: Page, pages: MakePage, google: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers.running():
        await page.open("gemini")
        await page.until(ev.ProviderConnected)
        monkeypatch.setenv("GEMINI_API_KEY", "another-key-for-tests")
        other = pages()
        await other.open("gemini")
        await other.until(ev.ProviderConnected)
        await page.ends()
        await other.ends()
    assert [session.key for session in google.sessions] == ["a-key-for-tests", "another-key-for-tests"]
