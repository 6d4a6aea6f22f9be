"""The Bridge over a real gateway, a real service and real shells: typed into, split, renamed, taken over, and killed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.terminals import Terminals, terminals
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look
from tests.eventually import BOUND_S

pytestmark = pytest.mark.timeout(300)

SHOWN: Final = """(name) =>
  [...document.querySelectorAll(`[aria-label='Screen of ${name}'] .xterm-rows > div`)].map((row) => row.textContent)"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    with terminals(tmp_path_factory.mktemp("bridge")) as found:
        yield found


@pytest.fixture
def visit(fleet: Terminals, browser: Browser) -> Iterator[Visit]:
    with visits(browser, fleet.url, DESKTOP) as visit:
        yield visit
    for card in fleet.answers()["terminals"]:
        fleet.ask("DELETE", f"/{card['id']}")


def start(fleet: Terminals, name: str, definition: str = "bash") -> str:
    """Start a program; return the id of its terminal once it waits."""
    terminal = fleet.ask("POST", definition=definition, name=name)["id"]
    assert fleet.ask("POST", f"/{terminal}/wait", until="idle", timeout_s=20)["met"]
    return str(terminal)


def rows(page: Page, name: str) -> str:
    """Return the rows that a pane shows."""
    return "\n".join(row.rstrip(" \xa0") for row in page.evaluate(SHOWN, name)).replace("\xa0", " ").rstrip()


def shows(page: Page, name: str, text: str) -> None:
    """Wait until a pane shows a text."""
    expect(page.get_by_label(f"Screen of {name}").locator(".xterm-rows")).to_contain_text(re.compile(text), timeout=20_000)


def same(page: Page, fleet: Terminals, name: str, terminal: str) -> None:
    """Check that a pane shows what the service has."""
    until = time.monotonic() + BOUND_S
    while (shown := rows(page, name)) != (meant := fleet.text(terminal).rstrip()):
        assert time.monotonic() < until, f"{shown}\n----\n{meant}"
        page.wait_for_timeout(50)


@pytest.mark.parametrize("size", SIZES)
def test_a_shell_is_started_typed_into_and_seen_beside_another(visit: Visit, fleet: Terminals, size: str) -> None:
    studio = visit("/bridge", **SIZES[size])
    page = studio.page
    expect(page.get_by_text("No terminal runs.")).to_be_visible(timeout=20_000)
    look(studio, f"bridge-empty-{size}")
    page.get_by_text("Name and folder").click()
    page.get_by_label("Name", exact=True).fill("Build")
    page.get_by_role("button", name="Start", exact=True).click()
    shows(page, "Build", r"[$#] ")
    page.keyboard.type("echo $((6*7)) one\n")
    shows(page, "Build", "42 one")
    other = start(fleet, "Other")
    page.get_by_role("button", name="Open Other beside the others").click()
    shows(page, "Other", r"[$#] ")
    page.keyboard.type("seq 3; read -sp 'Password: ' x\n")
    shows(page, "Other", "Password: ")
    expect(page.get_by_text("1 needs you.")).to_be_visible(timeout=10_000)
    expect(page.locator(".rows li").first).to_contain_text("wants a password")
    expect(page).to_have_title("(1) Bridge · Voxbridge")
    look(studio, f"bridge-{size}")
    page.keyboard.type("x\n")
    expect(page.get_by_text("1 needs you.")).not_to_be_visible(timeout=10_000)
    build = next(card["id"] for card in fleet.answers()["terminals"] if card["name"] == "Build")
    same(page, fleet, "Build", build)
    same(page, fleet, "Other", other)
    page.get_by_role("region", name="Other", exact=True).get_by_role("button", name="History").click()
    history = page.get_by_role("region", name="What happened here")
    expect(history).to_contain_text("It asks for a password or a login", timeout=10_000)
    # That an x was typed where a password was asked for is not counted.
    expect(history).to_contain_text("Somebody typed 31 bytes.", timeout=20_000)
    expect(history.locator("tr").last).to_contain_text("local started bash in /")
    look(studio, f"bridge-history-{size}")
    page.reload()
    shows(page, "Build", "42 one")
    same(page, fleet, "Other", other)


def test_what_kills_the_service_or_the_gateway_changes_no_screen(visit: Visit, fleet: Terminals) -> None:
    terminal = start(fleet, "Long")
    studio = visit(f"/bridge?open={terminal}")
    page = studio.page
    shows(page, "Long", r"[$#] ")
    page.get_by_label("Screen of Long").click()
    page.keyboard.type("for i in $(seq 40000); do echo row $i; done; echo finished\n")
    shows(page, "Long", r"row \d+")
    fleet.service.stop()
    fleet.service.start()
    shows(page, "Long", "finished")
    same(page, fleet, "Long", terminal)
    fleet.kill_gateway()
    expect(page.get_by_text("The connection to the terminals was lost.")).to_be_visible(timeout=10_000)
    studio.picture("bridge-cut")
    fleet.start_gateway()
    expect(page.get_by_role("alert")).not_to_be_visible(timeout=20_000)
    page.keyboard.type("echo still $((40+2))\n")
    shows(page, "Long", "still 42")


def test_a_flood_leaves_the_page_usable_and_ends_exact(visit: Visit, fleet: Terminals) -> None:
    flooded, calm = start(fleet, "Flood"), start(fleet, "Calm")
    studio = visit(f"/bridge?open={flooded},{calm}")
    page = studio.page
    shows(page, "Flood", r"[$#] ")
    shows(page, "Calm", r"[$#] ")
    page.get_by_label("Screen of Flood").click()
    page.keyboard.type("seq 3000000; echo poured\n")
    shows(page, "Flood", r"\d{4}")
    page.get_by_label("Screen of Calm").click()
    page.keyboard.type("echo calm $((1+1))\n")
    shows(page, "Calm", "calm 2")
    shows(page, "Flood", "poured")
    same(page, fleet, "Flood", flooded)


