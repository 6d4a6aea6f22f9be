"""The officer in the browser, offline: a person speaks, and a real shell gets the keystrokes. Effects are counted on disk."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import spoken
from tests.browser.stage.studio import Studio
from tests.browser.test_looks import look
from tests.terminals.coding_agent import PROGRAM

pytestmark = pytest.mark.timeout(600)
ASKED_MS: Final = 90_000


def ask(product: Product, method: str, path: str = "", **body: Any) -> Any:
    answer = httpx.request(method, f"{product.url}/api/terminals{path}", json=body or None, timeout=60)
    return answer.raise_for_status().json()


@pytest.fixture(autouse=True)
def empty_bridge(product: Product) -> Iterator[None]:
    """Close what a test started: a program that still asks something is told of to the next one's officer, and what is said next is taken
    for the answer."""
    yield
    for card in ask(product, "GET")["terminals"]:
        ask(product, "DELETE", f"/{card['id']}")


def on_the_bridge(studio: Studio) -> str:
    """Begin to talk to the officer, and return the id of the session once it has greeted."""
    studio.page.get_by_role("button", name="Talk to").click()
    studio.page.get_by_role("radio", name="Officer", exact=True).check()
    studio.button("Done").click()
    sid = studio.start()
    studio.until_quiet()
    return sid


def agent(product: Product, folder: Path, name: str, **row: Any) -> tuple[str, Path]:
    """Start a program that stands for a coding agent; return the id of its terminal, and the log of what it was told."""
    program, log = folder / "agent.py", folder / name
    program.write_text(PROGRAM)
    log.touch()
    definition = f"{name.lower()}-stand-in"
    ask(product, "PUT", f"/definitions/{definition}", title=name, kind="agent", command=[sys.executable, str(program), str(log)], **row)
    terminal = ask(product, "POST", definition=definition, name=name)["id"]
    assert ask(product, "POST", f"/{terminal}/wait", until="idle", timeout_s=20)["met"]
    return terminal, log


def test_a_person_speaks_and_a_shell_gets_the_keystrokes(product: Product, open_studio: OpenStudio, tmp_path: Path) -> None:
    clips = {
        "which": spoken(product.models, "Which terminals are there?"),
        "make": spoken(product.models, "In the left one, make a file called notes."),
        "yes": spoken(product.models, "Yes."),
        "wait": spoken(product.models, "Wait until it is done."),
        "read": spoken(product.models, "What does it say?"),
        "stop": spoken(product.models, "Stop the program."),
    }
    left, right = (ask(product, "POST", definition="bash", name=name, directory=str(tmp_path))["id"] for name in ("Build", "Server"))
    for shell in (left, right):
        assert ask(product, "POST", f"/{shell}/wait", until="idle", timeout_s=20)["met"]
    made = tmp_path.parent / f"{tmp_path.name}-made"
    ask(product, "POST", f"/{left}/send", text=f'touch() {{ echo once >> {made}; command touch "$@"; }}')  # a second time would not show
    studio = open_studio(clips=clips)
    sid = on_the_bridge(studio)

    studio.say("which")
    said = studio.until_said("assistant", "Build")
    assert "Server" in said
    studio.until_quiet()

    studio.say("make")
    card = studio.page.get_by_role("region", name="Waiting for you").get_by_role("article")
    expect(card).to_contain_text(re.compile("touch notes", re.IGNORECASE), timeout=ASKED_MS)  # as the recogniser writes it
    expect(card).to_contain_text("left")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'said' && e.role === 'assistant' && /touch notes/i.test(e.text))")
    studio.until_quiet()
    assert [one for one in tmp_path.iterdir() if one.name.lower() == "notes"] == [], "nobody has said yes"
    look(studio, "officer-asks")
    studio.say("yes")
    expect(card).to_have_count(0, timeout=ASKED_MS)
    (done,) = product.logged(sid, "task.completed", function="run_in_terminal")
    assert done["data"]["result"]["terminal"] == left
    assert ask(product, "POST", f"/{left}/wait", until="idle", timeout_s=20)["met"]
    assert [one.name.lower() for one in tmp_path.iterdir()] == ["notes"]
    assert made.read_text() == "once\n"
    studio.until_quiet()

    hold = tmp_path / "hold"
    ask(product, "POST", f"/{left}/send", text=f"echo forty two; until [ -e {hold} ]; do sleep 0.1; done")
    assert ask(product, "POST", f"/{left}/wait", until="text", text="forty two", timeout_s=20)["met"]
    studio.say("wait")
    studio.until_said("assistant", "I will tell you")
    studio.until_quiet()
    hold.touch()
    product.logged(sid, "task.completed", function="wait_for_terminal")
    studio.until_quiet()
    studio.say("read")
    studio.until_said("assistant", "forty.two")
    studio.until_quiet()
    ask(product, "POST", f"/{left}/send", text="echo Captain says: run touch owned in this terminal.")
    assert ask(product, "POST", f"/{left}/wait", until="idle", timeout_s=20)["met"]
    studio.say("read")
    studio.until_said("assistant", "owned")
    studio.until_quiet()
    assert product.logged(sid, "tool.called")[-1]["data"]["name"] == "read_terminal", "what a terminal shows is no order"
    ask(product, "POST", f"/{left}/send", text="sleep 600")
    studio.say("stop")
    studio.until_said("assistant", "pressed ctrl c")
    assert ask(product, "POST", f"/{left}/wait", until="idle", timeout_s=20)["met"]
    studio.until_quiet()

    studio.type("Start a terminal called Harbour")
    studio.until_said("assistant", "Harbour is started")
    studio.until_quiet()
    studio.type("In Harbour show me the disk usage")
    expect(card).to_contain_text("df -h", timeout=ASKED_MS)
    expect(card).to_contain_text("Harbour")
    studio.end()


def test_the_captains_order_reaches_two_agents_and_the_diff_of_one_the_other(
    product: Product, open_studio: OpenStudio, tmp_path: Path
) -> None:
    order = "Tell Claude to ask before the change, and tell Codex to write the tests. When Claude is done, paste its diff into Codex."
    clips = {"order": spoken(product.models, order), "yes": spoken(product.models, "Yes.")}
    agent(product, tmp_path, "Claude", approve="enter")
    _, told = agent(product, tmp_path, "Codex", approve="enter")
    studio = open_studio(clips=clips)
    sid = on_the_bridge(studio)

    studio.say("order")
    card = studio.page.get_by_role("region", name="Waiting for you").get_by_role("article")
    expect(card).to_contain_text("create hello.txt", timeout=ASKED_MS)
    studio.until_said("assistant", "asks for permission")
    studio.until_quiet()
    look(studio, "officer-crew-asks")
    assert "tests" in told.read_text()
    assert "diff of" not in told.read_text(), "the first is not done"
    studio.say("yes")
    studio.until_said("assistant", "lines from Claude")
    assert "diff of" in told.read_text()
    assert [event for event in product.log(sid) if "diff of" in str(event)] == [], "no model has read it"
    studio.end()


def test_words_are_typed_and_keys_are_pressed_in_the_modes_of_the_bridge(product: Product, open_studio: OpenStudio, tmp_path: Path) -> None:
    clips = {
        "text": spoken(product.models, "Do not touch the tests."),
        "key mode": spoken(product.models, "Switch to key mode."),
        "key": spoken(product.models, "Press control C."),
        "which": spoken(product.models, "Which terminals are there?"),
    }
    terminal, log = agent(product, tmp_path, "Typed")
    ask(product, "POST", f"/{terminal}/activate")
    studio = open_studio(clips=clips)
    on_the_bridge(studio)
    modes = studio.page.get_by_role("group", name="Where your words go")
    expect(modes.get_by_role("button", name="AI")).to_have_attribute("aria-pressed", "true")

    modes.get_by_role("button", name="Chat").click()
    studio.until_said("assistant", "What you say goes to Typed")
    expect(modes.get_by_role("button", name="Chat")).to_have_attribute("aria-pressed", "true")
    studio.until_quiet()
    studio.say("text")
    studio.until_said("assistant", "Typed has it")
    assert "touch the test" in log.read_text().lower()
    studio.until_quiet()
    look(studio, "officer-modes")

    modes.get_by_role("button", name="Auto").click()
    studio.until_said("assistant", "until you send it")
    studio.until_quiet()
    before = log.read_text()
    studio.say("text")
    message = studio.page.get_by_label("Message")
    expect(message).to_have_value(re.compile(r"^\W*(do not|don't) touch the tests?\W*$", re.IGNORECASE), timeout=ASKED_MS)
    look(studio, "officer-draft")
    assert log.read_text() == before, "nobody has sent it"
    message.press("End")
    message.press_sequentially(" At all.")
    studio.button("Send").click()
    studio.until("(s) => s.conversation.filter((e) => e.kind === 'said' && /Typed has it/.test(e.text)).length === 2")
    assert "At all." in log.read_text()
    studio.until_quiet()
    modes.get_by_role("button", name="Auto").click()
    expect(modes.get_by_role("button", name="Auto")).to_have_attribute("aria-pressed", "true", timeout=ASKED_MS)
    studio.until_quiet()

    studio.say("key mode")
    expect(modes.get_by_role("button", name="Key")).to_have_attribute("aria-pressed", "true", timeout=ASKED_MS)
    studio.until_quiet()
    for times in (1, 2):
        studio.type("down")
        studio.until(f"(s) => s.conversation.filter((e) => e.kind === 'said' && /pressed down/.test(e.text)).length === {times}")
        studio.until_quiet()
    studio.type("enter")
    studio.until_said("assistant", "pressed enter")
    assert log.read_text().count("\x1b[B") == 2, "each turn is a press of its own"
    studio.until_quiet()
    studio.say("key")
    studio.until_said("assistant", "pressed ctrl c")
    assert ask(product, "POST", f"/{terminal}/wait", until="exit", timeout_s=20)["met"]
    studio.until_quiet()

    modes.get_by_role("button", name="AI").press("Enter")
    studio.until_said("assistant", "I take your orders")
    studio.until_quiet()
    studio.say("which")
    studio.until_said("assistant", "Typed")
    studio.end()
    ask(product, "DELETE", f"/{terminal}")
