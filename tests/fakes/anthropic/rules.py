"""Requests that Anthropic's service refuses, with approximately its messages.

From the messages reference and from reported error messages: headers, fields, alternating roles (`strict_roles`), calls and their results,
names and schemas of tools, cache marks. From the migration guides: no prefill, no sampling, no thinking budget on Claude 5 (with version
2026-10-21 no sampling at all); effort only where a model has it. None of it was seen in a live run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jsonschema import Draft202012Validator

from tests.fakes.sse import Request

MODELS: Final = ("claude-sonnet-5", "claude-sonnet-5-5", "claude-opus-5", "claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-4-6")
VERSIONS: Final = ("2023-06-01", "2026-10-21")
CACHE_MARKS: Final = 4

_TOP: Final = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "output_config",
    "service_tier",
    "cache_control",
    "container",
    "inference_geo",
}
_BLOCKS: Final = {
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
}
_TOOL: Final = {"name", "description", "input_schema", "cache_control", "strict", "eager_input_streaming", "type"}
_CHOICES: Final = ("auto", "any", "tool", "none")


class Refusal(Exception):
    """A request that the service refuses."""

    def __init__(self, message: str, status: int = 400, type: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type


def check(request: Request, *, key: str, strict_roles: bool, paused: Any) -> None:
    """Raise `Refusal` for a request that is wrong. `paused` is the content of a paused message that the client may continue."""
    if request.path.partition("?")[0] != "/v1/messages":
        raise Refusal("Not found", 404, "not_found_error")
    # The SDK sends the key as a bearer token since version 2; older ones use a header of its own, which the service still accepts.
    given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if given != key:
        raise Refusal("invalid x-api-key" if given else "x-api-key header is required", 401, "authentication_error")
    _want(request.headers.get("anthropic-version") in VERSIONS, "anthropic-version: header is required and must name a version")
    body = request.body
    _known(body, _TOP, "")
    for name in ("model", "max_tokens", "messages"):
        _want(name in body, f"{name}: Field required")
    if body["model"] not in MODELS:
        raise Refusal(f"model: {body['model']}", 404, "not_found_error")
    _want(isinstance(body["max_tokens"], int) and body["max_tokens"] >= 0, "max_tokens: Input should be greater than or equal to 0")
    _manner(body, request.headers["anthropic-version"])
    _tools(body)
    _messages(body, strict_roles=strict_roles, paused=paused)
    marks = str(body).count("'cache_control'")
    _want(marks <= CACHE_MARKS, f"A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {marks}.")


def _want(right: bool, message: str) -> None:
    if not right:
        raise Refusal(message)


def _known(given: dict[str, Any], allowed: set[str], path: str) -> None:
    for name in given:
        _want(name in allowed, f"{path}{name}: Extra inputs are not permitted")
    mark = given.get("cache_control")
    _want(mark is None or mark.get("type") == "ephemeral", f"{path}cache_control: Input should be a valid dictionary")


def _manner(body: dict[str, Any], version: str) -> None:
    model = body["model"]
    newer = re.match(r"claude-\w+-5", model) is not None
    sampled = {"temperature", "top_p", "top_k"} & set(body)
    _want(not (sampled and (newer or version != "2023-06-01")), "temperature: Extra inputs are not permitted")
    thinking = body.get("thinking", {}).get("type")
    _want(not (newer and thinking == "enabled"), '"thinking.type.enabled" is not supported for this model.')
    _want(not (model == "claude-sonnet-5-5" and thinking == "disabled"), '"thinking.type.disabled" is not supported for this model.')
    effort = body.get("output_config", {}).get("effort")
    _want(not (effort and model == "claude-haiku-4-5"), "This model does not support the effort parameter.")
    _want(effort in (None, "low", "medium", "high", "xhigh", "max"), "output_config.effort: Input should be 'low', 'medium' or 'high'")


def _tools(body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    for index, tool in enumerate(tools):
        path = f"tools.{index}.custom."
        _known(tool, _TOOL, path)
        name = tool.get("name", "")
        fits = re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) is not None
        _want(fits, f"{path}name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        _want(isinstance(tool.get("input_schema"), dict), f"{path}input_schema: Field required")
        _want(tool["input_schema"].get("type") == "object", f"{path}input_schema.type: Field required")
        _schema(tool["input_schema"], path)
    names = [tool["name"] for tool in tools]
    _want(len(names) == len(set(names)), "tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is not None:
        _want(bool(tools), "tool_choice may only be specified while providing tools.")
        _want(choice.get("type") in _CHOICES, "tool_choice: Input tag does not match any of the expected tags")


def _schema(schema: dict[str, Any], path: str) -> None:
    """Check the arguments of a tool; from reported errors: n8n-io/n8n #30590 for names, anthropics/claude-code #4753 for schemas."""
    fit = all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema.get("properties", {}))
    _want(fit, f"{path}input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'")
    sound = Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)
    _want(sound, f"{path}input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12")


