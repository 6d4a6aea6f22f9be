"""Experts: agents that answer from documents of their own, keep their thread, and name no source that was not found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.conftest import Installation, calls, says
from tests.voice.conftest import Page
from voxbridge.services.gateway.rest import children
from voxbridge.shared.errors import Code
from voxbridge.shared.events import gateway, tools, voice
from voxbridge.shared.knowledge import Forget


async def asks(installed: Installation, page: Page, message: str, *answers: str) -> dict[str, Any]:
    """Have the model of a user's session ask the librarian, whose model answers so; return the result of the call."""
    asked = calls("chat_with_expert", json.dumps({"expert": "librarian", "message": message}))
    says(installed.model, asked, *[[one] for one in answers])
    before, told = len(page.told(voice.ToolCalled)), len(page.told(voice.TurnCompleted))
    await page.says(gateway.TextReceived(text=f"Ask the librarian: {message}"))
    called = await page.event(voice.ToolCalled, before + 1)
    done = await installed.until(page.sid, tools.ToolCompleted, call_id=called.call_id)
    await page.until(voice.TurnCompleted, told + 1)
    return dict(done.result)


async def test_an_expert_answers_from_its_graph_and_names_the_source(installed: Installation) -> None:
    page = await installed.session()
    result = await asks(installed, page, "How many days of holidays are there?", "Thirty days of holidays a year [1].")
    assert (result["answer"], result["sources"]) == ("Thirty days of holidays a year.", ["leave.md"])
    assert result["spoken"] == "Thirty days of holidays a year. Source: leave.md."
    prompt = json.dumps(installed.model.asked("llm")[1]["messages"])
    assert "thirty days of holidays" in prompt
    assert "no instructions" in prompt


async def test_a_source_that_was_not_found_is_taken_out(installed: Installation) -> None:
    page = await installed.session()
    result = await asks(
        installed,
        page,
        "How many holidays?",
        "Thirty days [leave.md]. By policy-2019.pdf it is forty [policy-2019.pdf] [7]. Source: secret.docx",
    )
    assert (result["sources"], result["sources_rejected"]) == (["leave.md"], 4)
    for wrong in ("policy-2019", "secret.docx", "[7]"):
        assert wrong not in json.dumps(result)


async def test_an_expert_keeps_its_thread_and_ends_with_the_session(installed: Installation) -> None:
    page = await installed.session()
    first = await asks(installed, page, "How many holidays are there?", "Thirty [1].")
    second = await asks(installed, page, "And whom do I ask?", "Mary Poppins [1].")
    assert first["session"] == second["session"]
    thread = json.dumps(installed.model.asked("llm")[-1]["messages"])
    assert "How many holidays are there?" in thread
    assert "whom do I ask" in thread
    assert not await installed.of(first["session"], voice.SessionEnded)
    await page.ends()
    ended = await installed.until(first["session"], voice.SessionEnded)
    assert (ended.reason, ended.turns) == ("parent_ended", 2)


async def test_another_session_has_a_thread_of_its_own(installed: Installation) -> None:
    one, other = await installed.session(), await installed.session()
    first = await asks(installed, one, "How many holidays are there?", "Thirty [1].")
    second = await asks(installed, other, "How many holidays are there?", "Thirty [1].")
    assert first["session"] != second["session"]


async def test_a_thread_that_reached_its_limit_is_followed_by_another(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "EXPERT_TOKENS", 12)
    page = await installed.session()
    first = await asks(installed, page, "How many holidays are there?", "Thirty [1].")
    says(installed.model, calls("chat_with_expert", '{"expert": "librarian", "message": "And who knows?"}'), ["Mary."], ["I could not."])
    await page.says(gateway.TextReceived(text="Ask on"))
    ended = await installed.until(first["session"], voice.SessionEnded)
    assert ended.reason == "token_limit"
    await page.until(voice.TurnCompleted, 2)
    third = await asks(installed, page, "How many holidays are there?", "Thirty [1].")
    assert third["session"] != first["session"]


async def test_without_documents_it_says_so_and_names_none(installed: Installation) -> None:
    await installed.asks(Forget(account="local"))
    page = await installed.session()
    result = await asks(installed, page, "How many holidays are there?", "The documents do not say.")
    assert result["sources"] == []
    assert "Nothing was found." in json.dumps(installed.model.asked("llm")[1]["messages"])


async def test_an_agent_that_is_no_expert_is_refused(installed: Installation) -> None:
    answer = await installed.rest("chat_with_expert", expert="helper", message="Hello?")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, Code.INVALID_ARGUMENT, "expert")


async def test_over_rest_each_question_is_a_thread_of_its_own(installed: Installation) -> None:
    says(installed.model, ["Thirty days [1]."], ["Mary Poppins [1]."])
    first = (await installed.rest("chat_with_expert", expert="librarian", message="How many holidays?")).json()["result"]
    second = (await installed.rest("chat_with_expert", expert="librarian", message="Who knows about holidays?")).json()["result"]
    assert first["sources"] == second["sources"] == ["leave.md"]
    assert first["session"] != second["session"]
    for one in (first, second):
        assert (await installed.until(one["session"], voice.SessionEnded)).reason == "completed"


async def test_agents_and_experts_are_listed(installed: Installation) -> None:
    agents = (await installed.rest("list_agents")).json()["result"]
    assert {one["name"]: one["in_background"] for one in agents["agents"]} == {
        "host": True,
        "helper": True,
        "librarian": True,
        "parrot": False,
        "claude": False,
    }
    experts = (await installed.rest("list_experts")).json()["result"]
    assert [(one["name"], one["knowledge"]) for one in experts["experts"]] == [("librarian", ["handbook"])]
    assert experts["spoken"] == "There is one expert: librarian."
