"""The stand-in for Anthropic's service, driven through the SDK only: its refusals, and answers that the SDK can read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from tests.fakes.anthropic.server import CACHED_TOKENS, KEY, AnthropicServer, Status, Stop, Thought, Use

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
TOOL: dict[str, Any] = {"name": "add", "description": "A sum.", "input_schema": {"type": "object"}}
CALL: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}]}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}
TEXT: dict[str, Any] = {"type": "text", "text": "And?"}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [HI], **fields}


def talk(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return body(messages=list(messages), **fields)


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def client(server: AnthropicServer) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as client:
        yield client


async def message(client: AsyncAnthropic, fields: dict[str, Any]) -> Any:
    async with client.messages.stream(**fields) as stream:
        return await stream.get_final_message()


async def test_the_sdk_puts_a_message_together(server: AnthropicServer, client: AsyncAnthropic) -> None:
    server.script([Thought("Hm."), "One ", "moment.", Use("add", {"a": 1, "b": 2}, pieces=3), Use("add", {})])
    got = await message(client, body(tools=[TOOL]))
    assert [block.type for block in got.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert got.content[1].text == "One moment."
    assert [block.input for block in got.content[2:]] == [{"a": 1, "b": 2}, {}]
    assert (got.stop_reason, got.usage.input_tokens, got.usage.output_tokens) == ("tool_use", 7, 3)


async def test_what_is_marked_is_written_to_the_cache_and_then_read(client: AsyncAnthropic) -> None:
    fields = body(system=[{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])
    first, second = await message(client, fields), await message(client, fields)
    assert (first.usage.cache_creation_input_tokens, first.usage.cache_read_input_tokens) == (CACHED_TOKENS, 0)
    assert (second.usage.cache_creation_input_tokens, second.usage.cache_read_input_tokens) == (0, CACHED_TOKENS)


async def test_a_refusal_says_why(server: AnthropicServer, client: AsyncAnthropic) -> None:
    server.script([Stop("refusal", "This could do harm.")])
    got = await message(client, body())
    assert (got.stop_reason, got.stop_details.explanation) == ("refusal", "This could do harm.")


async def test_errors_come_as_the_sdks_own(server: AnthropicServer, client: AsyncAnthropic) -> None:
    server.script([Status(529, "overloaded_error", "busy", retry_after="3")])
    with pytest.raises(anthropic.OverloadedError) as caught:
        await message(client, body())
    assert (caught.value.type, caught.value.api_message, caught.value.response.headers["retry-after"]) == ("overloaded_error", "busy", "3")


async def test_the_right_key_is_needed(server: AnthropicServer) -> None:
    async with AsyncAnthropic(api_key="sk-ant-another", base_url=server.url, max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError):
            await message(client, body())


@pytest.mark.parametrize(
    "fields",
    [
        talk(HI, CALL, user(RESULT), tools=[TOOL]),
        talk(HI, CALL, user({**RESULT, "is_error": True}, TEXT), tools=[TOOL], tool_choice={"type": "none"}),
        body(output_config={"effort": "low"}),
        body(model="claude-haiku-4-5"),
    ],
)
async def test_what_the_service_takes(client: AsyncAnthropic, fields: dict[str, Any]) -> None:
    assert (await message(client, fields)).content[0].text == "All right."


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (talk(), "at least one message"),
        (talk({"role": "assistant", "content": "Hi"}), "first message must use"),
        (talk(HI, HI), "roles must alternate"),
        (talk(HI, {"role": "assistant", "content": "It is"}), "prefill"),
        (talk({"role": "user", "content": ""}), "non-empty|non-whitespace"),
        (talk({"role": "user", "content": " "}), "non-whitespace"),
        (talk(HI, CALL, HI, tools=[TOOL]), "without `tool_result` blocks immediately after: toolu_1"),
        (talk(HI, CALL, tools=[TOOL]), "without `tool_result`"),
        (talk(user(RESULT), tools=[TOOL]), "unexpected `tool_use_id`"),
        (talk(HI, CALL, user(RESULT, RESULT), tools=[TOOL]), "single result"),
        (talk(HI, CALL, user(TEXT, RESULT), tools=[TOOL]), "must come first"),
        (talk(HI, CALL, user(RESULT), CALL, user(RESULT), tools=[TOOL]), "must be unique"),
        (talk(HI, CALL, user(RESULT)), "must define tools"),
        (talk(user({"type": "nonsense"})), "Input tag"),
        (talk(user({"type": "text", "text": "Hi", "colour": "red"})), "messages.0.content.0.colour: Extra inputs"),
        (body(extra_body={"colour": "red"}), "colour: Extra inputs"),
        (body(extra_body={"temperature": 0.0}), "temperature: Extra inputs"),
        (body(thinking={"type": "enabled", "budget_tokens": 1_024}), "thinking.type.enabled"),
        (body(model="claude-haiku-4-5", output_config={"effort": "low"}), "effort"),
        (body(max_tokens=-1), "max_tokens"),
        (body(tools=[{**TOOL, "name": "add it"}]), "should match pattern"),
        (body(tools=[{"name": "add"}]), "input_schema: Field required"),
        (body(tools=[{**TOOL, "input_schema": {}}]), "input_schema.type"),
        (body(tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"$top": {}}}}]), "Property keys should match"),
        (body(tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"a": {"minLength": -1}}}}]), "draft 2020-12"),
        (body(tools=[TOOL, TOOL]), "must be unique"),
        (body(tool_choice={"type": "none"}), "only be specified while providing tools"),
        (body(tools=[{**TOOL, "name": f"add_{index}", "cache_control": {"type": "ephemeral"}} for index in range(5)]), "maximum of 4"),
    ],
)
async def test_what_the_service_refuses(server: AnthropicServer, client: AsyncAnthropic, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=words):
        await message(client, fields)
    assert len(server.refused) == 1


async def test_a_model_that_is_not_there_is_not_found(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError):
        await message(client, body(model="claude-one"))


async def test_messages_of_one_side_in_a_row_are_taken_where_that_is_not_strict() -> None:
    async with AnthropicServer(strict_roles=False) as server, AsyncAnthropic(api_key=KEY, base_url=server.url) as client:
        assert (await message(client, talk(HI, HI))).content[0].text == "All right."
