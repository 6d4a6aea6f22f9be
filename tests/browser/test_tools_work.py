"""Tasks, approvals, macros and runs in the Tools room, over a real gateway and executor. Effects are counted in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.studio import Studio
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look
from tests.browser.test_work import release, runs

pytestmark = pytest.mark.timeout(300)

LOOKS_MS: Final = 20_000
"""Milliseconds to wait; the room asks every few seconds."""

SLIPS: Final[dict[str, Any]] = {
    "inputs": {"who": {"type": "string"}},
    "steps": [
        {"id": "greet", "call": "echo", "arguments": {"text": "Good morning, ${input.who}."}},
        {"id": "never", "call": "echo", "arguments": {"text": "x"}, "when": "${input.who} == 'nobody'"},
        {"id": "break", "call": "faulty", "on_error": "stop"},
    ],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with past(tmp_path_factory.mktemp("tools-work"), functions=True, packs="built-in,tests.tools.pack") as found:
        yield found


@pytest.fixture
def visit(served: Past, browser: Browser) -> Iterator[Visit]:
    """Open a part of the room, in a browser of its own."""
    with visits(browser, served.url, DESKTOP, check=_quiet) as visit:
        yield visit


def _quiet(studio: Studio) -> None:
    """Fail on messages of the console but those about answers that are expected to be refused."""
    assert [complaint for complaint in studio.complaints if "404" not in complaint] == []


def call(served: Past, name: str, **arguments: object) -> dict[str, Any]:
    """Run a function outside calls. Return its result."""
    answer = httpx.post(f"{served.url}/api/vox/function/{name}", json={"args": arguments}, timeout=30).raise_for_status()
    result: dict[str, Any] = answer.json()["result"]
    return result


def clear(served: Past) -> None:
    """End what earlier tests left."""
    for task in httpx.get(f"{served.url}/api/vox/tasks", timeout=30).json()["tasks"]:
        httpx.delete(f"{served.url}/api/vox/tasks/{task['id']}", timeout=30)


def part(studio: Studio, name: str) -> Locator:
    """Return a section of the room."""
    return studio.page.get_by_role("region", name=name, exact=True)


@pytest.mark.parametrize("size", SIZES)
def test_an_empty_part_says_what_it_is_for(visit: Visit, size: str) -> None:
    for path, words in (
        ("tasks", "No task yet"),
        ("approvals", "Nothing waits for you"),
        ("macros", "No macro yet"),
        ("runs", "No run yet"),
    ):
        studio = visit(f"/tools/{path}", **SIZES[size])
        expect(studio.page.get_by_role("heading", name=words)).to_be_visible(timeout=LOOKS_MS)
        look(studio, f"empty-{path}-{size}")


def test_of_two_tabs_the_first_answer_counts_and_the_other_is_told(served: Past, visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "effects"
    call(served, "destroy", file=str(file))
    one, two = visit("/tools/approvals"), visit("/tools/approvals")
    for studio in (one, two):
        expect(part(studio, "Outside calls").get_by_role("article")).to_contain_text(str(file))
    look(one, "approvals-desktop")
    part(one, "Outside calls").get_by_role("button", name="No", exact=True).click()
    expect(one.page.get_by_text("Destroy: you said no.")).to_be_visible(timeout=LOOKS_MS)
    expect(two.page.get_by_text("Destroy: It was answered with no, or lapsed.")).to_be_visible(timeout=LOOKS_MS)
    expect(two.button("Yes")).to_have_count(0)
    assert runs(file) == 0


def test_an_answer_that_comes_too_late_is_told_so(served: Past, visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "effects"
    release(file)
    call(served, "destroy", file=str(file))
    early, late = visit("/tools/approvals"), visit("/tools/approvals")
    expect(late.button("No")).to_be_visible()
    late.page.route("**/api/vox/approvals", lambda route: route.abort())  # from now on it sees no change
    early.button("Yes").click()
    expect(early.page.get_by_text("Destroy: you said yes.")).to_be_visible(timeout=LOOKS_MS)
    late.button("No").click()
    expect(late.page.get_by_text("Destroy: your answer came too late. It was answered with yes.")).to_be_visible(timeout=LOOKS_MS)
    assert runs(file) == 1


def test_what_is_approved_for_good_is_listed_and_taken_back_by_keys_alone(served: Past, visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "effects"
    release(file)
    call(served, "destroy", file=str(file))
    studio = visit("/tools/approvals")
    expect(part(studio, "Approved for good")).to_contain_text("Nothing: you are asked each time.")
    always = studio.page.get_by_text("Always…", exact=True)
    always.focus()
    always.press("Enter")
    studio.button("Yes, and always for Destroy").press("Enter")
    expect(studio.page.get_by_text("Destroy: you said yes.")).to_be_visible(timeout=LOOKS_MS)
    assert call(served, "destroy", file=str(file))["spoken"] == "Gone."
    studio.open("/tools/approvals")
    expect(part(studio, "Approved for good")).to_contain_text("with any values", timeout=LOOKS_MS)
    look(studio, "approvals-standing-desktop")
    studio.button("Ask again before Destroy").press("Enter")
    expect(part(studio, "Approved for good")).to_contain_text("Nothing: you are asked each time.", timeout=LOOKS_MS)
    assert call(served, "destroy", file=str(tmp_path / "another"))["status"] == "needs_approval"


@pytest.mark.parametrize("size", SIZES)
def test_tasks_are_followed_cancelled_and_their_results_read(served: Past, visit: Visit, tmp_path: Path, size: str) -> None:
    ends, stays = tmp_path / "ends", tmp_path / "stays"
    clear(served)
    call(served, "work", file=str(ends))
    call(served, "work", file=str(stays))
    call(served, "set_timer", seconds=3000, label="tea")
    studio = visit("/tools/tasks", **SIZES[size])
    running = part(studio, "Outside calls").get_by_role("listitem")
    expect(running.filter(has=studio.page.get_by_role("progressbar"))).to_have_count(2, timeout=LOOKS_MS)
    expect(running.filter(has_text="tea")).to_contain_text("due in")
    expect(running.first).to_contain_text("half way")
    release(ends)
    done = part(studio, "Ended").get_by_role("listitem").filter(has_text="Work").filter(has_text="done").first
    expect(done).to_be_visible(timeout=LOOKS_MS)
    done.get_by_text("Result").click()
    expect(done).to_contain_text("Pages")
    look(studio, f"tasks-{size}")
    for name in ("Cancel Work", "Cancel Set timer"):
        expect(studio.button(name)).to_have_count(1, timeout=LOOKS_MS)
        studio.button(name).click()
        expect(studio.button(name)).to_have_count(0, timeout=LOOKS_MS)
    expect(part(studio, "Ended").get_by_role("listitem").filter(has_text="cancelled").first).to_be_visible()
    assert runs(stays) == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_macro_is_run_its_trace_says_why_it_failed_and_it_is_deleted(served: Past, visit: Visit, size: str) -> None:
    name = f"Check {size}"  # a call that is repeated within seconds is answered with the first one's result
    macro = {**SLIPS, "name": name, "trigger": f"{name} for {{who}}".lower()}
    httpx.post(f"{served.url}/api/vox/macros", json=macro, timeout=30).raise_for_status()
    studio = visit("/tools/macros", **SIZES[size])
    page = studio.page
    expect(page.get_by_role("listitem").filter(has_text=name)).to_contain_text(f"Say “{macro['trigger']}”.")
    studio.button(f"Run {name}").click()
    page.get_by_role("textbox", name="Who").fill("Ada")
    look(studio, f"macros-{size}")
    page.get_by_role("textbox", name="Who").press("Enter")
    page.wait_for_url("**/tools/runs/*")
    trace = page.get_by_role("article")
    expect(trace).to_contain_text("It failed at break", timeout=LOOKS_MS)
    steps = trace.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.nth(0)).to_contain_text("done")
    expect(steps.nth(1)).to_contain_text("left out")
    expect(steps.nth(2)).to_contain_text("failed")
    steps.nth(0).get_by_text("Arguments and result").click()
    expect(trace.get_by_role("region", name="Arguments of greet")).to_contain_text("Good morning, Ada.")
    expect(trace.get_by_role("region", name="Result of greet")).to_contain_text("Good morning, Ada.")
    look(studio, f"trace-{size}")
    studio.open("/tools/runs")
    expect(part(studio, "Ended within a day").get_by_role("listitem").first).to_contain_text("failed", timeout=LOOKS_MS)
    look(studio, f"runs-{size}")
    studio.open("/tools/macros")
    studio.button(f"Delete {name}").click()
    studio.button("Keep it").click()
    studio.button(f"Delete {name}").click()
    studio.button("Delete it").click()
    page.wait_for_function("async () => (await (await fetch('/api/vox/macros')).json()).count === 0", timeout=LOOKS_MS, polling=1_000)


def test_a_run_that_asks_is_answered_and_another_is_cancelled(served: Past, visit: Visit) -> None:
    asks = {
        "name": "Ask me",
        "steps": [{"id": "who", "ask": "Who is it for?"}, {"id": "tell", "call": "echo", "arguments": {"text": "For ${prev.text}."}}],
    }
    httpx.post(f"{served.url}/api/vox/macros", json=asks, timeout=30).raise_for_status()
    studio = visit("/tools/macros")
    page = studio.page
    studio.button("Run Ask me").click()
    expect(page.get_by_role("article")).to_contain_text("Who is it for?", timeout=LOOKS_MS)
    look(studio, "trace-asking-desktop")
    page.get_by_role("textbox", name="Your answer").fill("Ada")
    page.get_by_role("textbox", name="Your answer").press("Enter")
    expect(page.get_by_role("article")).to_contain_text("For Ada.", timeout=LOOKS_MS)
    studio.open("/tools/macros")
    studio.button("Run Ask me").click()
    expect(page.get_by_role("article")).to_contain_text("Who is it for?", timeout=LOOKS_MS)
    studio.button("Cancel Ask me").click()
    expect(page.get_by_role("article")).to_contain_text("It was cancelled", timeout=LOOKS_MS)


def test_a_run_that_is_not_there_is_said_to_be_missing(visit: Visit) -> None:
    studio = visit("/tools/runs/nothing")
    expect(studio.page.get_by_role("alert")).to_contain_text("There is no such run.")
    assert studio.violations() == []
