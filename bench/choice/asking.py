"""Asking the local model the requests of a set, as the voice service would."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec

from bench.choice import sets
from voxbridge.services.voice.core.prompt.prompt import instructions
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.language import own_offer

MAX_TOKENS: Final = 96
SYSTEM: Final = instructions("")


class Answer(msgspec.Struct, frozen=True):
    """A request, what it wanted, and what came back. An empty `tool` or `called` stands for words."""

    kind: str
    said: str
    tool: str
    called: str
    arguments: dict[str, Any]
    words: str
    right: bool
    arguments_right: bool
    seconds: float
    slip: bool = False
    read: int = 0
    """Tokens of the prompt that the engine had not read before."""

    written: int = 0
    """Tokens of the answer."""


class Reply(msgspec.Struct, frozen=True):
    """Reply of the model: the called function and its arguments, or words; the seconds, and the tokens read and written."""

    called: str
    arguments: dict[str, Any]
    words: str
    seconds: float
    read: int
    written: int


def offered(functions: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the functions as the voice service offers them to the installation's own endpoint, in a session that knows what exists: those
    that are not listed go along."""
    names = {function.name for function in functions}
    return own_offer.offer([function for function in sets.named_functions() if function.listed and function.name in names], functions)


def conversation(one: sets.FollowUp) -> list[dict[str, Any]]:
    """Return the messages of the turns before a follow-up."""
    found: list[dict[str, Any]] = []
    for number, (said, name, arguments, spoken) in enumerate(one.before):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        found += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": json.dumps({"success": True, "spoken": spoken})},
            {"role": "assistant", "content": spoken},
        ]
    return found


class Asker:
    """A client of a models service that asks with the same functions each time."""

    def __init__(self, client: httpx.Client, functions: Sequence[Function]) -> None:
        self._client = client
        self._tools = offered(functions)

    def read_ahead(self) -> None:
        """Have the whole prompt read, as the voice service does when a call begins; until then requests are asked with a short one."""
        body = self._body([{"role": "user", "content": "hello"}]) | {"max_tokens": 1, "background": True}
        self._client.post("/chat/completions", json=body).raise_for_status()

    def ask(self, messages: Sequence[dict[str, Any]]) -> Reply:
        """Ask once."""
        body = self._body(messages)
        began = time.perf_counter()
        answer = self._client.post("/chat/completions", json=body).raise_for_status().json()
        took = time.perf_counter() - began
        message, usage = answer["choices"][0]["message"], answer["usage"]
        read, written = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"]
        if not message.get("tool_calls"):
            return Reply("", {}, message["content"] or "", took, read, written)
        function = message["tool_calls"][0]["function"]
        try:
            arguments = json.loads(function["arguments"])
        except ValueError:  # cut off at the limit
            arguments = {}
        return Reply(function["name"], arguments, "", took, read, written)

    def _body(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "model": "local",
            "messages": [{"role": "system", "content": SYSTEM}, *messages],
            "tools": self._tools,
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }

    def request(self, tool: str, one: sets.Request) -> Answer:
        """Ask one request."""
        return _judged("request", one, tool, self.ask([{"role": "user", "content": one.say}]))

    def talk(self, line: str, kind: str = "talk") -> Answer:
        """Say one line that wants words."""
        return _judged(kind, sets.Request(line), "", self.ask([{"role": "user", "content": line}]))

    def follow_up(self, one: sets.FollowUp) -> Answer:
        """Ask one follow-up after its turns."""
        return _judged("follow-up", one, one.tool, self.ask([*conversation(one), {"role": "user", "content": one.say}]))


def _judged(kind: str, one: sets.Request | sets.FollowUp, tool: str, reply: Reply) -> Answer:
    right = reply.called == tool
    return Answer(
        kind=kind,
        said=one.say,
        tool=tool,
        called=reply.called,
        arguments=reply.arguments,
        words=reply.words,
        right=right,
        arguments_right=right and sets.fits(one.args, reply.arguments),
        seconds=reply.seconds,
        slip=isinstance(one, sets.Request) and one.slip,
        read=reply.read,
        written=reply.written,
    )
