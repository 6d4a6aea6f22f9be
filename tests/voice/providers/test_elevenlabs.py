"""Speech of ElevenLabs, against a strict stand-in on its wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from tests.eventually import eventually
from tests.fakes.elevenlabs.server import KEY, ElevenLabsServer, Fault, Refused
from tests.fakes.openai.http import tone
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.services.voice.providers.streaming import elevenlabs
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base

VOICE = "JBFqnCBsd6RMkjVDRZzb"
OTHER = "cgSgspJ2msm6clMCkdW9"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ElevenLabsServer]:
    async with ElevenLabsServer() as found:
        monkeypatch.setenv("ELEVENLABS_BASE_URL", found.url)
        monkeypatch.setenv("ELEVENLABS_API_KEY", KEY)
        yield found


@pytest.fixture
async def models(server: ElevenLabsServer) -> AsyncIterator[Models]:
    found = Models(Config())
    yield found
    await found.close()


async def spoken(models: Models, text: str = "Hello there.", voice: str = "", **more: object) -> list[bytes]:
    return [pcm async for pcm in models.synthesize(text, voice, provider="elevenlabs", **more)]  # type: ignore[arg-type]


async def test_a_sentence_comes_in_pieces_of_whole_samples_by_the_default_voice(server: ElevenLabsServer, models: Models) -> None:
    pieces = await spoken(models)
    assert b"".join(pieces) == tone("Hello there.", VOICE)
    assert len(pieces) > 3
    assert not any(len(piece) % 2 for piece in pieces)
    (query,) = server.queries
    assert (query["voice"], query["model_id"], query["language_code"]) == (VOICE, "eleven_flash_v2_5", "en")
    assert server.refused == []


async def test_voice_model_language_and_speed_are_told(server: ElevenLabsServer, models: Models) -> None:
    await spoken(models, voice=OTHER, model="eleven_turbo_v2_5", language="de-CH", speed=1.1)
    await spoken(models, model="eleven_flash_v2", language="de", speed=2.0)
    first, second = server.queries
    assert (first["voice"], first["model_id"], first["language_code"]) == (OTHER, "eleven_turbo_v2_5", "de")
    assert "language_code" not in second, "a model for English alone refuses to be told one"
    assert [settings for _, settings in server.said] == [{"speed": 1.1}, {"speed": 1.2}]


async def test_sentences_share_a_connection_and_other_voices_have_their_own(server: ElevenLabsServer, models: Models) -> None:
    for _ in range(3):
        await spoken(models)
    assert len(server.queries) == 1
    await spoken(models, voice=OTHER)
    assert len(server.queries) == 2


async def test_sentences_at_one_time_have_connections_of_their_own_and_few_are_kept(
    server: ElevenLabsServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elevenlabs, "KEPT_LIMIT", 2)
    await asyncio.gather(*(spoken(models) for _ in range(4)))
    assert len(server.queries) == 4
    await eventually(lambda: server.connections == 2)


async def test_an_unused_connection_is_not_kept_for_longer_than_the_vendor_keeps_it(
    server: ElevenLabsServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spoken(models)
    monkeypatch.setattr(elevenlabs, "KEPT_S", -1.0)
    await spoken(models)
    assert len(server.queries) == 2


async def test_a_connection_that_the_vendor_closed_meanwhile_costs_nothing(server: ElevenLabsServer, models: Models) -> None:
    await spoken(models)
    await server.drop()
    assert b"".join(await spoken(models)) == tone("Hello there.", VOICE)


async def test_a_sentence_that_is_not_wanted_any_more_leaves_no_context_behind(server: ElevenLabsServer, models: Models) -> None:
    async with aclosing(models.synthesize("A long sentence that nobody hears.", "", provider="elevenlabs")) as speech:
        await anext(speech)
    await eventually(lambda: server.connections == 0)
    for _ in range(6):  # more than the vendor allows at a time
        await spoken(models)
    assert server.refused == []


@pytest.mark.parametrize(
    ("refusal", "code", "retryable"),
    [
        (Refused("quota_exceeded", "This request exceeds your quota of 10."), Code.PROVIDER_REFUSED, False),
        (Refused("system_busy", "The system is busy, try again."), Code.PROVIDER_UNAVAILABLE, True),
        (Refused("internal", "Something failed.", 1011), Code.PROVIDER_UNAVAILABLE, True),
    ],
)
async def test_a_refusal_is_told_in_the_vendors_words(
    server: ElevenLabsServer, models: Models, refusal: Refused, code: Code, retryable: bool
) -> None:
    server.faults.append(refusal)
    with pytest.raises(VoxbridgeError, match=str(refusal)) as caught:
        await spoken(models)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


async def test_a_key_that_is_refused_or_missing_is_said_and_never_shown(
    server: ElevenLabsServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELEVENLABS_API_KEY", "xi-another-key")
    with pytest.raises(VoxbridgeError, match="Invalid API key") as caught:
        await spoken(models)
    assert caught.value.code is Code.PROVIDER_REFUSED
    assert "xi-another-key" not in str(caught.value)
    monkeypatch.delenv("ELEVENLABS_API_KEY")
    with pytest.raises(VoxbridgeError, match="no key for elevenlabs; set ELEVENLABS_API_KEY"):
        await spoken(models)


async def test_a_voice_that_is_not_there_is_named(models: Models) -> None:
    with pytest.raises(VoxbridgeError, match="A voice with voice_id jess does not exist"):
        await spoken(models, voice="jess")


async def test_a_connection_that_breaks_in_a_sentence_may_be_tried_again(server: ElevenLabsServer, models: Models) -> None:
    server.faults.append(Fault.CUT)
    with pytest.raises(VoxbridgeError) as caught:
        await spoken(models)
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_UNAVAILABLE, True)
    assert b"".join(await spoken(models)) == tone("Hello there.", VOICE)


async def test_a_vendor_that_says_nothing_more_is_given_up_at_the_bound(
    server: ElevenLabsServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "READ_TIMEOUT_S", 0.05)
    server.faults.append(Fault.HANG)
    with pytest.raises(VoxbridgeError) as caught:
        await spoken(models)
    assert caught.value.code is Code.TIMED_OUT


async def test_sound_beyond_the_bound_is_refused(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(tone("Hello there.", VOICE))
    monkeypatch.setattr(elevenlabs, "SOUND_LIMIT", whole)
    await spoken(models)
    monkeypatch.setattr(elevenlabs, "SOUND_LIMIT", whole - 2)
    with pytest.raises(VoxbridgeError) as caught:
        await spoken(models)
    assert caught.value.limit == whole - 2


async def test_a_sentence_without_a_sound_ends(server: ElevenLabsServer, models: Models) -> None:
    server.faults.append(Fault.MUTE)
    assert await spoken(models) == []


async def test_nobody_at_the_address_is_said(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELEVENLABS_BASE_URL", "ws://127.0.0.1:9")
    with pytest.raises(VoxbridgeError, match="The speech model cannot be reached") as caught:
        await spoken(models)
    assert caught.value.code is Code.PROVIDER_UNAVAILABLE
