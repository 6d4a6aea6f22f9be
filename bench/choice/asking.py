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
from voxbridge.services.voice.providers.cascade import own_offer
from voxbridge.shared.agents.functions import Function

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


def offered(functions: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the functions as the voice service offers them to the installation's own endpoint: those that are not listed go along."""
    return own_offer.offer([function for function in functions if function.listed], functions)


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

    def ask(self, messages: Sequence[dict[str, Any]]) -> tuple[str, dict[str, Any], str, float]:
        """Return the called function, its arguments, the words, and the seconds that it took."""
        body = {
            "model": "local",
            "messages": [{"role": "system", "content": SYSTEM}, *messages],
            "tools": self._tools,
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }
        began = time.perf_counter()
        answer = self._client.post("/chat/completions", json=body).raise_for_status().json()
        took = time.perf_counter() - began
        message = answer["choices"][0]["message"]
        if not message.get("tool_calls"):
            return "", {}, message["content"] or "", took
        function = message["tool_calls"][0]["function"]
        try:
            arguments = json.loads(function["arguments"])
        except ValueError:  # cut off at the limit
            arguments = {}
        return function["name"], arguments, "", took

    def request(self, tool: str, one: sets.Request) -> Answer:
        """Ask one request."""
        called, arguments, words, took = self.ask([{"role": "user", "content": one.say}])
        right = called == tool
        return Answer("request", one.say, tool, called, arguments, words, right, right and sets.fits(one.args, arguments), took, one.slip)

    def talk(self, line: str) -> Answer:
        """Say one line of small talk."""
        called, arguments, words, took = self.ask([{"role": "user", "content": line}])
        return Answer("talk", line, "", called, arguments, words, not called, not called, took)

    def follow_up(self, one: sets.FollowUp) -> Answer:
        """Ask one follow-up after its turns."""
        called, arguments, words, took = self.ask([*conversation(one), {"role": "user", "content": one.say}])
        right = called == one.tool
        return Answer("follow-up", one.say, one.tool, called, arguments, words, right, right and sets.fits(one.args, arguments), took)
