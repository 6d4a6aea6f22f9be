"""The cascade against a stand-in with OpenAI's refusals: transcription, completion and speech, each with the default models."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.openai.http import KEY, OpenAIServer, Use, tone
from tests.fakes.openai.http_rules import CHAT, HEARING, SPEECH
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language.conversation import Complete, Completed, Message, TextDelta, ToolRequested, ToolUse

ADD = Function(name="add", description="A sum.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


@pytest.fixture
async def models(server: OpenAIServer) -> AsyncIterator[Models]:
    models = Models(Config())
    yield models
    await models.close()
    assert server.refused == []


async def test_a_language_is_named_without_its_region(server: OpenAIServer, models: Models) -> None:
    server.script(HEARING, ["Que horas são?"])
    found = await models.transcribe(bytes(32_000), provider="openai", language="pt-BR")
    assert (found.text, found.language) == ("Que horas são?", "pt-BR")
    assert [one["language"] for one in server.asked(HEARING)] == ["pt"]


async def test_a_conversation_with_calls_and_without_is_taken(server: OpenAIServer, models: Models) -> None:
    server.script(CHAT, ["Hm. ", Use("add", {"a": 1}, pieces=2), Use("add", {"a": 2})], ["It is three."])
    asked = [Message(role="system", text="You add."), Message(role="user", text="One and two?")]
    first = [one async for one in models.complete(1, Complete(provider="openai", model="", messages=tuple(asked), functions=(ADD,)))]
    calls = [one for one in first if isinstance(one, ToolRequested)]
    assert [one.arguments for one in calls] == [{"a": 1}, {"a": 2}]
    uses = tuple(ToolUse(call_id=f"fc_{index}", name=one.name, arguments=one.arguments) for index, one in enumerate(calls))
    asked.append(Message(role="assistant", text="Hm.", uses=uses))
    asked.extend(Message(role="tool", call_id=use.call_id, text="3") for use in uses)
    for functions in ((ADD,), ()):
        again = [one async for one in models.complete(2, Complete(provider="openai", model="", messages=tuple(asked), functions=functions))]
        assert isinstance(again[0], TextDelta)
        assert isinstance(again[-1], Completed)
        assert again[-1].output_tokens == 3


async def test_words_are_spoken_in_the_usual_voice_and_in_another(server: OpenAIServer, models: Models) -> None:
    usual = b"".join([pcm async for pcm in models.synthesize("Hello there.", "", "openai")])
    other = b"".join([pcm async for pcm in models.synthesize("Hello there.", "onyx", "openai")])
    assert (usual, other) == (tone("Hello there.", "alloy"), tone("Hello there.", "onyx"))
    assert [one["response_format"] for one in server.asked(SPEECH)] == ["pcm", "pcm"]


async def test_a_wrong_key_is_refused_and_not_repeated(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-one-of-somebody")
    models = Models(Config())
    try:
        with pytest.raises(VoxbridgeError) as caught:
            await models.transcribe(bytes(32_000), provider="openai")
    finally:
        await models.close()
    assert "sk-another" not in caught.value.message
    assert len(server.refused) == 1