def _messages(body: dict[str, Any], *, strict_roles: bool, paused: Any) -> None:
    messages = body["messages"]
    _want(bool(messages), "messages: at least one message is required")
    _want(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    open_calls: list[str] = []
    seen: set[str] = set()
    before = ""
    for index, message in enumerate(messages):
        path = f"messages.{index}."
        _known(message, {"role", "content"}, path)
        role = message.get("role")
        _want(role in ("user", "assistant"), f"{path}role: Input should be 'user' or 'assistant'")
        same = role == before
        _want(not (strict_roles and same), 'messages: roles must alternate between "user" and "assistant", but found multiple in a row')
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        _want(bool(blocks), f"{path}content: all messages must have non-empty content")
        for at, block in enumerate(blocks):
            _block(block, role, f"{path}content.{at}.")
        _answered(blocks, open_calls, f"{path}content")
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        _want(not seen & set(open_calls), f"{path}content: `tool_use` ids must be unique")
        _want(len(open_calls) == len(set(open_calls)), f"{path}content: `tool_use` ids must be unique")
        seen.update(open_calls)
        before = str(role)
    _answered([], open_calls, f"messages.{len(messages)}")
    _want(not seen or bool(body.get("tools")), "Requests which include `tool_use` or `tool_result` blocks must define tools")
    last = messages[-1]
    goes_on = last["role"] == "user" or (bool(paused) and last["content"][-len(paused) :] == paused)
    _want(goes_on, "This model does not support assistant message prefill. The conversation must end with a user message.")


def _block(block: dict[str, Any], role: Any, path: str) -> None:
    kind = block.get("type")
    _want(kind in _BLOCKS, f"{path}type: Input tag {kind!r} does not match any of the expected tags")
    _known(block, _BLOCKS[str(kind)], path)
    if kind == "text":
        _want(bool(block["text"].strip()), "messages: text content blocks must contain non-whitespace text")
    if kind == "tool_use":
        _want(role == "assistant", f"{path}type: `tool_use` blocks can only be in `assistant` messages")
        _want(isinstance(block.get("input"), dict), f"{path}input: Input should be a valid dictionary")
        _want(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]) is not None, f"{path}id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if kind == "tool_result":
        _want(role == "user", f"{path}type: `tool_result` blocks can only be in `user` messages")


def _answered(blocks: list[dict[str, Any]], open_calls: list[str], path: str) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    missing = [call for call in open_calls if call not in results]
    _want(not missing, f"{path}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}.")
    strange = [result for result in results if result not in open_calls]
    _want(not strange, f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(strange)}.")
    _want(len(results) == len(set(results)), f"{path}: each tool_use must have a single result.")
    kinds = [block["type"] for block in blocks]
    ordered = "tool_result" not in kinds or kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
    _want(ordered, f"{path}: `tool_result` blocks must come first")
