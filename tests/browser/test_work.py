"""Approvals and tasks in a call: asked, answered once, followed over a reload, and ended, by a click, a key or another window.

The language model is scripted, since the page is under test; all else is the product. Effects are counted in a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.cable import cable
from tests.browser.stage.product import Product, running
from tests.browser.stage.studio import Studio
from tests.browser.stage.thread import in_thread
from tests.browser.test_looks import SIZES, look
from tests.running_models import RunningModels
from tests.voice.model_server import ModelServer, call

pytestmark = pytest.mark.timeout(300)

Visit = Callable[..., Studio]
PACKS = "built-in,tests.tools.pack"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with in_thread(ModelServer()) as found:
        yield found


@pytest.fixture(scope="module")
def own_product(models: RunningModels, model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    environment = {"VOXBRIDGE_LLM_URL": model.url, "VOXBRIDGE_GREETING": "", "VOXBRIDGE_TOOL_PACKS": PACKS}
    with running(tmp_path_factory.mktemp("work"), models, environment=environment) as found:
        yield found


@pytest.fixture
def visit(own_product: Product, browser: Browser) -> Iterator[Visit]:
    """Open Talk, at the product's address or another one."""
    with ExitStack() as pages:

        def open_page(url: str = "", **options: Any) -> Studio:
            context = browser.new_context(**{**DESKTOP, **options})
            pages.callback(context.close)
            studio = Studio(context.new_page(), url or own_product.url)
            studio.cuts_are_expected()
            studio.open()
            pages.callback(_quiet, studio)
            return studio

        yield open_page


def _quiet(studio: Studio) -> None:
    assert studio.complaints == []


def runs(file: Path) -> int:
    """Return how often a function of the pack ran."""
    return len(file.read_text().splitlines()) if file.exists() else 0


def release(file: Path) -> None:
    """Let a function of the pack return."""
    Path(f"{file}.go").touch()


def asks(studio: Studio) -> Locator:
    """Return the cards that wait for an answer."""
    return studio.page.get_by_role("region", name="Waiting for you").get_by_role("article")


def asked(studio: Studio, model: ModelServer, file: Path) -> Locator:
    """Have the model ask for something that destroys. Return its card."""
    model.script("llm", call("destroy", json.dumps({"file": str(file)})))
    studio.type("Destroy it.")
    card = asks(studio)
    expect(card).to_contain_text("Destroy?")
    expect(card).to_contain_text("destroys")
    expect(card).to_contain_text(str(file))
    return card


def begun(studio: Studio, model: ModelServer, file: Path) -> Locator:
    """Have the model begin a task that goes on until it is released. Return its card."""
    model.script("llm", call("work", json.dumps({"file": str(file)})))
    studio.type("Work on it.")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'running' && e.done === 0.5)")
    return studio.captions().locator(".card").filter(has_text="Work").last


@pytest.mark.parametrize("size", SIZES)
def test_a_click_approves_and_the_function_runs_once(
    own_product: Product, visit: Visit, model: ModelServer, tmp_path: Path, size: str
) -> None:
    studio, file = visit(**SIZES[size]), tmp_path / "effects"
    card = asked(studio, model, file)
    expect(card.get_by_role("timer")).to_contain_text("left")
    assert studio.page.evaluate("() => document.activeElement === document.body")
    studio.until_quiet()
    look(studio, f"asking-{size}")
    card.get_by_text("Always…").click()
    look(studio, f"asking-always-{size}")
    card.get_by_role("button", name="Yes", exact=True).click()
    expect(asks(studio)).to_have_count(0)
    expect(studio.captions()).to_contain_text("You said yes.")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'running')")
    release(file)
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'done')")
    sid = str(studio.snapshot()["sessionId"])
    ended = own_product.logged(sid, "approval.ended")
    assert [(one["data"]["outcome"], one["data"]["by"]) for one in ended] == [("approved", "click")]
    assert runs(file) == 1
    studio.until_said("assistant", "gone")
    look(studio, f"approved-{size}")
    studio.end()


def test_by_keys_alone_a_request_is_found_and_refused(own_product: Product, visit: Visit, model: ModelServer, tmp_path: Path) -> None:
    studio, file = visit(), tmp_path / "effects"
    asked(studio, model, file)
    keyboard = studio.page.keyboard
    keyboard.press("a")
    expect(asks(studio)).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Tab")
    expect(studio.button("No")).to_be_focused()
    keyboard.press("Enter")
    expect(asks(studio)).to_have_count(0)
    expect(studio.captions()).to_be_focused()
    expect(studio.captions()).to_contain_text("You said no.")
    ended = own_product.logged(str(studio.snapshot()["sessionId"]), "approval.ended")
    assert [(one["data"]["outcome"], one["data"]["by"]) for one in ended] == [("denied", "click")]
    assert runs(file) == 0
    studio.end()


