"""Spoken requests, and what each must have done: read from the log, the page and the disk, never from what the agent says of it.

Requests of one group are made in one call, one after the other. One that does nothing in time is counted as not done; the call goes on.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import TimeoutError

from tests.browser.stage.product import Event, Product
from tests.browser.stage.speech import spoken
from tests.browser.stage.studio import Studio

ANSWER_S: Final = 180
"""Seconds in which a request must be answered. What is done is under test, so a busy machine is given the time that it takes to read the
functions for the first time."""

SETTLED_S: Final = 15.0
"""Seconds in which the log, the page and the disk must show what was done, once the agent has answered."""

OUTCOMES: Final = ("tool.completed", "browser_call.answered", "task.started", "task.completed", "task.cancelled", "note.remembered")
ANSWERED: Final = """(count) => {
  const s = window.__voxbridge.snapshot();
  const said = s.conversation.filter((e) => e.kind === 'said');
  return s.state === 'listening' && said.every((e) => e.final) && said.filter((e) => e.role === 'assistant').length > count;
}"""

PLAYBOOK: Final = (
    "# Shop\n\n## Refunds\n\nA refund over one hundred euros needs the signature of the shop manager.\n\n## Opening\n\nAt nine.\n"
)
MODULE: Final = "def price(kind):\n    if kind == 'new':\n        return 3\n    return 2 if kind else 1\n"
MACRO: Final = {"name": "Morning round", "steps": [{"id": "add", "call": "calculate", "arguments": {"expression": "6 * 7"}}]}


@dataclass(frozen=True)
class Request:
    """A request and what it asks for. `arguments` and `result` are patterns of the JSON of the call and of its outcomes, in any case;
    `page` is a JavaScript expression, `file` a path in the workspace."""

    say: str
    function: str
    arguments: str = ""
    result: str = ""
    page: str = ""
    file: str = ""


@dataclass(frozen=True)
class Done:
    """A request with what was heard, called and done; `why` is empty if all of it was done."""

    request: Request
    heard: str
    called: str
    answer: str
    why: str


TIME: Final = (
    Request("What time is it in Tokyo?", "current_time", "tokyo", "tokyo"),
    Request("How much is twelve percent of three hundred and fifty?", "calculate", "", r"\b42\b"),
    Request("How many kilometers are twenty six miles?", "convert_units", "26", r"41[.,]8"),
    Request("Set a timer for fifteen minutes.", "set_timer", r"\b900\b", "task_id"),
    Request("What are you working on at the moment?", "list_tasks", "", "timer"),
    Request("Please cancel the timer.", "cancel_task", "", "task.cancelled"),
)
PAGE: Final = (
    Request("Open the sessions page.", "navigate_page", "sessions", "/sessions", page="location.pathname === '/sessions'"),
    Request("What does this page say?", "read_page_content", "", "Sessions"),
    Request("Which page am I on now?", "get_current_page", "", "/sessions"),
    Request("Switch to the dark theme, please.", "switch_theme", "dark", "dark", page="document.documentElement.dataset.theme === 'dark'"),
    Request("Take me to the tools page.", "navigate_page", "tools", "/tools", page="location.pathname.startsWith('/tools')"),
)
NOTES: Final = (
    Request("Remember that my umbrella is in the green suitcase.", "remember", "umbrella.*suitcase", "umbrella"),
    Request("Where is my umbrella?", "recall", "umbrella", "suitcase"),
    Request("Create a project called garden.", "create_project", "garden", "garden", file="garden/project.json"),
    Request("Which projects are there?", "list_projects", "", "garden"),
)
WORK: Final = (
    Request("What does the playbook say about refunds?", "search_playbooks", "refund", "signature"),
    Request("Which macros do I have?", "list_macros", "", "Morning round"),
    Request("Run the morning round macro.", "run_macro", "morning[ _]round", r"\b42\b"),
    Request("Make a strong password with twenty characters.", "generate_password", r"\b20\b", "password"),
    Request("How complex is the file prices dot py?", "analyze_code_complexity", "prices", "price"),
)
ALL: Final = (TIME, PAGE, NOTES, WORK)


def settle(folder: Path) -> dict[str, str]:
    """Write the files that the requests are about. Return the environment for them."""
    workspace, playbooks = folder / "workspace", folder / "playbooks"
    for place in (workspace, playbooks):
        place.mkdir()
    (workspace / "prices.py").write_text(MODULE)
    (playbooks / "shop.md").write_text(PLAYBOOK)
    return {
        "VOXBRIDGE_WORKSPACE_DIRS": str(workspace),
        "VOXBRIDGE_PLAYBOOKS_DIR": str(playbooks),
        "VOXBRIDGE_GREETING": "",
        "VOXBRIDGE_TURN_TIMEOUT_S": str(ANSWER_S),
    }


def save_macro(product: Product) -> None:
    """Save the macro that the requests are about."""
    httpx.post(f"{product.url}/api/vox/macros", json=MACRO, timeout=30).raise_for_status()


def asked(product: Product, studio: Studio, requests: Sequence[Request]) -> list[Done]:
    """Speak the requests in one call of the open page. Return what was done."""
    for request in requests:
        studio.load(request.say, spoken(product.models, request.say))
    sid = studio.start()
    studio.until_quiet()
    found = [_asked(product, studio, sid, request) for request in requests]
    studio.page.get_by_role("navigation", name="Rooms").get_by_role("link", name="Talk").click()
    studio.end()
    return found


def table(found: Sequence[Done]) -> str:
    """Return a line for each request: what was asked, heard, called and said, and why it does not count."""
    lines = [f"{sum(not one.why for one in found)} of {len(found)} done, over {len({one.request.function for one in found})} functions"]
    lines += [f"{'-' if one.why else '+'} {one.request.say} | {one.heard} | {one.called} | {one.answer} | {one.why}" for one in found]
    return "\n".join(lines)


def _asked(product: Product, studio: Studio, sid: str, request: Request) -> Done:
    begun = max((event["seq"] for event in product.log(sid)), default=0)
    answers = len(studio.said("assistant"))
    studio.say(request.say)
    with suppress(TimeoutError):  # what was done by then is judged
        studio.page.wait_for_function(ANSWERED, arg=answers, timeout=ANSWER_S * 1_000)
    deadline = time.monotonic() + SETTLED_S
    while True:
        events = [event for event in product.log(sid) if event["seq"] > begun]
        why = _missing(product, studio, request, events)
        if not why or not _called(request, events) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    said = [line["text"] for line in studio.said("assistant")[answers:]]
    heard = [event["data"]["text"] for event in events if event["type"] == "user.said"]
    calls = [f"{event['data']['name']} {_json(event['data']['arguments'])}" for event in events if event["type"] == "tool.called"]
    return Done(request, " ".join(heard), "; ".join(calls), " ".join(said), why)


def _called(request: Request, events: Sequence[Event]) -> list[Event]:
    calls = [event for event in events if event["type"] == "tool.called"]
    return [one for one in calls if request.function in (one["data"]["name"], one["data"]["arguments"].get("tool_id"))]


def _missing(product: Product, studio: Studio, request: Request, events: Sequence[Event]) -> str:
    """Return what of a request has not been done, empty if all of it has."""
    called = _called(request, events)
    if not called:
        return f"{request.function} was not called"
    if not re.search(request.arguments, _json([one["data"]["arguments"] for one in called]), re.IGNORECASE):
        return f"not with {request.arguments}"
    outcomes = [{"type": event["type"], **event["data"]} for event in events if event["type"] in OUTCOMES]
    if not re.search(request.result, _json(outcomes), re.IGNORECASE):
        failed = [event["data"] for event in events if event["type"] == "tool.failed"]
        return f"no {request.result} in what came of it {_json(failed)}"
    if request.page and not studio.page.evaluate(f"() => {request.page}"):
        return f"the page does not show it: {request.page}"
    if request.file and not (Path(product.environment["VOXBRIDGE_WORKSPACE_DIRS"]) / request.file).is_file():
        return f"there is no {request.file}"
    return ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
