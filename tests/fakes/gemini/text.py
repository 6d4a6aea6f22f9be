"""A stand-in for Gemini's `:streamGenerateContent?alt=sse`: the same chunks on the wire, and the same refusals.

`script` sets the answers of the next requests, used in order; after that each gets a short text. The rules are from Google's documentation
(roles, calls and their results, signatures of calls, levels of thinking) and from reported error messages; none was seen in a live run.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

from tests.fakes.sse import Answer, Body, Request, SseServer
from tests.voice.model_server import Fault

KEY: Final = "AIza-of-the-tests"
USUAL: Final = ("All right.",)
UNSIGNED: Final = "skip_thought_signature_validator"

_TOP: Final = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"}
_PART: Final = {"text", "functionCall", "functionResponse", "thoughtSignature", "thought", "inlineData"}
_DECLARED: Final = {"name", "description", "parameters", "parametersJsonSchema"}
_AS_IS: Final = {"args", "response", "parametersJsonSchema"}
_LEVELS: Final = {"LOW", "MEDIUM", "HIGH"}


class Call:
    """A function call, in one part."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.name = name
        self.args = args


class Thought:
    """A summary of the model's thoughts."""

    def __init__(self, text: str) -> None:
        self.text = text


class Finish:
    """Finish reason of the answer; `STOP` without one. `blocked`: the prompt is refused with this reason, and there is no answer."""

    def __init__(self, reason: str = "STOP", *, blocked: str = "") -> None:
        self.reason = reason
        self.blocked = blocked


class Status:
    """An HTTP error, or with `within` an error in the stream."""

    def __init__(self, code: int, status: str, message: str = "scripted", *, within: bool = False, **headers: str) -> None:
        self.body = {"error": {"code": code, "message": message, "status": status}}
        self.code = code
        self.within = within
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Raw:
    """Raw bytes in the stream."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class End:
    """Marker: the stream is closed cleanly here, without a finish reason."""


Item = str | Call | Thought | Finish | Status | Raw | End | Fault


class _Refusal(Exception):
    def __init__(self, message: str, code: int = 400, status: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.status = Status(code, status, message)


class GeminiTextServer(SseServer):
    """The service."""

    def __init__(self, *, key: str = KEY, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.key = key
        self._scripts: list[list[Item]] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def script(self, *answers: Iterable[Item]) -> None:
        """Set the answers of the next requests."""
        self._scripts.extend(list(answer) for answer in answers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Bodies of all requests, with JSON field names."""
        return [request.body for request in self.requests]

    def answer(self, request: Request) -> Answer:
        """Refuse the request, or answer as scripted."""
        request.body = _in_json_names(request.body)
        try:
            _check(request, self.key)
        except _Refusal as refusal:
            return Body(refusal.status.code, refusal.status.body)
        items: list[Item] = self._scripts.pop(0) if self._scripts else [*USUAL]
        first = items[0] if items else None
        if isinstance(first, Status) and not first.within:
            return Body(first.code, first.body, first.headers)
        return _chunks(items)


def _chunks(items: list[Item]) -> Iterator[bytes | Fault]:
    finish = Finish()
    for item in items:
        match item:
            case str():
                yield _chunk({"text": item})
            case Thought():
                yield _chunk({"text": item.text, "thought": True})
            case Call():
                yield _chunk({"functionCall": {"name": item.name, "args": item.args}, "thoughtSignature": "c2lnbmVk"})
            case Status():
                yield b"data: " + json.dumps(item.body).encode() + b"\r\n\r\n"
                return
            case Raw():
                yield item.data
            case Fault():
                yield item
            case End():
                return
            case Finish():
                finish = item
    if finish.blocked:
        yield _data({"promptFeedback": {"blockReason": finish.blocked}})
    else:
        yield _chunk({"text": ""}, finish.reason)


def _chunk(part: dict[str, Any], reason: str = "") -> bytes:
    candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **({"finishReason": reason} if reason else {})}
    return _data({"candidates": [candidate]})


def _data(fields: dict[str, Any]) -> bytes:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 12}
    return b"data: " + json.dumps({**fields, "usageMetadata": usage, "modelVersion": "gemini", "responseId": "r"}).encode() + b"\r\n\r\n"


def _in_json_names(value: Any) -> Any:
    """Return a body with JSON field names: fields may also have their protobuf names, and the SDK mixes both."""
    if isinstance(value, list):
        return [_in_json_names(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name): one for name, one in value.items()}
    return {name: one if name in _AS_IS else _in_json_names(one) for name, one in named.items()}


def _check(request: Request, key: str) -> None:
    path, _, query = request.path.partition("?")
    found = re.fullmatch(r"/v1(?:beta)?/models/([a-z0-9.-]+):streamGenerateContent", path)
    if found is None or query != "alt=sse":
        raise _Refusal("Not found", 404, "NOT_FOUND")
    given = request.headers.get("x-goog-api-key")
    if given is None:
        raise _Refusal("Method doesn't allow unregistered callers.", 403, "PERMISSION_DENIED")
    _want(given == key, "API key not valid. Please pass a valid API key.")
    model, body = found.group(1), request.body
    for name in body:
        _want(name in _TOP, f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    for tool in body.get("tools", ()):
        for declared in tool["functionDeclarations"]:
            _want(set(declared) <= _DECLARED, f"Invalid JSON payload received. Unknown names in {sorted(declared)}: Cannot find field.")
            right = re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", declared["name"]) is not None
            _want(right, "Invalid function name. Must start with a letter or an underscore.")
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    if model.startswith("gemini-3"):
        _want(thinking.get("thinkingLevel", "LOW") in _LEVELS, "Thinking level is not supported for this model.")
    _contents(body.get("contents", []), signed=model.startswith("gemini-3"))


def _contents(contents: list[dict[str, Any]], *, signed: bool) -> None:
    _want(bool(contents), "GenerateContentRequest.contents: contents is not specified")
    open_calls: list[tuple[Any, Any]] = []
    before = ""
    for content in contents:
        role, parts = content.get("role"), content.get("parts", [])
        _want(role in ("user", "model"), "Please use a valid role: user, model.")
        _want(bool(parts), "GenerateContentRequest.contents.parts: contents.parts must not be empty.")
        for part in parts:
            _want(set(part) <= _PART, f"Invalid JSON payload received. Unknown names {sorted(set(part) - _PART)}: Cannot find field.")
        calls = [part for part in parts if "functionCall" in part]
        answers = [(part["functionResponse"].get("id"), part["functionResponse"]["name"]) for part in parts if "functionResponse" in part]
        equal = "Please ensure that there are as many function response parts as there were function call parts."
        _want(sorted(answers) == sorted(open_calls), equal)
        _want(
            not calls or before == "user", "Please ensure that function call turn comes immediately after a user turn or a response turn."
        )
        for part in calls:
            missing = f"Function call is missing a thought_signature in functionCall parts: {part['functionCall']['name']}."
            _want(not signed or bool(part.get("thoughtSignature")), missing)
        open_calls = [(part["functionCall"].get("id"), part["functionCall"]["name"]) for part in calls]
        before = str(role)
    _want(not open_calls and before == "user", "Please ensure that single turn requests end with a user role.")


def _want(right: bool, message: str) -> None:
    if not right:
        raise _Refusal(message)