def test_an_answer_in_words_ends_the_card(visit: Visit, model: ModelServer, tmp_path: Path) -> None:
    studio, file = visit(), tmp_path / "effects"
    asked(studio, model, file)
    studio.until_said("assistant", "Please say yes or no")
    studio.until_quiet()
    studio.type("No.")
    expect(asks(studio)).to_have_count(0)
    expect(studio.captions()).to_contain_text("You said no aloud.")
    assert runs(file) == 0
    studio.end()


def test_of_two_windows_the_first_answer_counts_and_the_other_is_told(
    own_product: Product, visit: Visit, model: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "effects"
    with cable(own_product.url) as line:
        studio = visit(line.url)
        card = asked(studio, model, file)
        line.cut()
        studio.until_state("reconnecting")
        card.get_by_role("button", name="Yes", exact=True).click()
        expect(card).to_contain_text("Your yes is on its way.")
        other = takes_over(studio, visit(), own_product)
        asks(other).get_by_role("button", name="No", exact=True).click()
        expect(other.captions()).to_contain_text("You said no.")
        line.mend()
        studio.until("(s) => s.connection === 'connected'")
        expect(asks(studio)).to_have_count(0)
        expect(studio.captions()).to_contain_text("It was answered with no elsewhere, before your click.")
        look(studio, "answered-late-desktop")
        other.until_state("elsewhere")
        assert runs(file) == 0
        ended = own_product.logged(str(studio.snapshot()["sessionId"]), "approval.ended")
        assert [one["data"]["outcome"] for one in ended] == ["denied"]
        studio.end()


def takes_over(studio: Studio, other: Studio, product: Product) -> Studio:
    """Have another window go on with the call, as a reopened tab does."""
    ticket = json.loads(studio.page.evaluate("() => sessionStorage.getItem('voxbridge.call')"))
    ticket["url"] = f"{product.url.replace('http', 'ws')}/ws/vox"
    other.page.evaluate("(ticket) => sessionStorage.setItem('voxbridge.call', JSON.stringify({ ...ticket, left: Date.now() }))", ticket)
    other.open()
    other.until("(s) => s.connection === 'connected'")
    return other


@pytest.mark.parametrize("size", SIZES)
def test_a_task_outlives_a_reload_and_announces_itself(visit: Visit, model: ModelServer, tmp_path: Path, size: str) -> None:
    studio, file = visit(**SIZES[size]), tmp_path / "effects"
    begun(studio, model, file)
    studio.page.reload()
    studio.until("(s) => s.connection === 'connected'")
    card = studio.captions().locator(".card").filter(has_text="half way")
    expect(card.get_by_role("progressbar", name="Progress of Work")).to_have_js_property("value", 0.5)
    expect(card).to_contain_text("50 %")
    studio.until_quiet()
    look(studio, f"task-{size}")
    release(file)
    studio.until_said("assistant", "Your report is ready")
    assert runs(file) == 1
    studio.end()


def test_a_click_cancels_a_task(own_product: Product, visit: Visit, model: ModelServer, tmp_path: Path) -> None:
    studio, file = visit(), tmp_path / "effects"
    begun(studio, model, file)
    studio.button("Cancel Work").click()
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'cancelled')")
    expect(studio.button("Cancel Work")).to_have_count(0)
    card = studio.captions().locator(".card").filter(has_text="Work").last
    expect(card).to_contain_text("cancelled")
    card.locator("summary").click()
    expect(card).to_contain_text("What it had done by then stays.")
    assert len(own_product.logged(str(studio.snapshot()["sessionId"]), "task.cancelled")) == 1
    studio.end()


ASKS = [{"id": "who", "ask": "Who is it for?"}, {"id": "tell", "call": "echo", "arguments": {"text": "For ${prev.text}."}}]
FAILS = [{"id": "break", "call": "faulty", "on_error": "ask"}]


@pytest.mark.parametrize("size", SIZES)
def test_a_run_asks_in_a_card_and_goes_on_with_the_answer(own_product: Product, visit: Visit, model: ModelServer, size: str) -> None:
    name = f"Ask on {size}"
    httpx.post(f"{own_product.url}/api/vox/macros", json={"name": name, "steps": ASKS}, timeout=30).raise_for_status()
    studio = visit(**SIZES[size])
    model.script("llm", call("run_macro", json.dumps({"name": name})))
    studio.type("Run it.")
    card = asks(studio)
    expect(card).to_contain_text("Who is it for?")
    studio.until_quiet()
    look(studio, f"run-asking-{size}")
    studio.page.reload()
    studio.until("(s) => s.connection === 'connected'")
    answer = asks(studio).get_by_role("textbox", name="Your answer")
    answer.fill("Ada")
    answer.press("Enter")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'done' && e.result.text === 'For Ada.')")
    expect(asks(studio)).to_have_count(0)
    done = studio.captions().locator(".card").filter(has_text=name)
    done.locator("summary").click()
    expect(done.get_by_role("link", name="Its steps")).to_be_visible()
    studio.end()


