"""Macros in a call, on real services: what was just done is saved, its trigger runs it without a model, and a run asks and is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx

from tests.eventually import BOUND_S
from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from tests.voice.model_server import ModelServer, call
from voxbridge.shared.config import Config

PACKS = "tests.tools.pack,voxbridge.services.tools.packs.macros.functions"


class Person:
    """A user who types, and hears what the agent says."""

    def __init__(self, socket: Talker, models: ModelServer, base: str) -> None:
        self.socket = socket
        self.base = base
        self._models = models
        self._turns = 0

    async def says(self, text: str, answer: str) -> None:
        """Say something, and wait until the agent has said its answer to the end."""
        assert await self.answered(text) == answer

    async def starts(self, name: str, trigger: str) -> None:
        """Say the trigger of a macro until it starts it: the call learns of a macro a moment after the one who saved it."""
        async with asyncio.timeout(BOUND_S):
            while f"Started {name}." not in await self.answers(trigger):  # a question of the macro may follow in the same turn
                pass

    async def answered(self, text: str) -> str:
        """Say something, and return what the agent has said last when it has said it to the end."""
        return (await self.answers(text))[-1]

    async def answers(self, text: str) -> list[str]:
        """Say something, and return what the agent has said in that turn."""
        self._turns += 1
        before = len(self._heard())
        await self.socket.say(text)
        await self.socket.until("turn_complete", turn=self._turns)
        return self._heard()[before:]

    def _heard(self) -> list[str]:
        told = self.socket.told
        return [str(one["text"]) for one in told if one["type"] == "transcript" and one["role"] == "assistant" and one.get("final")]

    async def orders(self, words: str) -> None:
        """Say an order to a macro until no model is asked about it: until the call has learned of the macro."""
        async with asyncio.timeout(BOUND_S):
            while True:
                before = self.asked()
                await self.answered(words)
                if self.asked() == before:
                    return

    async def says_through_the_model(self, words: str, function: str, answer: str, **arguments: Any) -> None:
        """Say something for which the model calls a function whose result is to be said with this `answer`; the stand-in only agrees."""
        self.will(function, **arguments)
        await self.says(words, "All right.")
        results = [one["result"] for one in self.socket.told if one["type"] == "function_result" and one["name"] == function]
        assert results[-1].get("spoken", "") == answer

    def will(self, function: str, **arguments: Any) -> None:
        """Have the model call a function next."""
        self._models.script("llm", call(function, json.dumps(arguments)))

    async def heard(self, text: str, count: int = 1) -> None:
        await self.socket.until("transcript", count, role="assistant", final=True, text=text)

    def asked(self) -> int:
        """Return how often the language model was asked."""
        return len(self._models.asked("llm"))

    async def saves(self, name: str, steps: list[Any], trigger: str) -> None:
        """Save a macro over REST, while the call goes on."""
        async with httpx.AsyncClient(trust_env=False, timeout=BOUND_S) as client:
            made = await client.post(f"{self.base}/api/vox/macros", json={"name": name, "steps": steps, "trigger": trigger})
        assert made.status_code == 200, made.text


@asynccontextmanager
async def calling(config: Config, models: ModelServer) -> AsyncIterator[Person]:
    whole = replace(config, port=free_port(), models_port=free_port(), tool_packs=PACKS)
    async with stack(whole), talker(whole) as socket:
        await socket.start()
        yield Person(socket, models, f"http://127.0.0.1:{whole.port}")


async def test_what_was_just_done_is_saved_in_a_call_and_run_by_its_trigger(config: Config, model_server: ModelServer) -> None:
    async with calling(config, model_server) as person:
        await person.says_through_the_model("Note the key.", "note", "", text="the key is K-2317")
        draft = {"name": "keys", "trigger": "note my key again"}
        would = "keys would note with the key is K-2317. Shall I save it? Please say yes or no."
        person.will("create_macro", **draft)
        await person.says("Save what I just did as keys.", would)
        asked = person.asked()
        await person.says("Yes, please.", "All right.")
        await person.heard('I saved keys: note with the key is K-2317. Say "note my key again" to run it.')
        assert person.asked() == asked, "no model was asked"
        await person.starts("keys", "Note my key again!")
        asked = person.asked()
        ended = await person.socket.until("run_ended", name="keys")
        assert ended["outcome"] == "completed"
        steps = [one for one in person.socket.told if one["type"] == "run_step"]
        assert [(one["state"], one.get("target")) for one in steps] == [("started", "note"), ("completed", None)]
        assert json.loads(steps[0]["args"]) == {"text": "the key is K-2317"}
        await person.heard("keys is done.")
        await person.says("Note my keys again.", "Did you mean keys? Please say yes or no.")
        await person.says("Yes.", "Started keys.")
        await person.socket.until("run_ended", 2, name="keys")
        await person.heard("keys is done.", 2)
        await person.says("Run keys.", "Started keys.")
        assert person.asked() == asked, "no model was asked"


async def test_a_run_asks_in_the_call_and_takes_the_next_words(config: Config, model_server: ModelServer) -> None:
    steps = [{"id": "where", "ask": "Which city?"}, {"say": "Off to ${steps.where.result.text}."}]
    async with calling(config, model_server) as person:
        await person.says("Hello.", "All right.")
        await person.saves("trip", steps, "plan a trip for me")
        await person.starts("trip", "plan a trip for me")
        asked = person.asked()
        waiting = await person.socket.until("run_waiting", reason="ask")
        assert (waiting["step"], waiting["question"]) == ("where", "Which city?")
        await person.heard("Which city?")
        await person.says("Lisbon", "All right.")
        assert (await person.socket.until("run_ended"))["result"]["spoken"] == "Off to Lisbon."
        await person.heard("Off to Lisbon.")
        assert person.asked() == asked, "no model was asked"
        assert "Started trip." in await person.answers("plan a trip for me")  # its question may follow in the same turn
        run_id = (await person.socket.until("run_waiting", 2, reason="ask"))["run_id"]
        await person.socket.send({"type": "run_answer", "run_id": run_id, "step": "where", "text": "Rome"})
        assert (await person.socket.until("run_ended", 2))["result"]["spoken"] == "Off to Rome."


async def test_a_macro_is_told_and_run_step_by_step_at_a_word(config: Config, model_server: ModelServer) -> None:
    steps = [
        {"id": "one", "call": "note", "arguments": {"text": "milk"}},
        {"id": "two", "call": "note", "arguments": {"text": "eggs"}},
        {"say": "Noted."},
    ]
    hint = "Shall I? Say yes, no to leave it out, or stop."
    async with calling(config, model_server) as person:
        await person.says("Hello.", "All right.")
        await person.saves("shopping", steps, "note the shopping")
        await person.orders("Dry run shopping.")
        asked = person.asked()
        await person.heard('shopping would first note with milk, then note with eggs, then say "Noted.".')
        assert not [one for one in person.socket.told if one["type"] == "run_step"]
        await person.says("Run shopping step by step.", "Started shopping.")
        await person.heard(f"Step 1 of 3: note with milk. {hint}")
        await person.says("Yes.", "All right.")
        await person.heard(f"Step 2 of 3: note with eggs. {hint}")
        await person.says("No.", "All right.")
        await person.heard(f'Step 3 of 3: say "Noted.". {hint}')
        await person.says("Stop.", "All right, I won't.")
        assert (await person.socket.until("run_ended"))["outcome"] == "cancelled"
        told = [(one["step"], one["state"]) for one in person.socket.told if one["type"] == "run_step"]
        assert told == [("one", "started"), ("one", "completed"), ("two", "skipped")]
        assert person.asked() == asked, "no model was asked"
