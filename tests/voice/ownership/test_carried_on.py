"""A worker is killed in every state of a call: the call continues, and no final event is lost or duplicated."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tests.eventually import BOUND_S
from tests.voice.conftest import BUSY_S, Page, Workers, at_rest, becomes
from tests.voice.model_server import Fault, ModelServer, call
from tests.voice.replaying import causes_come_first, encoded, replay, stored
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.core import inputs, step
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import fold
from voxbridge.shared.store import store as store_module
from voxbridge.shared.store.store import LEASE_MS, Store

pytestmark = pytest.mark.timeout(240)
UTTERANCE = silence(500) + speech(1_500) + silence(600)


async def whole(page: Page) -> None:
    """Check the log of a session that was taken over: numbers without a gap, causes before events, and a replay with the same result."""
    log = await page.everything()
    numbers = [int(one.id.rpartition(".")[2]) for one in log if one.writer == "voice"]
    assert numbers == list(range(len(numbers)))
    assert causes_come_first(log)
    assert replay(page.sid, log)[1] == stored(log)
    folded = fold(step.step, step.initial(page.sid), inputs.Input, "voice", log)
    assert folded.missing == ()
    assert encoded(folded.state) == encoded(replay(page.sid, log)[0])
    turns = [one.number for one in page.told(ev.TurnCompleted)]
    assert turns == sorted(set(turns)), "a turn is completed once"


async def test_a_call_that_listens_goes_on(workers: Workers, page: Page) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running() as other:
            process.send_signal(signal.SIGKILL)
            begun = time.monotonic()
            restored = (await page.until(ev.SessionRestored)).event
            assert time.monotonic() - begun < BUSY_S
            assert isinstance(restored, ev.SessionRestored)
            assert (restored.how, restored.lost) == ("reseeded", ())
            assert restored.gap_ms < BUSY_S * 1_000
            assert other.stats()["sessions"] == 1
            await page.says(gateway.TextReceived(text="Still there?"))
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert [one.term for one in page.told(ev.SessionOwned)] == [1, 2]


async def test_what_was_said_over_a_kill_is_understood_whole(workers: Workers, page: Page, model_server: ModelServer) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running():  # before any speech, which the bus keeps for ten seconds
            await page.speaks(silence(500) + speech(1_500))
            started = (await page.until(ev.SpeechStarted)).event
            process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(process.wait(), BOUND_S)
            await page.speaks(speech(1_500) + silence(600))
            await page.until(ev.SessionRestored)
            ended = (await page.until(ev.SpeechEnded)).event
            said = (await page.until(ev.UserSaid)).event
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert isinstance(started, ev.SpeechStarted)
    assert isinstance(ended, ev.SpeechEnded)
    assert isinstance(said, ev.UserSaid)
    assert page.told(ev.SpeechStarted) == [started], "it began once"
    assert 3_300 <= ended.audio_ms <= 3_700, "3.5 s of sound were sent, half a second of it silence"
    assert said.audio_from_ms == started.audio_ms
    assert model_server.heard[-1] > 3_000, "all of it was transcribed"


async def test_a_long_utterance_that_is_under_way_at_a_kill_is_understood_from_its_first_word(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running():
            await page.speaks(silence(500))
            await page.talks(speech(6_000))
            process.send_signal(signal.SIGKILL)
            await page.until(ev.SessionRestored)
            await page.speaks(silence(600))
            said = (await page.until(ev.UserSaid)).event
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    (restored,) = page.told(ev.SessionRestored)
    assert restored.lost == ()
    (started,) = page.told(ev.SpeechStarted)
    assert isinstance(said, ev.UserSaid)
    assert said.audio_from_ms == started.audio_ms < 700, "it began once, and where it did"
    assert model_server.heard[-1] > 5_500, "all six seconds were transcribed"


async def test_what_was_said_before_a_kill_and_not_understood_yet_is_there_to_be_transcribed(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("stt", [Fault.HANG], ["What time is it?"])
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running():
            await page.speaks(UTTERANCE)
            await page.until(ev.SpeechEnded)
            await model_server.until_asked("stt")
            process.send_signal(signal.SIGKILL)
            said = (await page.until(ev.UserSaid)).event
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert isinstance(said, ev.UserSaid)
    assert said.text == "What time is it?"
    first, second = model_server.heard
    assert second == first > 1_500, "the same sound was transcribed"


async def test_a_question_in_the_gap_is_answered(workers: Workers, page: Page) -> None:
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        await page.speaks(silence(1_000))
        process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(process.wait(), BOUND_S)
        await page.speaks(UTTERANCE)
        async with workers.running():
            said = (await page.until(ev.UserSaid)).event
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert isinstance(said, ev.UserSaid)
    assert 1_300 <= (said.audio_from_ms or 0) <= 1_700, "positions in the log stay true"


async def test_an_answer_that_is_being_thought_of_comes(workers: Workers, page: Page, model_server: ModelServer) -> None:
    model_server.script("llm", [Fault.HANG], ["It is noon."])
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await model_server.until_asked("llm")
        async with workers.running():
            process.send_signal(signal.SIGKILL)
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]
    first, second = model_server.asked("llm")
    assert first["messages"] == second["messages"]


async def test_a_call_of_a_function_waits_for_its_result(workers: Workers, page: Page, store: Store, model_server: ModelServer) -> None:
    await store.publish_functions([Function(name="current_time", description="The time.", parameters={"type": "object"}, timeout_s=30)])
    model_server.script("llm", call("current_time", "{}"), ["It is noon."])
    async with workers.process() as process:
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        called = (await page.until(ev.ToolCalled)).event
        assert isinstance(called, ev.ToolCalled)
        process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(process.wait(), BOUND_S)
        await page.executes(called, {"time": "12:00"})
        async with workers.running():
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert len(page.told(ev.ToolCalled)) == 1
    assert [one.how for one in page.told(ev.ToolDelivered)] == ["response"]
    assert [one.text for one in page.told(ev.AgentSaid)] == ["It is noon."]


async def test_a_reply_goes_on_with_the_sentence_that_was_last_heard_in_part(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("llm", ["It is noon. ", "The sun is high. ", "Enjoy your lunch."])
    model_server.script("tts", [1_000], [6_000], [500])
    async with workers.process() as process:
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await page.when(lambda: page.sent_ms(1) > 3_000)
        async with workers.running():
            process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(process.wait(), BOUND_S)
            begun = time.monotonic()
            await page.says(gateway.PlaybackReported(generation=1, played_ms=2_900, state="playing"))
            await page.when(lambda: page.flushed(1))
            await page.says(gateway.PlaybackReported(generation=1, played_ms=2_950, state="flushed"))
            await page.when(lambda: page.sent_ms(2) > 0)
            assert time.monotonic() - begun < BUSY_S
            await page.when(lambda: page.ended(2))
            await page.says(gateway.PlaybackReported(generation=2, played_ms=page.sent_ms(2), state="finished"))
            await page.until(ev.TurnCompleted, reason="completed")
            await page.says(gateway.TextReceived(text="Thanks."))
            await page.until(ev.UserSaid, 2)
            await model_server.until_asked("llm", 2)
            await page.ends()
            await whole(page)
    first, second = page.told(ev.AgentSaid)[:2]
    assert first.interrupted
    assert first.text.startswith("It is noon. The")
    assert first.unheard.endswith("Enjoy your lunch.")
    assert (second.text, second.interrupted, second.turn, second.generation) == ("The sun is high. Enjoy your lunch.", False, 1, 2)
    assert [one.by for one in page.told(ev.GenerationCancelled)][:1] == ["takeover"]
    sequences = [prefix.sequence for prefix, _ in page.frames]
    assert sequences == list(range(len(sequences)))
    said = [message["content"] for message in model_server.asked("llm")[-1]["messages"] if message["role"] == "assistant"]
    assert said == ["It is noon. The sun is high. Enjoy your lunch."]


async def test_what_a_lost_client_had_not_heard_waits_over_the_death_of_its_worker(
    workers: Workers, page: Page, model_server: ModelServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "GATEWAY_MS", 600_000)
    await store.gateway_lives("g")
    model_server.script("llm", ["It is noon. ", "Enjoy your lunch."])
    model_server.script("tts", [4_000], [500])
    async with workers.process() as process:
        await page.open(plays=False)
        await page.says(gateway.ClientConnected(gateway="g", connection="c"))
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await page.when(lambda: page.sent_ms(1) > 500)
        await page.says(gateway.ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=1))
        await page.until(ev.GenerationCancelled, by="disconnect")
        async with workers.running():
            process.send_signal(signal.SIGKILL)
            await page.until(ev.SessionRestored)
            assert page.sent_ms(2) == 0
            await page.says(gateway.ClientConnected(gateway="g", connection="d", resumed=True, last_seq=1))
            await page.when(lambda: page.ended(2))
            await page.says(gateway.PlaybackReported(generation=2, played_ms=page.sent_ms(2), state="finished"))
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
    assert page.told(ev.AgentSaid)[-1].text == "It is noon. Enjoy your lunch."


async def test_a_worker_that_is_terminated_in_the_middle_of_a_sentence_is_followed_within_the_sentence(
    workers: Workers, page: Page, model_server: ModelServer
) -> None:
    model_server.script("llm", ["It is noon. ", "Enjoy your lunch."])
    model_server.script("tts", [8_000], [500], [8_000], [500])
    async with workers.process() as process:
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await page.when(lambda: page.sent_ms(1) > 500)
        async with workers.running():
            process.send_signal(signal.SIGTERM)
            await page.until(ev.SessionReleased)
            released = time.monotonic()
            await page.when(lambda: page.flushed(1))
            await page.says(gateway.PlaybackReported(generation=1, played_ms=2_500, state="flushed"))
            await page.when(lambda: page.sent_ms(2) > 0)
            assert time.monotonic() - released < BUSY_S
            assert await asyncio.wait_for(process.wait(), BOUND_S) == 0
            await page.ends()
            await whole(page)


async def test_a_worker_that_stood_still_says_and_writes_nothing_more(workers: Workers, page: Page, model_server: ModelServer) -> None:
    model_server.script("llm", ["It is noon. ", "Enjoy your lunch."])
    model_server.script("tts", [9_000], [500], [300], [300])
    async with workers.process() as process:
        await page.open(plays=False)
        await page.until(ev.SessionStarted)
        await page.says(gateway.TextReceived(text="What time is it?"))
        await page.when(lambda: page.sent_ms(1) > 500)
        async with workers.running():
            process.send_signal(signal.SIGSTOP)
            await page.until(ev.SessionRestored)
            await page.when(lambda: page.flushed(1))
            await page.says(gateway.PlaybackReported(generation=1, played_ms=600, state="flushed"))
            await page.when(lambda: page.ended(2))
            process.send_signal(signal.SIGCONT)
            assert process.stderr is not None
            async with asyncio.timeout(BOUND_S):
                while b"is given up" not in await process.stderr.readline():
                    assert process.returncode is None
            await page.says(gateway.PlaybackReported(generation=2, played_ms=600, state="finished"))
            await page.until(ev.TurnCompleted, reason="completed")
            await page.says(gateway.TextReceived(text="Thanks."))
            await page.until(ev.UserSaid, 2)
            await page.when(lambda: page.ended(3))
            await page.ends()
            await whole(page)
    generations = [prefix.generation for prefix, _ in page.frames]
    assert generations == sorted(generations), "nothing of the old generation came after the new one"
    assert [prefix.sequence for prefix, _ in page.frames] == list(range(len(generations)))
    assert [one.term for one in page.told(ev.SessionOwned)] == [1, 2]


async def test_of_two_workers_that_both_think_they_own_a_session_one_is_refused_by_the_log(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody_tells_it(_: str) -> None:
        """Suppress the notice of the lost lease, so that only the log keeps the first owner out."""

    async with workers.running() as first:
        await page.open()
        await page.until(ev.SessionStarted)
        async with workers.running() as second:
            monkeypatch.setattr(first._leases, "regain", nobody_tells_it)
            await store.redis.set(f"vx:lease:{{{page.sid}}}", second._place.worker, px=LEASE_MS)
            await second._orphans.take(page.sid, 2)
            assert (first.stats()["sessions"], second.stats()["sessions"]) == (1, 1)
            await page.says(gateway.TextReceived(text="Who is there?"))
            await page.until(ev.TurnCompleted, reason="completed")
            await at_rest(first)
            await page.says(gateway.TextReceived(text="Still?"))
            await page.until(ev.TurnCompleted, 2, reason="completed")
            await page.ends()
            await whole(page)
    assert [one.text for one in page.told(ev.UserSaid)] == ["Who is there?", "Still?"]
    assert [one.worker for one in page.told(ev.SessionOwned)] == [first._place.worker, second._place.worker]


async def test_a_valkey_that_forgets_everything_costs_a_living_call_nothing(
    own_valkey: Callable[[], ValkeyServer], config: Config, connection: Client
) -> None:
    server = own_valkey()
    workers = Workers(replace(config, redis_url=server.url))
    async with Redis.from_url(server.url, decode_responses=True) as redis:
        store = Store(redis)
        page = Page(connection, store)
        async with workers.running(), workers.running():
            await page.open()
            await page.until(ev.SessionStarted)
            await redis.flushall()
            await store.session_opened(page.sid, 1)  # the rebuilt index lists it as a session without an owner

            async def held() -> bool:
                return (await store.held([page.sid]))[0]

            await becomes(held)
            await page.says(gateway.TextReceived(text="Still there?"))
            await page.until(ev.TurnCompleted, reason="completed")
            await page.ends()
            await whole(page)
        assert len(page.told(ev.SessionOwned)) == 1
        await page.stop()


async def test_a_session_whose_gateway_died_waits_for_its_client_and_then_ends(
    workers: Workers, page: Page, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "GATEWAY_MS", 600_000)
    await store.gateway_lives("g")
    async with workers.running(resume_window_s=1):
        await page.open()
        await page.until(ev.SessionStarted)
        await page.says(gateway.ClientConnected(gateway="g", connection="c"))
        await page.says(gateway.TextReceived(text="Hello?"))
        await page.until(ev.TurnCompleted, reason="completed")
        await store.gateway_gone("g")
        ended = (await page.until(ev.SessionEnded)).event
        assert isinstance(ended, ev.SessionEnded)
        assert ended.reason == "client_gone"
        await whole(page)


@pytest.mark.parametrize("seed", [1, 2])
async def test_workers_are_killed_at_random_moments_and_the_call_goes_on(
    workers: Workers, page: Page, model_server: ModelServer, seed: int
) -> None:
    moments, questions = random.Random(seed), 3
    model_server.script("llm", *([f"This is answer {n}. ", "It has a second sentence."] for n in range(4 * questions)))
    async with AsyncExitStack() as running:
        process = await running.enter_async_context(workers.process())
        await page.open()
        await page.until(ev.SessionStarted)
        for number in range(questions):
            successor = await running.enter_async_context(workers.process())
            asked = page.says(gateway.TextReceived(text=f"Question {number}?"))
            await asyncio.gather(asked, _killed(process, moments.uniform(0, 0.6)))
            process = successor
            await page.until(ev.TurnCompleted, number + 1)
        await page.ends()
        await whole(page)
    assert [one.text for one in page.told(ev.UserSaid)] == [f"Question {n}?" for n in range(questions)]
    assert [one.reason for one in page.told(ev.TurnCompleted)] == ["completed"] * questions


async def _killed(process: asyncio.subprocess.Process, after_s: float) -> None:
    await asyncio.sleep(after_s)
    process.send_signal(signal.SIGKILL)