def test_after_a_failed_step_a_click_says_what_to_do(own_product: Product, visit: Visit, model: ModelServer) -> None:
    httpx.post(f"{own_product.url}/api/vox/macros", json={"name": "Fails", "steps": FAILS}, timeout=30).raise_for_status()
    studio = visit()
    model.script("llm", call("run_macro", json.dumps({"name": "Fails"})))
    studio.type("Run it.")
    asks(studio).get_by_role("button", name="Stop", exact=True).click()
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'failed')")
    expect(asks(studio)).to_have_count(0)
    studio.end()


def test_in_another_room_the_call_is_answered_and_its_tasks_are_cancelled(
    own_product: Product, visit: Visit, model: ModelServer, tmp_path: Path
) -> None:
    studio, file = visit(), tmp_path / "effects"
    begun(studio, model, tmp_path / "work")
    asked(studio, model, file)
    page = studio.page
    page.get_by_role("link", name="Tools", exact=True).click()
    parts = page.get_by_role("navigation", name="Parts of Tools")
    expect(parts.get_by_role("link", name="Approvals")).to_contain_text("1")
    parts.get_by_role("link", name="Approvals").click()
    here = page.get_by_role("region", name="In this call", exact=True)
    release(file)
    here.get_by_role("button", name="Yes", exact=True).click()
    studio.until("(s) => s.conversation.some((e) => e.kind === 'approval' && e.outcome === 'approved' && e.by === 'click')")
    expect(here).to_have_count(0)
    parts.get_by_role("link", name="Tasks").click()
    look(studio, "tasks-in-call-desktop")
    here.get_by_role("button", name="Cancel Work").click()
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'cancelled')")
    expect(here).to_have_count(0)
    assert runs(file) == 1
    page.get_by_role("navigation", name="Rooms").get_by_role("link", name="Talk").click()
    studio.end()


def remembered(studio: Studio, model: ModelServer, note: str, count: int) -> None:
    """Have the model keep a note, and wait until that is done and the agent has answered, for the n-th time."""
    model.script("llm", call("remember", json.dumps({"note": note})))
    studio.type("Remember this.")
    done = "e.kind === 'call' && e.name === 'remember' && e.undo === 'possible'"
    studio.until(f"(s, n) => s.conversation.filter((e) => {done}).length === n", count)
    studio.until_said("assistant", "All right")
    studio.until_quiet()


@pytest.mark.parametrize("size", SIZES)
def test_what_was_done_is_taken_back_by_a_click_and_by_words_and_its_card_says_so(
    own_product: Product, visit: Visit, model: ModelServer, size: str
) -> None:
    studio = visit(**SIZES[size])
    for count, text in enumerate(("the first", "the second"), 1):
        remembered(studio, model, f"This is {text} on {size}.", count)
        card = studio.captions().locator(".card").filter(has_text=text)
        expect(card.get_by_role("button", name="Undo Remember")).to_be_visible()
    look(studio, f"undo-{size}")
    first, second = (studio.captions().locator(".card").filter(has_text=text) for text in ("the first", "the second"))
    first.get_by_role("button", name="Undo Remember").click()
    expect(first).to_contain_text("I forgot the note.")
    model.script("llm", call("undo_last", "{}"))
    studio.type("Take that back.")
    expect(second).to_contain_text("Taken back.")
    studio.page.reload()
    studio.until("(s) => s.connection === 'connected'")
    expect(second).to_contain_text("Taken back.")
    expect(second.get_by_role("button", name="Undo Remember")).to_have_count(0)
    found = httpx.post(f"{own_product.url}/api/vox/function/recall", json={"args": {"query": size}}, timeout=30).json()
    assert found["result"]["notes"] == []
    studio.end()


def test_a_proposal_is_asked_about_without_an_offer_to_approve_it_for_good(visit: Visit, model: ModelServer) -> None:
    studio = visit()
    remembered(studio, model, "To be drafted from.", 1)
    model.script("llm", call("create_macro", json.dumps({"name": "drafted"})))
    studio.type("Save what I just did.")
    card = asks(studio)
    expect(card).to_contain_text("Create macro?")
    expect(card.get_by_text("Always…")).to_have_count(0)
    card.get_by_role("button", name="No", exact=True).click()
    expect(asks(studio)).to_have_count(0)
    studio.end()
