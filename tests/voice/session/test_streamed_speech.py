"""Speech that is sent to a streaming recogniser while it is said, against a strict stand-in on its wire."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import BOUND_S, eventually
from tests.fakes.assemblyai.server import KEY, AssemblyAIServer, Fault
from tests.fakes.elevenlabs.server import KEY as VOICE_KEY
from tests.fakes.elevenlabs.server import ElevenLabsServer
from tests.voice.conftest import Page, Workers
from tests.voice.model_server import ModelServer
from tests.voice.replaying import encoded, replay, stored
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.core.outputs import AUDIO_END
from voxbridge.services.voice.providers.streaming.assemblyai import PROVIDER, AssemblyAI, Recogniser
from voxbridge.services.voice.session import streamed_speech
from voxbridge.services.voice.session.streamed_speech import Listener, StreamedSpeech
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import voice as ev
from voxbridge.shared.language import endpoints

LISTENER = Listener(provider=PROVIDER, language="en", vocabulary=("Voxbridge",))


class Heard:
    """A microphone whose audio the test adds."""

    def __init__(self) -> None:
        self._audio = bytearray()

    @property
    def end_ms(self) -> int:
        return len(self._audio) // 32

    def add(self, pcm: bytes) -> None:
        self._audio += pcm

    def audio(self, from_ms: int, to_ms: int) -> bytes:
        return bytes(self._audio[from_ms * 32 : len(self._audio) if to_ms == AUDIO_END else to_ms * 32])


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AssemblyAIServer]:
    async with AssemblyAIServer() as found:
        monkeypatch.setenv("ASSEMBLYAI_BASE_URL", found.url)
        monkeypatch.setenv("ASSEMBLYAI_API_KEY", KEY)
        yield found


@pytest.fixture
def microphone() -> Heard:
    return Heard()


@pytest.fixture
async def speaking(server: AssemblyAIServer, microphone: Heard) -> AsyncIterator[StreamedSpeech]:
    recogniser = AssemblyAI(endpoints.environment_keys)

    async def dial(listener: Listener, changed: Callable[[], None]) -> Recogniser:
        return await recogniser.open(listener.model, listener.language, listener.vocabulary, changed)

    found = StreamedSpeech(microphone, dial, "en")  # type: ignore[arg-type]  # it has what is used of a microphone
    yield found
    found.stop()
    await found.closed()


def says(speaking: StreamedSpeech, microphone: Heard, pcm: bytes) -> None:
    """Add audio in frames of 20 ms, as a session does."""
    for at in range(0, len(pcm), 640):
        microphone.add(pcm[at : at + 640])
        speaking.heard()


async def test_the_words_are_known_while_they_are_said_and_whole_at_the_end(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech
) -> None:
    server.script("what time is it in rome")
    says(speaking, microphone, silence(500))
    speaking.begin(LISTENER, 300)
    says(speaking, microphone, speech(600))

    async def known() -> bool:
        return (await speaking.transcript(LISTENER, 300, AUDIO_END)).text == "what"

    await eventually(known)
    says(speaking, microphone, speech(900) + silence(300))
    found = await speaking.transcript(LISTENER, 300, 2_200)
    assert (found.text, found.language) == ("What time is it in rome.", "en")
    assert found.confidence == pytest.approx(0.9)
    (query,) = server.queries
    assert query["speech_model"] == "universal-streaming-english"
    assert query["keyterms_prompt"] == '["Voxbridge"]'
    assert server.heard_ms[0] in range(1_850, 1_951), "all of it, once"
    assert server.refused == []


async def test_who_goes_on_after_a_pause_is_heard_as_one(server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech) -> None:
    server.script("set a timer", "for five minutes")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_200)).text == "Set a timer."
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 2_600)).text == "Set a timer. For five minutes."
    assert len(server.queries) == 1


async def test_the_next_utterance_has_none_of_the_words_before(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech
) -> None:
    server.script("good morning", "thank you")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_200)).text == "Good morning."
    speaking.over()
    says(speaking, microphone, silence(3_000))
    speaking.begin(LISTENER, 4_400)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 4_400, 5_600)).text == "Thank you."
    assert server.heard_ms == [1_200 + 1_200], "what is said to nobody is not sent"


async def test_a_lost_connection_is_opened_again_and_hears_all_of_it(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech
) -> None:
    server.script("what time is it")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(500))
    await eventually(lambda: server.heard_ms and server.heard_ms[0] >= 450)
    server.drop()
    await eventually(lambda: server.ended == ["closed"])
    says(speaking, microphone, speech(700) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_400)).text == "What time is it."
    assert server.heard_ms[1] == 1_400


async def test_a_recogniser_that_fails_at_the_end_is_an_error_and_answers_when_asked_again(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech
) -> None:
    server.script("what time is it")
    server.faults.append(Fault.CLOSE)
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_200) + silence(400))
    with pytest.raises(VoxbridgeError, match="The transcription model failed: Internal server error") as caught:
        await speaking.transcript(LISTENER, 0, 1_400)
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_UNAVAILABLE, True)
    assert (await speaking.transcript(LISTENER, 0, 1_400)).text == "What time is it."


async def test_a_recogniser_that_does_not_end_its_turn_is_taken_at_its_word(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_speech, "SETTLE_S", 0.05)
    server.script("what time is it")
    server.faults.append(Fault.SILENCE)
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_200) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_400)).text == "what time is"


async def test_sound_without_a_word_is_no_words(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_speech, "QUIET_S", 0.05)
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(600) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 800)).text == ""
    assert server.refused == []


async def test_after_half_a_minute_of_silence_the_connection_is_ended_in_order(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_speech, "LINGER_S", 0.05)
    server.script("good morning", "thank you")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_200)).text == "Good morning."
    speaking.over()
    await eventually(lambda: server.ended == ["terminated"])
    speaking.begin(LISTENER, 1_400)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 1_400, 2_600)).text == "Thank you."


async def test_who_speaks_while_the_connection_is_closed_has_another_one(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_speech, "LINGER_S", 0.05)
    close, closing, closed = Recogniser.close, asyncio.Event(), asyncio.Event()

    async def slowly(self: Recogniser) -> None:
        closing.set()
        await closed.wait()
        await close(self)

    monkeypatch.setattr(Recogniser, "close", slowly)
    server.script("good morning", "thank you")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 0, 1_200)).text == "Good morning."
    speaking.over()
    await asyncio.wait_for(closing.wait(), BOUND_S)
    speaking.begin(LISTENER, 1_400)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(LISTENER, 1_400, 2_600)).text == "Thank you."
    closed.set()


async def test_the_shortest_and_the_longest_piece_are_those_that_the_vendor_takes(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech
) -> None:
    server.script("yes")
    says(speaking, microphone, speech(10_000))  # said before there was a connection: sent in pieces of a second
    says(speaking, microphone, silence(20))
    await speaking.transcript(LISTENER, 0, 10_010)
    assert server.refused == []
    assert server.heard_ms == [10_050], "the last 10 ms are filled up to the shortest piece"


async def test_another_agent_has_a_connection_of_its_own(server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech) -> None:
    server.script("guten morgen")
    speaking.begin(LISTENER, 0)
    says(speaking, microphone, speech(200))
    await eventually(lambda: server.heard_ms[:1] > [0])
    german = Listener(provider=PROVIDER, language="de")
    speaking.begin(german, 200)
    says(speaking, microphone, speech(1_000) + silence(400))
    assert (await speaking.transcript(german, 200, 1_400)).text == "Guten morgen."
    assert server.queries[-1]["speech_model"] == "universal-streaming-multilingual"
    await eventually(lambda: server.ended[0] == "terminated")


async def test_a_key_that_is_refused_is_said_and_never_shown(
    server: AssemblyAIServer, microphone: Heard, speaking: StreamedSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSEMBLYAI_API_KEY", "aai-another-key")
    says(speaking, microphone, speech(600))
    with pytest.raises(VoxbridgeError, match="Invalid API key") as caught:
        await speaking.transcript(LISTENER, 0, 600)
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_REFUSED, False)
    assert "aai-another-key" not in str(caught.value)


def _agents(folder: Path, voice: str = "elevenlabs") -> Path:
    (folder / "clerk.yaml").write_text(f"stt: assemblyai\ntts: {voice}\nprompt: Be kind.\n", encoding="utf-8")
    return folder


async def test_a_call_is_heard_and_answered_and_folds_to_the_live_state(
    workers: Workers, page: Page, model_server: ModelServer, server: AssemblyAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script("what time is it")
    model_server.script("llm", ["It is noon."])
    async with ElevenLabsServer() as voice:
        monkeypatch.setenv("ELEVENLABS_BASE_URL", voice.url)
        monkeypatch.setenv("ELEVENLABS_API_KEY", VOICE_KEY)
        async with workers.running(agents_dir=_agents(tmp_path)) as worker:
            await page.open(agent="clerk", filler=False)
            await page.until(ev.SessionStarted)
            session = worker._sessions[page.sid]
            await page.speaks(silence(500) + speech(1_500) + silence(900))
            await page.until(ev.TurnCompleted)
            await page.ends()
            await page.when(lambda: "ended" in page.states)
            live: Any = session.state
            log = await page.everything()
        assert [one.text for one in page.told(ev.UserSaid)] == ["What time is it."]
        assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]
        assert [text for text, _ in voice.said] == ["It is noon. "]
    assert model_server.asked("stt") == []
    assert server.refused == voice.refused == []
    again, appended = replay(page.sid, log)
    assert encoded(again) == encoded(live)
    assert appended == stored(log)
    await eventually(lambda: server.ended == ["terminated"])


@pytest.mark.timeout(120)
async def test_a_worker_that_is_killed_in_a_sentence_is_followed_by_one_that_hears_it_from_its_beginning(
    workers: Workers, page: Page, model_server: ModelServer, server: AssemblyAIServer, tmp_path: Path
) -> None:
    server.script("what time is it")
    model_server.script("llm", ["It is noon."])
    folder = Workers(dataclasses.replace(workers.config, agents_dir=_agents(tmp_path, voice="local")))
    async with folder.process() as process:
        await page.open(agent="clerk", filler=False)
        await page.until(ev.SessionStarted)
        await page.speaks(silence(500) + speech(900))
        await page.until(ev.SpeechStarted)
        await eventually(lambda: server.heard_ms and server.heard_ms[0] >= 900)
        process.kill()
        await process.wait()
        async with folder.running():
            await page.until(ev.SessionRestored)
            await page.speaks(speech(600) + silence(900))
            await page.until(ev.TurnCompleted)
            await page.ends()
    assert [one.text for one in page.told(ev.UserSaid)] == ["What time is it."]
    assert server.heard_ms[-1] >= 1_700, "all of it, once more"
    assert model_server.asked("stt") == []
