"""Replies that other systems took wrongly (docs/wrong-answers.md), streamed to a real session: what its voice is given, what it calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.voice.conftest import Page, Workers
from tests.voice.model_server import ModelServer, call
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(120)
SAID: Final[list[tuple[list[str], str]]] = [
    (["<thi", "nk>The user wants a joke.</th", "ink>Hello ", "there."], "Hello there."),
    (["Call 555-", "1234 now."], "Call five five five, one two three four now."),
    (["Your code ", "is 482913."], "Your code is four eight two nine one three."),
    (["There are 56m ", "remaining."], "There are fifty-six minutes remaining."),
    (["It takes 2h ", "30m."], "It takes two hours thirty minutes."),
    (["The answer is $17 \\times ", "23 = 391$."], "The answer is 17 times 23 equals 391."),
    (["It starts on Jan. ", "5, 2025 at noon."], "It starts on January fifth, 2025 at noon."),
    (["The U.S. ", "Army is there."], "The U.S. Army is there."),
    (["It is 22.700000", "762939453 °C."], "It is twenty-two point seven degrees Celsius."),
    (
        ["It begins at 2025-11-25T09:30:00", "+02:00."],
        "It begins at November twenty-fifth, twenty twenty-five, nine thirty U T C plus two.",
    ),
    (["That is CA$500, or ", "₹2.5 crore."], "That is five hundred Canadian dollars, or two point five crore rupees."),
    (["It is 3-5 = ", "-2."], "It is three minus five equals minus two."),
]


async def test_what_others_read_out_wrongly_is_said_as_a_person_says_it(workers: Workers, page: Page, model_server: ModelServer) -> None:
    given = []
    async with workers.running():
        await page.open()
        await page.until(ev.SessionStarted)
        for number, (pieces, _) in enumerate(SAID, start=1):
            before = len(model_server.asked("tts"))
            model_server.script("llm", pieces)
            await page.says(gateway.TextReceived(text=f"Question {number}"))
            await page.until(ev.TurnCompleted, number)
            given.append(" ".join(asked["input"] for asked in model_server.asked("tts")[before:]))
        await page.ends()
    assert given == [said for _, said in SAID]
    assert "joke" not in str([one.text for one in page.told(ev.AgentSaid)]), "thoughts are not kept either"


async def test_two_calls_under_one_index_are_two_calls(workers: Workers, page: Page, model_server: ModelServer) -> None:
    function = Function(name="open_page", description="Open a page.", parameters={"type": "object"}, kind="browser")
    first, second = (call("open_page", f'{{"url": "{url}"}}', pieces=2) for url in ("/a", "/b"))
    second[0]["tool_calls"][0]["id"] = "another"
    model_server.script("llm", [*first, *second])
    async with workers.running():
        await page.open(functions=(function,))
        await page.until(ev.SessionStarted, tools=("open_page",))
        await page.says(gateway.TextReceived(text="Open both pages"))
        for number in (1, 2):
            await page.until(ev.ToolCalled, number)
        await page.ends()
    assert [one.arguments for one in page.told(ev.ToolCalled)] == [{"url": "/a"}, {"url": "/b"}]
