"""The Agents and Keys rooms over a real gateway, without models: the agents, the choice for the next call, and the stored keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look
from voxbridge.shared.agents.providers import PROVIDERS

pytestmark = pytest.mark.timeout(600)

LOOKS_MS: Final = 20_000
"""Milliseconds to wait; the room polls the files every few seconds."""

FILES: Final = {
    "triage.yaml": "role: Front desk\ndescription: Picks up.\nmodel: gemini\nvoice: Aoede\nhandoffs: [closer]\n",
    "closer.yaml": "role: Wrap-up\ndescription: Sums up and says goodbye.\n",
    "pipelines/advice.yaml": "stages:\n  - {phase: begin, agent: triage, next: [middle, end]}\n"
    "  - {phase: middle, agent: closer, next: end}\n  - {phase: end, agent: closer}\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the gateway's data and agents."""
    found = tmp_path_factory.mktemp("rooms")
    (found / "agents" / "pipelines").mkdir(parents=True)
    for name, text in FILES.items():
        (found / "agents" / name).write_text(text)
    return found


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Past]:
    """A gateway without any key in its environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name in [one for names in PROVIDERS.values() for one in names]:
            environment.delenv(name, raising=False)
        with past(folder) as found:
            yield found


@pytest.fixture
def visit(served: Past, browser: Browser) -> Iterator[Visit]:
    """Open a room."""
    # There are no models here, so the browser reports the 503 of the readiness check.
    with visits(browser, served.url, DESKTOP) as visit:
        yield visit


@pytest.mark.parametrize("size", SIZES)
def test_agents_are_looked_at_and_one_is_chosen_for_the_next_call(visit: Visit, folder: Path, size: str) -> None:
    studio = visit("/agents", **SIZES[size])
    page = studio.page
    expect(page.get_by_role("img", name="Begins with begin; begin leads to middle or end; middle leads to end.")).to_be_visible()
    triage = page.get_by_role("region", name="Agents").get_by_role("listitem").filter(has_text="Front desk")
    expect(triage).to_contain_text("Needs a key: Gemini.")
    expect(triage.get_by_role("button", name="Talk to Triage")).to_be_disabled()
    look(studio, f"agents-{size}")

    wrong = folder / "agents" / "wrong.yaml"
    wrong.write_text("role: Nobody\npromt: Oh dear.\n")
    try:
        expect(page.get_by_role("alert")).to_contain_text(f"{wrong}:2", timeout=LOOKS_MS)
        expect(page.get_by_role("button", name="Talk to Closer")).to_be_visible()
        assert studio.violations() == []
    finally:
        wrong.unlink()
    expect(page.get_by_role("alert")).to_have_count(0, timeout=LOOKS_MS)

    studio.button("Talk to Closer").click()
    page.wait_for_url("**/")
    chosen = page.get_by_role("button", name="Talk to Closer")
    expect(chosen).to_be_visible()
    page.reload()
    chosen.click()
    chooser = page.get_by_role("dialog", name="Who do you want to talk to?")
    expect(chooser.get_by_role("radio", name="Closer")).to_be_checked()
    expect(chooser.get_by_role("radio", name="Triage")).to_be_disabled()
    expect(chooser.get_by_role("radio", name="Gemini")).to_be_disabled()
    look(studio, f"chooser-{size}")
    chooser.get_by_role("radio", name="Local models").check()
    chooser.get_by_role("textbox", name="Model").fill("another")
    chooser.get_by_role("button", name="Done").click()
    expect(page.get_by_role("button", name="Talk to Local models")).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_a_key_is_set_and_forgotten_and_never_shown(visit: Visit, size: str) -> None:
    studio = visit("/keys", **SIZES[size])
    page = studio.page
    card = page.get_by_role("listitem", name="Gemini")
    field = page.get_by_role("textbox", name="Key of Gemini")
    expect(card).to_contain_text("no key")
    assert field.get_attribute("type") == "password"
    field.fill("two words")
    studio.button("Store the key of Gemini").click()
    expect(card.get_by_role("status")).to_contain_text("printable ASCII")
    # The browser reports the refusal on its console.
    assert all("422" in complaint for complaint in studio.complaints)
    studio.complaints.clear()
    field.fill("sk-only-in-this-test")
    field.press("Enter")
    expect(card.get_by_role("status")).to_contain_text("Key saved")
    expect(card).to_contain_text("Stored here, encrypted.")
    expect(field).to_have_value("")
    assert "sk-only-in-this-test" not in page.content()
    look(studio, f"keys-{size}")

    page.get_by_role("link", name="Agents").click()
    expect(studio.button("Talk to Triage")).to_be_enabled()
    page.get_by_role("link", name="Keys").click()
    studio.button("Forget the key of Gemini").click()
    expect(card).to_contain_text("no key")
    expect(studio.button("Forget the key of Gemini")).to_have_count(0)
