"""Approval through real services: each policy, at each door, answered in each way. What was paid is counted in a file outside, and only a
person's own answer to the question that is open has it paid."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.awareness.serving import serving as awareness
from tests.eventually import BOUND_S, eventually
from tests.faults.paid import INJECTED, payments
from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from tests.voice.model_server import ModelServer, call
from voxbridge.services.tools.core import approvals
from voxbridge.shared.config import Config

pytestmark = pytest.mark.timeout(240)
PACKAGES: Final = ("browser", "catalogue", "macros")
PACKS: Final = ",".join(("tests.faults.paid", *(f"voxbridge.services.tools.packs.{name}.functions" for name in PACKAGES)))
POLICIES: Final = ("never", "first", "always")
SERVER: Final = {
    "command": sys.executable,
    "args": ["-m", "tests.faults.paid"],
    "cwd": str(Path(__file__).parents[2]),
    "tools": [
        *({"match": f"pay_{policy}", "approval": policy, "effect": "write"} for policy in POLICIES),
        {"match": "read_notice", "approval": "never", "effect": "read"},
    ],
}


class Shop:
    """Real services, and the doors to them."""

    def __init__(self, config: Config, models: ModelServer, folder: Path) -> None:
        self.config = config
        self.models = models
        self.services: dict[str, asyncio.subprocess.Process] = {}
        self._folder = folder
        self._folders = 0

    def folder(self) -> Path:
        """Return a new folder to pay in."""
        self._folders += 1
        path = self._folder / f"payment{self._folders}"
        path.mkdir()
        return path

    async def asks(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Send a request over REST."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.config.port}", trust_env=False, timeout=BOUND_S) as client:
            return await client.request(method, f"/api/vox/{path}", json=body or None)

    async def calls(self, function: str, **arguments: Any) -> httpx.Response:
        return await self.asks("POST", f"function/{function}", args=arguments)

    async def revoke(self, name: str) -> None:
        """Take back what was approved for good."""
        done = await self.calls("revoke_approval", approval=name.replace("_", " "))
        assert (done.status_code, done.json()["result"]["revoked"]) == (200, 1), done.text

    async def standing(self) -> list[str]:
        """Return the names of what is approved for good."""
        found = (await self.calls("list_approvals")).json()["result"]
        return sorted(str(one.get("function", one)) if isinstance(one, dict) else str(one) for one in found["approvals"])


@asynccontextmanager
async def shop(config: Config, models: ModelServer, folder: Path, packs: str = PACKS) -> AsyncIterator[Shop]:
    (folder / "mcp.json").write_text(json.dumps({"servers": {"shop": SERVER}}))
    whole = replace(config, port=free_port(), models_port=free_port(), tool_packs=packs, mcp_file=str(folder / "mcp.json"))
    async with stack(whole) as services, awareness(whole):
        found = Shop(whole, models, folder)
        found.services = services

        async def offered() -> bool:
            return "shop__pay_always" in (await found.asks("GET", "functions")).text

        await eventually(offered)
        for policy in POLICIES:
            steps = [{"call": f"pay_{policy}", "arguments": {"folder": "${input.folder}"}}]
            made = await found.asks("POST", "macros", name=f"buy {policy}", steps=steps, inputs={"folder": {}})
            assert made.status_code == 200, made.text
        yield found


class Person:
    """A user in a call."""

    def __init__(self, shop: Shop, socket: Talker) -> None:
        self.shop = shop
        self.socket = socket
        self._turns = 0

    async def has_called(self, function: str, **arguments: Any) -> None:
        """Say something for which the model calls a function."""
        self.shop.models.script("llm", call(function, json.dumps(arguments)))
        await self.says("Pay it.")

    async def says(self, text: str) -> None:
        """Say something, and hear the answer to its end."""
        self._turns += 1
        await self.socket.say(text)
        await self.socket.until("turn_complete", turn=self._turns)

    async def clicks(self, approval_id: str, answer: str = "approved", scope: str = "once") -> None:
        await self.socket.send({"type": "approval_answer", "approval_id": approval_id, "answer": answer, "scope": scope})

    async def is_asked(self, count: int = 1) -> str:
        """Wait until the question was heard, and return its id."""
        asked = await self.socket.until("approval_requested", count)
        await self.socket.until("transcript", count, role="assistant", final=True, text=asked["question"].replace("_", " "))
        return str(asked["approval_id"])

    async def is_asked_again(self) -> None:
        """Wait until the question was heard a second time, or is over. What is said before that does not count as a second answer."""
        asked = await self.socket.until("approval_requested")
        words = asked["question"].replace("_", " ")

        def heard() -> bool:
            times = [one for one in self.socket.told if one["type"] == "transcript" and one.get("final") and one.get("text") == words]
            return len(times) >= 2 or any(one["type"] == "approval_ended" for one in self.socket.told)

        await eventually(heard)

    async def ended(self, count: int = 1) -> tuple[str, str]:
        """Wait until the question is over, and return how it ended, and by what."""
        ended = await self.socket.until("approval_ended", count)
        return ended["outcome"], ended["by"]

    async def hears(self, *texts: str) -> None:
        for text in texts:
            await self.socket.until("transcript", role="assistant", final=True, text=text)


async def by_model(person: Person, policy: str, folder: Path) -> None:
    await person.has_called(f"pay_{policy}", folder=str(folder))


async def by_macro(person: Person, policy: str, folder: Path) -> None:
    await person.has_called("run_macro", name=f"buy {policy}", inputs={"folder": str(folder)})


async def by_mcp(person: Person, policy: str, folder: Path) -> None:
    await person.has_called("run_tool", tool_id=f"shop__pay_{policy}", params={"folder": str(folder)})


DOORS: Final[dict[str, Callable[[Person, str, Path], Awaitable[None]]]] = {"model": by_model, "macro": by_macro, "MCP": by_mcp}


async def voice(person: Person, _: str) -> tuple[str, str]:
    await person.says("Yes, please.")
    return "approved", "voice"


async def refusal(person: Person, _: str) -> tuple[str, str]:
    await person.says("No, thanks.")
    return "denied", "voice"


async def click(person: Person, approval_id: str) -> tuple[str, str]:
    await person.clicks(approval_id)
    return "approved", "click"


async def both(person: Person, approval_id: str) -> tuple[str, str]:
    await person.clicks(approval_id)
    await person.ended()
    await person.says("Yes.")
    await person.clicks(approval_id, "denied")
    return "approved", "click"


async def foreign(person: Person, approval_id: str) -> tuple[str, str]:
    async with talker(person.shop.config) as socket:
        await socket.start()
        stranger = Person(person.shop, socket)
        await stranger.clicks(approval_id)
        await stranger.says("Yes.")
        answer = await person.shop.asks("POST", f"approvals/{approval_id}", answer="approved")
        assert answer.status_code == 404, "what a call asks is not answered outside it"
    await person.clicks(approval_id, "denied")
    return "denied", "click"


ANSWERS: Final = {"voice": voice, "refusal": refusal, "click": click, "both": both, "foreign": foreign}


@asynccontextmanager
async def person_in(shop: Shop) -> AsyncIterator[Person]:
    async with talker(shop.config) as socket:
        await socket.start()
        yield Person(shop, socket)


async def cell(shop: Shop, door: str, policy: str, answer: str) -> None:
    """Check one cell of the table."""
    folder = shop.folder()
    async with person_in(shop) as person:
        await DOORS[door](person, policy, folder)
        if policy == "never":
            await eventually(lambda: payments(folder) == 1)
            assert not [one for one in person.socket.told if one["type"] == "approval_requested"]
            return
        approval_id = await person.is_asked()
        assert payments(folder) == 0, "nothing is done before the answer"
        expected = await ANSWERS[answer](person, approval_id)
        assert await person.ended() == expected
        paid = expected[0] == "approved"
        if paid:
            await eventually(lambda: payments(folder) == 1)
        name = f"shop__pay_{policy}" if door == "MCP" else f"pay_{policy}"
        assert (await shop.standing() != []) == (paid and policy == "first"), (door, policy, answer)
        if paid and policy == "first":
            again = shop.folder()
            await DOORS[door](person, policy, again)
            await eventually(lambda: payments(again) == 1)
            await shop.revoke(name)
            assert await shop.standing() == []
        questions = [one for one in person.socket.told if one["type"] == "approval_requested"]
        ends = [one for one in person.socket.told if one["type"] == "approval_ended"]
        assert (len(questions), len(ends)) == (1, 1), (door, policy, answer)
    assert payments(folder) == paid


async def test_each_policy_at_each_door_of_a_call_is_kept_whatever_the_answer(
    config: Config, model_server: ModelServer, tmp_path: Path
) -> None:
    async with shop(config, model_server, tmp_path) as found:
        for door in DOORS:
            for policy in POLICIES:
                for answer in ANSWERS if policy != "never" else ("voice",):
                    await cell(found, door, policy, answer)


@pytest.fixture
def hasty() -> Iterator[str]:
    """The pack whose executor waits for an answer for two seconds; here it is only imported while its calls are made and replayed."""
    usual = approvals.EXPIRES_US
    name = "tests.faults.hasty"
    sys.modules.pop(name, None)
    import_module(name)
    yield name
    approvals.EXPIRES_US = usual  # type: ignore[misc]


async def test_an_answer_that_comes_late_pays_nothing_at_any_door(
    hasty: str, config: Config, model_server: ModelServer, tmp_path: Path
) -> None:
    async with shop(config, model_server, tmp_path, f"{PACKS},{hasty}") as found:
        for door in DOORS:
            for policy in POLICIES[1:]:
                folder = found.folder()
                async with person_in(found) as person:
                    await DOORS[door](person, policy, folder)
                    asked = await person.socket.until("approval_requested")
                    assert await person.ended() == ("lapsed", "")
                    await person.clicks(asked["approval_id"], scope="function")
                    await person.says("Yes, please.")
                    ends = [one for one in person.socket.told if one["type"] == "approval_ended"]
                    assert (len(ends), payments(folder)) == (1, 0), (door, policy)
        folder = found.folder()
        waiting = (await found.calls("pay_always", folder=str(folder))).json()["result"]["approval_id"]

        async def over() -> bool:
            return not (await found.asks("GET", "approvals")).json()["approvals"]

        await eventually(over)
        assert (await found.asks("POST", f"approvals/{waiting}", answer="approved")).status_code == 404
        assert (await found.standing(), payments(folder)) == ([], 0)


async def test_over_rest_a_request_is_answered_there_and_by_nobody_in_a_call(
    config: Config, model_server: ModelServer, tmp_path: Path
) -> None:
    async with shop(config, model_server, tmp_path) as found, person_in(found) as person:
        for policy in POLICIES:
            folder = found.folder()
            asked = await found.calls(f"pay_{policy}", folder=str(folder))
            if policy == "never":
                assert (asked.status_code, payments(folder)) == (200, 1)
                continue
            assert asked.status_code == 202, asked.text
            approval_id = asked.json()["result"]["approval_id"]
            assert payments(folder) == 0
            await person.clicks(approval_id)
            await person.says("Yes.")
            waiting = (await found.asks("GET", "approvals")).json()
            assert [one["id"] for one in waiting["approvals"]] == [approval_id]
            assert payments(folder) == 0
            assert (await found.asks("POST", f"approvals/{approval_id}", answer="approved")).status_code == 202
            await eventually(partial(payments, folder))
            assert payments(folder) == 1
            assert (await found.asks("POST", f"approvals/{approval_id}", answer="denied")).status_code == 404
            again = found.folder()
            asked = await found.calls(f"pay_{policy}", folder=str(again))
            assert (asked.status_code, payments(again)) == ((200, 1) if policy == "first" else (202, 0))


async def test_no_text_of_a_model_a_page_or_a_function_approves(config: Config, model_server: ModelServer, tmp_path: Path) -> None:
    async with shop(config, model_server, tmp_path) as found, person_in(found) as person:
        folder = found.folder()
        await person.has_called("pay_always", folder=str(folder))
        approval_id = await person.is_asked()
        for function, arguments in (
            ("read_page", {"folder": approval_id}),
            ("run_tool", {"tool_id": "read_page", "params": {"folder": approval_id}}),
            ("approval_answer", {"approval_id": approval_id, "answer": "approved"}),
        ):
            await person.has_called(function, **arguments)
        await person.is_asked_again()
        await person.says("The page says: yes, approved.")
        assert await person.ended() == ("lapsed", "voice")
        assert payments(folder) == 0


async def from_a_file(person: Person, approval_id: str) -> None:
    await person.has_called("read_page", folder=approval_id)


async def from_a_server(person: Person, _: str) -> None:
    await person.has_called("run_tool", tool_id="shop__read_notice", params={})


async def from_a_page(person: Person, _: str) -> None:
    reading = asyncio.create_task(person.has_called("read_page_content"))
    called = await person.socket.until("function_call", name="read_page_content")
    answer = {"success": True, "text": INJECTED, "spoken": INJECTED}
    await person.socket.send(
        {"type": "browser_function_result", "name": called["name"], "fn_call_id": called["fn_call_id"], "result": answer}
    )
    await reading


async def from_the_agent(person: Person, _: str) -> None:
    person.shop.models.script("llm", [INJECTED])
    await person.says("Well?")


async def from_the_screen(person: Person, _: str) -> None:
    """Have an error met on a page: the model is told of it with the next turn."""
    shown = {"event_type": "error", "error_type": INJECTED, "message": INJECTED, "page": INJECTED}
    answer = await person.shop.asks("POST", "awareness", **shown)
    assert answer.json()["recorded"], answer.text
    await person.says("What is there?")
    assert INJECTED[:40] in json.dumps(person.shop.models.asked("llm")), "it was told"


SOURCES: Final = {"file": from_a_file, "MCP": from_a_server, "page": from_a_page, "agent": from_the_agent, "screen": from_the_screen}


@asynccontextmanager
async def person_with_a_page(shop: Shop) -> AsyncIterator[Person]:
    async with talker(shop.config) as socket:
        await socket.send({"type": "start", "mode": "local", "browserFunctions": ["read_page_content"]})
        await socket.until("setup_complete")
        yield Person(shop, socket)


async def test_no_text_from_outside_approves_at_any_door(config: Config, model_server: ModelServer, tmp_path: Path) -> None:
    async with shop(config, model_server, tmp_path) as found:
        for door in DOORS:
            for pair in (("file", "MCP"), ("page", "agent"), ("screen",)):
                folder = found.folder()
                async with person_with_a_page(found) as person:
                    await DOORS[door](person, "always", folder)
                    approval_id = await person.is_asked()
                    for source in pair:
                        await SOURCES[source](person, approval_id)
                    await person.clicks(approval_id, "denied")
                    assert await person.ended() in (("lapsed", "voice"), ("denied", "click")), (door, pair)
                assert payments(folder) == 0, (door, pair)
        folder = found.folder()
        asked = await found.calls("pay_always", folder=str(folder))
        approval_id = asked.json()["result"]["approval_id"]
        async with person_with_a_page(found) as person:
            for reads in SOURCES.values():
                await reads(person, approval_id)
        assert INJECTED in (await found.calls("read_page", folder=approval_id)).text
        waiting = (await found.asks("GET", "approvals")).json()["approvals"]
        assert ([one["id"] for one in waiting], payments(folder)) == ([approval_id], 0)


async def test_a_yes_is_for_the_question_that_was_heard_and_the_other_has_its_own_click(
    config: Config, model_server: ModelServer, tmp_path: Path
) -> None:
    async with shop(config, model_server, tmp_path) as found, person_in(found) as person:
        folders = [found.folder(), found.folder()]
        both_calls = [call("pay_always", json.dumps({"folder": str(one)}), index=index)[0] for index, one in enumerate(folders)]
        model_server.script("llm", both_calls)
        await person.says("Pay both.")
        await person.is_asked()  # a yes before that would answer nothing
        other = (await person.socket.until("approval_requested", 2))["approval_id"]
        await person.says("Yes.")
        await eventually(lambda: payments(folders[0]) == 1)
        await person.clicks(other, "denied")
        assert [await person.ended(1), await person.ended(2)] == [("approved", "voice"), ("denied", "click")]
        assert [payments(one) for one in folders] == [1, 0]


def _is_paid(folder: Path) -> bool:
    return payments(folder) == 1


async def test_a_question_is_answered_after_a_takeover_at_each_door(config: Config, model_server: ModelServer, tmp_path: Path) -> None:
    async with shop(config, model_server, tmp_path) as found:
        env = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | found.config.as_env()
        workers = [found.services["voice"]]
        try:
            for door, how in product(DOORS, ("voice", "click")):
                folder = found.folder()
                async with person_in(found) as person:
                    await DOORS[door](person, "always", folder)
                    approval_id = await person.is_asked()
                    successor = await asyncio.create_subprocess_exec(
                        sys.executable, "-m", "voxbridge.services.voice", env=env, stderr=asyncio.subprocess.DEVNULL
                    )
                    workers[-1].kill()
                    workers.append(successor)
                    await person.socket.until("restored")
                    assert payments(folder) == 0
                    answered = await ANSWERS[how](person, approval_id)
                    assert await person.ended() == answered, (door, how)
                    await eventually(partial(_is_paid, folder))
                assert payments(folder) == 1, (door, how)
        finally:
            for one in workers[1:]:
                if one.returncode is None:
                    one.kill()
                await one.wait()
