"""Choosing among many functions through the API, with the real weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from bench.choice import asking, sets
from tests.eventually import eventually
from tests.running_models import RunningModels

TOOLS: list[Any] = asking.offered(sets.functions())


@pytest.fixture
def client(models_service: RunningModels) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=models_service.base_url, api_key="local", max_retries=0, timeout=110) as found:
        yield found


def _ask(client: openai.OpenAI, said: str) -> Any:
    messages: list[Any] = [{"role": "system", "content": asking.SYSTEM}, {"role": "user", "content": said}]
    return client.chat.completions.create(model="local", messages=messages, tools=TOOLS, temperature=0, max_tokens=64).choices[0]


def test_among_eighty_functions_the_one_that_is_wanted_is_called(client: openai.OpenAI) -> None:
    choice = _ask(client, "please set a timer for ten minutes")
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)["seconds"]) == ("set_timer", 600)


def test_a_function_that_the_prompt_does_not_name_is_called(client: openai.OpenAI) -> None:
    (call,) = _ask(client, "give me the sha256 hash of the word banana").message.tool_calls
    assert call.function.name == "hash_text"
    assert json.loads(call.function.arguments)["text"].lower() == "banana"


def test_thanks_are_answered_in_words(client: openai.OpenAI) -> None:
    choice = _ask(client, "thank you very much")
    assert choice.message.tool_calls is None
    assert choice.message.content


@pytest.mark.timeout(400)
async def test_a_tool_with_a_description_alone_is_called_once_requests_for_it_were_written(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    parameters = {"type": "object", "properties": {"name": {"type": "string", "description": "Name of the device"}}, "required": ["name"]}
    about = "Turns on/opens/presses a device or entity. For locks, this performs a 'lock' action."
    lamp: Any = {"type": "function", "function": {"name": "HassTurnOn", "description": about, "parameters": parameters}}
    own = [tool for tool in TOOLS if tool["function"].get("utterances")]
    messages: list[Any] = [{"role": "system", "content": asking.SYSTEM}, {"role": "user", "content": "please turn the radio on"}]

    def ask() -> Any:
        return client.chat.completions.create(model="local", messages=messages, tools=[*own, lamp], temperature=0, max_tokens=64)

    def waiting() -> int:
        (line,) = [one for one in http.get("/metrics").text.splitlines() if one.startswith("voxbridge_model_phrasings_waiting ")]
        return int(float(line.split()[1]))

    ask()
    await eventually(lambda: not waiting(), within_s=280)
    ask()  # the router that knows the requests is trained beside this one
    calls = await eventually(lambda: ask().choices[0].message.tool_calls)
    assert calls[0].function.name == "HassTurnOn"
    assert "radio" in json.loads(calls[0].function.arguments)["name"].lower()


def test_a_stream_of_a_call_has_its_name_and_its_arguments(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "system", "content": asking.SYSTEM}, {"role": "user", "content": "what time is it in Lima"}]
    name = arguments = ""
    for chunk in client.chat.completions.create(model="local", messages=messages, tools=TOOLS, temperature=0, max_tokens=64, stream=True):
        for call in chunk.choices[0].delta.tool_calls or ():
            assert call.function is not None
            name += call.function.name or ""
            arguments += call.function.arguments or ""
    assert name == "current_time"
    assert "lima" in json.loads(arguments)["place"].lower()
