"""Calls of realtime models, by whichever vendor: the stand-ins answer the function that the user names, and what each connection of a model
was told of a call's end can be counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from tests.fakes.gemini.session import Session as GeminiSession
from tests.fakes.gemini.turns import Call as GeminiCall
from tests.fakes.gemini.turns import Turn as GeminiTurn
from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.fakes.openai.realtime import Session as OpenAISession
from tests.fakes.openai.realtime_turns import Turn as OpenAITurn
from tests.faults.caller import Caller
from tests.faults.installation import Google, Servers
from tests.faults.wire import Wire

AFTER: Final = "That is what I know."
OTHERWISE: Final = "All right."
VENDORS: Final = ("gemini", "openai")
_RESULT: Final = "The result of "
"""Beginning of the text that tells a model of the end of a call which another connection made."""


class Wired(Servers):
    """Servers that these services reach over wires, which hold what each of them appends."""

    def __init__(self, folder: Path, services: Sequence[str], leaving: AsyncExitStack) -> None:
        super().__init__(folder)
        self.wires: dict[str, Wire] = {}
        """Wires by the names of the services."""

        self._services = services
        self._leaving = leaving

    async def prepare(self) -> None:
        await super().prepare()
        for service in self._services:
            if service not in self.wires:
                self.wires[service] = await self._leaving.enter_async_context(Wire(self.nats.url_of(service), writer=service))

    def env(self, service: str) -> dict[str, str]:
        env = super().env(service)
        return {**env, "VOXBRIDGE_NATS_URL": self.wires[service].url} if service in self.wires else env


def gemini(session: GeminiSession) -> GeminiTurn:
    """Answer as a model does that calls the function which the user names."""
    name, folder = _wanted(session.history[-1].text if session.history else "")
    if name:
        return GeminiTurn(calls=(GeminiCall(name, {"folder": folder}),), after=AFTER, blocking=True)
    return GeminiTurn(says=OTHERWISE)


def openai(session: OpenAISession) -> OpenAITurn:
    """Answer as a model does that calls the function which the user names."""
    last: dict[str, Any] = next(reversed(session.items.values()), {})
    name, folder = _wanted(_text(last))
    if name:
        return OpenAITurn(calls=((name, json.dumps({"folder": folder})),))
    return OpenAITurn(says=AFTER if last.get("type") == "function_call_output" else OTHERWISE, audio_ms=100)


def _wanted(said: str) -> tuple[str, str]:
    name, _, folder = said.partition(" ")
    return (name, folder) if folder.startswith("/") else ("", "")


def _text(item: dict[str, Any]) -> str:
    return " ".join(str(part.get("text", "")) for part in item.get("content") or ()) if item.get("role") == "user" else ""


def ends_told(vendor: str, google: Google, server: OpenAIRealtimeServer, folder: Path) -> list[int]:
    """Return for each connection that knows of the call in a folder how often it was told its end, oldest first."""
    if vendor == "gemini":
        return [_told_gemini(one, folder) for one in google.sessions if str(folder) in _all_of_gemini(one)]
    return [_told_openai(one, folder) for one in server.sessions if str(folder) in json.dumps(list(one.items.values()))]


def _told_gemini(session: GeminiSession, folder: Path) -> int:
    own = {call.id for call in session.calls if str(folder) in str(call.args)}
    contents = json.dumps([*session.contents, *session.texts])
    return sum(answer.get("id") in own for answer in session.answers) + contents.count(_RESULT)


def _all_of_gemini(session: GeminiSession) -> str:
    calls, lines = [dict(call.args) for call in session.calls], [line.text for line in session.history]
    return json.dumps([*session.contents, *session.texts, *calls, *lines])


def _told_openai(session: OpenAISession, folder: Path) -> int:
    items = list(session.items.values())
    own = {item["call_id"] for item in items if item["type"] == "function_call" and str(folder) in item["arguments"]}
    outputs = [item for item in items if item["type"] == "function_call_output" and item["call_id"] in own]
    return len(outputs) + sum(_text(item).count(_RESULT) for item in items)


def page(caller: Caller) -> dict[str, Counter[str]]:
    """Return how often the page was told the end of each call and task, by kind of end."""
    found: dict[str, Counter[str]] = {"calls": Counter(), "tasks": Counter(), "begun": Counter()}
    for one in caller.facts():
        if one["type"] in ("function_result", "function_cancelled"):
            found["calls"][one["fn_call_id"]] += 1
        elif one["type"] == "async_task_complete":
            found["tasks"][one["task_id"]] += 1
        elif one["type"] == "async_task_started":
            found["begun"][one["task_id"]] += 1
    return found


def is_over(caller: Caller) -> bool:
    """Tell whether the page knows the end of a call, and of every task that it was told of."""
    seen = page(caller)
    return bool(seen["calls"]) and seen["begun"].keys() == seen["tasks"].keys()
