"""The Tools room over a real gateway and executor: found, filled in, run, and what is wrong said where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.studio import Studio
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with past(tmp_path_factory.mktemp("tools"), functions=True) as found:
        yield found


@pytest.fixture
def visit(served: Past, browser: Browser) -> Iterator[Visit]:
    """Open a room."""
    with visits(browser, served.url, DESKTOP) as visit:
        yield visit


@pytest.mark.parametrize("size", SIZES)
def test_a_tool_is_found_and_run(visit: Visit, size: str) -> None:
    studio = visit("/tools", **SIZES[size])
    page = studio.page
    expect(page.get_by_role("region", name="Browser").get_by_role("link")).to_have_count(7)
    look(studio, f"tools-{size}")
    page.keyboard.press("/")
    page.keyboard.type("switch theme")
    expect(page.get_by_role("navigation", name="Tools by category").get_by_role("link")).to_have_count(1)
    page.get_by_role("link", name="Switch theme").click()
    page.wait_for_url("**/tools/switch_theme")
    studio.button("Run").click()
    field = page.get_by_role("combobox", name="Theme")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("Fill this in.")).to_be_visible()
    look(studio, f"tool-wrong-{size}")
    field.select_option(label="dark")
    field.press("Enter")
    studio.button("Run").press("Enter")
    expect(page.get_by_text("The theme is dark now.", exact=True)).to_be_visible()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    look(studio, f"tool-result-{size}")


def _forms(functions: list[dict[str, Any]]) -> list[str]:
    """Return the name of the first function with each set of fields: forms are made of fields, so others have nothing new in them."""
    found: dict[frozenset[str], str] = {}
    for function in functions:
        fields = function["parameters"].get("properties", {}).values()
        kinds = frozenset(json.dumps(sorted((key, str(field.get("type"))) for key in field if key != "description")) for field in fields)
        found.setdefault(kinds, function["name"])
    return list(found.values())


def test_every_kind_of_form_in_the_catalogue_is_free_of_barriers(visit: Visit, served: Past) -> None:
    studio = visit("/tools")
    page = studio.page
    functions = page.evaluate("async () => (await (await fetch('/api/vox/functions')).json()).functions")
    names = _forms(functions)
    assert 10 < len(names) < len(functions)
    for name in names:
        page.evaluate("(name) => { history.pushState(null, '', `/tools/${name}`); }", name)
        expect(page.get_by_role("article")).to_contain_text(name)
        assert studio.violations() == [], name


def test_a_tool_that_is_not_there_is_said_to_be_missing(visit: Visit) -> None:
    studio = visit("/tools/no_such_tool")
    expect(studio.page.get_by_role("alert")).to_contain_text("There is no tool no_such_tool.")
    assert studio.violations() == []
    studio.page.get_by_role("searchbox", name="Search tools").fill("zebra")
    expect(studio.page.get_by_text("No tool matches “zebra”.")).to_be_visible()


def test_without_its_gateway_a_form_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as pages:
        with past(tmp_path, functions=True) as own:
            options: dict[str, Any] = DESKTOP
            context = browser.new_context(**options)
            pages.callback(context.close)
            studio = Studio(context.new_page(), own.url)
            studio.cuts_are_expected()
            studio.open("/tools/calculate")
            studio.page.get_by_role("textbox", name="Expression").fill("1 + 1")
        studio.button("Run").click()
        expect(studio.page.get_by_role("alert")).to_contain_text("The gateway does not answer.")
        expect(studio.page.get_by_role("alert")).to_contain_text("voxbridge up")


def test_a_function_of_the_installation_is_run_by_its_executor(visit: Visit) -> None:
    studio = visit("/tools/calculate")
    page = studio.page
    page.get_by_role("textbox", name="Expression").fill("17 times 23")
    studio.button("Run").click()
    result = page.get_by_role("article")
    expect(result).to_contain_text("391")
    page.get_by_text("As JSON").click()
    expect(page.get_by_role("region", name="Result as JSON")).to_contain_text('"success": true')
    assert studio.violations() == []
