"""Plain orders: whole requests that are calls as they stand, in the user's own words; all else is left to the model."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.models.test_choice import _plan
from voxbridge.services.models.api.bodies import MAX_ORDERS, ChatRequest
from voxbridge.services.models.choice.orders import JOINTS_LIMIT, PARTS_LIMIT, SAID_LIMIT, read
from voxbridge.services.models.core.chatml import Tool
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.services.tools.session import names

NAMES = ("Claude", "Codex", "build", "Claude Code", "web server 2", "Größe", "中文", "node-18", "Jörg's shell")
"""Names of terminals, as they are said."""

TERMINALS = [
    Tool(
        one.name,
        one.description,
        one.parameters,
        one.utterances,
        names=dict.fromkeys(names.TERMINALS.get(one.name, ()), NAMES),
        orders=one.orders,
        reads=one.effect == "read",
    )
    for one in load(("voxbridge.services.tools.packs.terminals.functions",), timeout_s=30).values()
]
SEED = "Tell Claude to refactor the auth module and tell Codex to write the tests for it. When Claude finishes, paste its diff into Codex."


def calls(said: str) -> list[tuple[str, dict[str, Any]]]:
    return [(order.function, order.arguments) for order in read(said, TERMINALS)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            SEED,
            [
                ("send_to_terminal", {"terminal": "Claude", "text": "refactor the auth module"}),
                ("send_to_terminal", {"terminal": "Codex", "text": "write the tests for it"}),
                ("forward_output", {"source": "Claude", "terminal": "Codex", "when": "done"}),
            ],
        ),
        ("Which terminals are there?", [("list_terminals", {})]),
        ("Start a terminal.", [("start_terminal", {})]),
        ("please open another shell called Build", [("start_terminal", {"name": "Build"})]),
        ("launch Claude Code", [("start_terminal", {"program": "claude"})]),
        ("Fire up the Gemini CLI", [("start_terminal", {"program": "gemini"})]),
        ("open a new terminal and start codex", [("start_terminal", {}), ("start_terminal", {"program": "codex"})]),
        ("what does the build terminal say?", [("read_terminal", {"terminal": "the build terminal"})]),
        ("Stop the program.", [("send_key", {"key": "ctrl-c"})]),
        ("What did it say?", [("read_terminal", {})]),
        ("what did Claude answer", [("read_terminal", {"terminal": "Claude"})]),
        ("press control c, please", [("send_key", {"key": "ctrl-c"})]),
        ("Press escape in Codex", [("send_key", {"key": "escape", "terminal": "Codex"})]),
        ("tell me when Claude Code is done", [("wait_for_terminal", {"terminal": "Claude Code", "until": "done"})]),
        ("tell claude to add a test and run it", [("send_to_terminal", {"terminal": "claude", "text": "add a test and run it"})]),
        (
            "Tell Claude to fix the bug, then tell Codex to review it",
            [
                ("send_to_terminal", {"terminal": "Claude", "text": "fix the bug"}),
                ("send_to_terminal", {"terminal": "Codex", "text": "review it"}),
            ],
        ),
        (
            "When Claude is done, paste its stiff into Codex",
            [("forward_output", {"source": "Claude", "terminal": "Codex", "when": "done"})],
        ),
        ("send Claude's commit message to Codex", [("forward_output", {"source": "Claude", "terminal": "Codex"})]),
        ("paste Claude's answer into Codex", [("forward_output", {"source": "Claude", "terminal": "Codex"})]),
        ("show codex what claude wrote", [("forward_output", {"source": "claude", "terminal": "codex"})]),
        ("ask Codex why the login test is flaky", [("send_to_terminal", {"terminal": "Codex", "text": "why the login test is flaky"})]),
        ("Claude, please split the parser", [("send_to_terminal", {"terminal": "Claude", "text": "split the parser"})]),
        ("could you tell Codex to use tabs", [("send_to_terminal", {"terminal": "Codex", "text": "use tabs"})]),
        ("tell Claude to go on to the next file", [("send_to_terminal", {"terminal": "Claude", "text": "go on to the next file"})]),
        ("let Claude see what Codex wrote", [("forward_output", {"terminal": "Claude", "source": "Codex"})]),
        (
            "Tell Claude to write the docs. When it is done, give its answer to Codex.",
            [
                ("send_to_terminal", {"terminal": "Claude", "text": "write the docs"}),
                ("forward_output", {"source": "Claude", "terminal": "Codex", "when": "done"}),
            ],
        ),
        ("run git status in the build terminal", [("run_in_terminal", {"command": "git status", "terminal": "build"})]),
        ("Codex should see the error in build", [("forward_output", {"terminal": "Codex", "source": "build"})]),
        ("press the down arrow twice in Codex", [("send_key", {"key": "down", "terminal": "Codex", "times": 2})]),
        ("stop the build terminal", [("send_key", {"key": "ctrl-c", "terminal": "build"})]),
        ("read me the screen of Codex", [("read_terminal", {"terminal": "Codex"})]),
        ("give me a status report", [("list_terminals", {})]),
        (
            "tell codex to write: if a then b; else c",
            [("send_to_terminal", {"terminal": "codex", "text": "write: if a then b; else c"})],
        ),
    ],
)
def test_what_is_ordered_is_read_in_the_users_own_words(said: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert calls(said) == expected


@pytest.mark.parametrize(
    "said",
    [
        "What is the capital of France?",
        "tell me how to exit vim",
        "don't tell claude to stop",
        "he said tell claude to stop",
        "did you tell claude to stop",
        "tell everyone to stop",
        "ask it to go on",
        "tell me a joke and tell claude to stop",
        "have lunch and get claude to work",
        "press the yes key",
        "stop",
        "start a timer",
        "open the tools page",
        "run the tests in the terminal",
        "start claude on the tests",
        "ask Peter why the test is flaky",
        "stop the music",
        "run the tests in build",
        "run ls minus l in build",
        "what would Claude do about it",
        "when it is done give its answer to Codex",
        "Tell Claude to refactor the auth module, and what is the time in Rome?" * 8,
        "",
    ],
)
def test_what_is_no_order_as_a_whole_is_left_to_the_model(said: str) -> None:
    assert calls(said) == []


def test_a_request_has_a_length_and_a_number_of_orders_at_most() -> None:
    begin = "tell claude to "
    assert len(calls(begin + "x" * (SAID_LIMIT - len(begin)))) == 1
    assert calls(begin + "x" * (SAID_LIMIT - len(begin) + 1)) == []
    assert len(calls(", ".join(["press enter"] * PARTS_LIMIT))) == PARTS_LIMIT
    assert calls(", ".join(["press enter"] * (PARTS_LIMIT + 1))) == []


def test_a_request_has_so_many_joints_at_most() -> None:
    assert calls("tell claude to " + "a, " * JOINTS_LIMIT + "a") == [
        ("send_to_terminal", {"terminal": "claude", "text": "a, " * JOINTS_LIMIT + "a"})
    ]
    assert calls("tell claude to " + "a, " * (JOINTS_LIMIT + 1) + "a") == []


def test_the_service_takes_all_templates_that_functions_have() -> None:
    def offer(templates: list[str]) -> dict[str, Any]:
        function = {"name": "f", "orders": templates}
        return {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": function}]}

    every = [tool.orders for tool in load(BUILT_IN, timeout_s=30).values()]
    assert [templates for templates in every if len(templates) > MAX_ORDERS] == []
    ChatRequest.model_validate(offer(["x" * 500] * MAX_ORDERS))
    for wrong in (["x"] * (MAX_ORDERS + 1), ["x" * 501]):
        with pytest.raises(ValidationError):
            ChatRequest.model_validate(offer(wrong))


def test_an_order_needs_no_model_and_the_next_one_follows_its_result() -> None:
    offered = [
        {
            "type": "function",
            "function": {
                "name": one.name, "description": one.description, "parameters": one.parameters,
                "utterances": list(one.utterances), "orders": list(one.orders),
            },
        }
        for one in TERMINALS
    ]  # fmt: skip
    messages: list[dict[str, Any]] = [{"role": "user", "content": SEED}]
    texts = ("refactor the auth module", "write the tests for it", '"source": "Claude"')
    for number, text in enumerate(texts, start=1):
        made = _plan(ChatRequest.model_validate({"messages": messages, "tools": offered}))
        assert text in made.only
        assert made.more == (number < len(texts))
        name = "send_to_terminal" if number < len(texts) else "forward_output"
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        answer = {"role": "tool", "tool_call_id": f"c{number}", "content": '{"success": true, "spoken": "It has it."}'}
        messages += [{"role": "assistant", "tool_calls": [call]}, answer]
    last = _plan(ChatRequest.model_validate({"messages": messages, "tools": offered}))
    assert (last.only, last.more) == ("", False)