def test_the_keys_are_taken_over_from_another_window(visit: Visit, fleet: Terminals) -> None:
    terminal = start(fleet, "Shared")
    mine, theirs = (visit(f"/bridge?open={terminal}").page for _ in range(2))
    for page in (mine, theirs):
        shows(page, "Shared", r"[$#] ")
    mine.get_by_role("button", name="Take over").click()
    expect(mine.get_by_text("You alone type")).to_be_visible()
    expect(theirs.get_by_text("types, in another window")).to_be_visible()
    theirs.get_by_label("Screen of Shared").click()
    theirs.keyboard.type("echo lost\n")
    mine.get_by_label("Screen of Shared").click()
    mine.keyboard.type("echo kept\n")
    for page in (mine, theirs):
        shows(page, "Shared", "kept")
    assert "lost" not in fleet.text(terminal)
    theirs.get_by_role("button", name="Take over").click()
    expect(theirs.get_by_text("You alone type")).to_be_visible()
    expect(mine.get_by_text("types, in another window")).to_be_visible()
    theirs.get_by_role("button", name="Give back").click()
    expect(mine.get_by_text("types, in another window")).not_to_be_visible()
    mine.get_by_label("Screen of Shared").click()
    mine.keyboard.type("echo both\n")
    shows(theirs, "Shared", "both")


def test_everything_is_done_by_keyboard(visit: Visit, fleet: Terminals) -> None:
    start(fleet, "One")
    studio = visit("/bridge")
    page = studio.page
    expect(page.get_by_role("button", name="One idle")).to_be_visible(timeout=20_000)
    page.keyboard.press("Alt+Shift+Digit1")
    shows(page, "One", r"[$#] ")
    page.keyboard.type("echo typed\n")
    shows(page, "One", "typed")
    page.keyboard.press("F6")
    focused = page.evaluate("() => document.activeElement.closest('.fleet') !== null")
    assert focused
    page.keyboard.press("F6")
    page.keyboard.type("echo again\n")
    shows(page, "One", "again")
    rename = page.get_by_role("button", name="Rename")
    rename.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("Renamed\n")
    expect(page.get_by_role("region", name="Renamed")).to_be_visible(timeout=10_000)
    page.get_by_role("button", name="Explain").press("Enter")
    expect(page.get_by_role("region", name="Why this state")).to_contain_text("shell")
    look(studio, "bridge-explained")
    page.get_by_label("Screen of Renamed").locator("textarea").focus()
    page.keyboard.type("exit 3\n")
    restart = page.get_by_role("button", name="Restart")
    expect(restart).to_be_visible(timeout=20_000)
    look(studio, "bridge-ended")
    restart.press("Enter")
    expect(restart).not_to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Close", exact=True).first.press("Enter")
    page.get_by_role("button", name="Close it").press("Enter")
    expect(page.get_by_text("No terminal runs.")).to_be_visible(timeout=20_000)


def test_without_the_service_one_sentence_says_so(visit: Visit, fleet: Terminals) -> None:
    terminal = start(fleet, "Kept")
    fleet.service.stop()
    studio = visit(f"/bridge?open={terminal}")
    page = studio.page
    expect(page.get_by_role("alert")).to_contain_text("terminals", timeout=20_000)
    look(studio, "bridge-away")
    fleet.service.start()
    shows(page, "Kept", r"[$#] ")
    expect(page.get_by_role("alert")).not_to_be_visible()


def test_a_phone_has_the_keys_that_its_keyboard_lacks(visit: Visit, fleet: Terminals) -> None:
    terminal = start(fleet, "Pocket")
    page = visit(f"/bridge?open={terminal}", **SIZES["phone"]).page
    shows(page, "Pocket", r"[$#] ")
    page.get_by_label("Screen of Pocket").tap()
    page.keyboard.type("sleep 600\n")
    ctrl = page.get_by_role("button", name="Ctrl")
    ctrl.tap()
    expect(ctrl).to_have_attribute("aria-pressed", "true")
    page.keyboard.type("c")
    shows(page, "Pocket", r"\^C")
    page.keyboard.type("echo on the road")
    page.get_by_role("button", name="Enter").tap()
    shows(page, "Pocket", "\non the road|road.*on the road")
    assert rows(page, "Pocket").count("on the road") == 2


def test_the_page_answers_no_query_of_a_program(visit: Visit, fleet: Terminals) -> None:
    """The service has answered it: a second answer would be typed into the shell."""
    terminal = start(fleet, "Asking")
    page = visit(f"/bridge?open={terminal}").page
    shows(page, "Asking", r"[$#] ")
    asks = r"\e[c\e[>c\e[=c\e[6n\e[?6n\e[>q\e[18t\e[21t\e[?2026$p\e]4;0;?\a\e]10;?\a\e]52;c;?\a\eP$q m\e\\"

    answers = []
    for looking in ("seen", "alone"):
        command = f"printf '{asks}'; read -t 1 -n 4000 -s x; echo ${{#x}} bytes {looking}"
        assert fleet.ask("POST", f"/{terminal}/send", text=command)["outcome"] == "submitted"
        assert fleet.ask("POST", f"/{terminal}/wait", until="idle", timeout_s=20)["met"]
        answers += re.findall(rf"^(\d+) bytes {looking}$", fleet.text(terminal), re.MULTILINE)
        page.goto("about:blank")
    assert len(answers) == 2
    assert answers[0] == answers[1] != "0"
