"""Functions of `page.js` on pages of others, in a real browser; no call and no model takes part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.stage.past import Past, past

pytestmark = pytest.mark.timeout(300)

PAGE: Final = """<!doctype html><title>Prices of tea</title>
<header>Menu of the site</header>
<main>
  <h1>Tea</h1><p>Green&nbsp;tea is <b>cheap</b>er,<br>black tea is not.</p>
  <ul><li>Assam</li><li>Sencha</li></ul>
  <label>Password <input type="password" value="pass-77"></label>
  <input value="typed-77" autocomplete="cc-number"><textarea>area-77</textarea>
  <p data-private>private-77 <b>deep-77</b></p>
  <p hidden>hidden-77</p><p style="display:none">none-77</p><p style="visibility:hidden">invisible-77</p><p style="opacity:0">clear-77</p>
  <details><summary>More</summary><p>folded-77</p></details>
  <details open><summary>Shipping</summary><p>Ships on Monday.</p></details>
  <script>const script = "script-77"</script><style>.style-77 {}</style><noscript>noscript-77</noscript>
  <span aria-hidden="true">decor-77</span><svg><text>svg-77</text></svg>
  <p style="display:flex"><b>Two</b><i>cups</i></p>
  <dialog open aria-label="Basket">Two teas.</dialog>
</main>"""

RUN: Final = """async ([name, args, options]) => {
  const { pageFunctions } = await import("/page.js");
  const routes = { "/healthz": "Health", "/other": "Other" };
  const tools = pageFunctions({ routes, navigate: (path) => history.pushState(null, "", path), ...options });
  try { return await tools[name](args); } catch (cause) { return { error: cause.message }; }
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with past(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture
def page(served: Past, browser: Browser) -> Iterator[Page]:
    with ExitStack() as pages:
        context = browser.new_context(bypass_csp=True)
        pages.callback(context.close)
        found = context.new_page()
        found.goto(f"{served.url}/healthz")
        found.set_content(PAGE)
        yield found


def run(page: Page, name: str, **args: Any) -> dict[str, Any]:
    found = page.evaluate(RUN, [name, args, {}])
    assert isinstance(found, dict)
    return found


def test_the_visible_text_is_read_and_nothing_that_is_private(page: Page) -> None:
    read = run(page, "read_page_content")
    assert read["text"] == (
        "Tea\nGreen tea is cheaper,\nblack tea is not.\nAssam\nSencha\nPassword\nMore\nShipping\nShips on Monday.\nTwo cups\nTwo teas."
    )
    assert (read["success"], read["path"], read["title"], read["truncated"]) == (True, "/healthz", "Prices of tea", False)
    assert read["spoken"].startswith("This is Health: Tea Green tea is cheaper,")
    assert "77" not in str(read)


def test_a_long_page_is_read_up_to_its_limit(page: Page) -> None:
    page.evaluate("() => { document.querySelector('main').innerHTML = `<p>${'é'.repeat(4095)}</p>`; }")
    assert (len(run(page, "read_page_content")["text"].encode()), run(page, "read_page_content")["truncated"]) == (8_190, False)
    page.evaluate("() => { document.querySelector('main').innerHTML = `<p>${'é'.repeat(4097)}</p>`; }")
    read = run(page, "read_page_content")
    assert (len(read["text"].encode()), read["truncated"]) == (8_192, True)
    page.evaluate("() => { document.querySelector('main').innerHTML = '<i></i>'.repeat(30000) + 'late-77'; }")
    read = run(page, "read_page_content")
    assert (read["text"], read["truncated"], read["spoken"]) == ("", True, "There is no text on this page.")


def test_a_page_that_is_private_as_a_whole_has_no_text(page: Page) -> None:
    page.evaluate("() => { document.body.dataset.private = ''; }")
    assert run(page, "read_page_content")["text"] == ""


def test_a_declared_page_is_opened_and_no_other(page: Page, served: Past) -> None:
    assert run(page, "navigate_page", path="the other page") == {
        "success": True,
        "path": "/other",
        "page": "Other",
        "title": "Prices of tea",
        "spoken": "Other is open.",
    }
    for path in ("https://example.org/healthz", "//example.org", "javascript:alert(1)", "/keys"):
        assert "opens /healthz (Health), /other (Other) only" in run(page, "navigate_page", path=path)["error"]
    assert page.url == f"{served.url}/other"


def test_the_state_of_the_workspace_has_what_is_selected_and_open(page: Page) -> None:
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('h1'))")
    state = run(page, "get_workspace_state")
    assert (state["selection"], state["panels"], state["theme"], state["connection"]) == ("Tea", ["Shipping", "Basket"], "system", "online")
    for selector in ("[data-private]", "main"):  # inside of what is private, and around it
        page.evaluate("(selector) => getSelection().selectAllChildren(document.querySelector(selector))", selector)
        assert run(page, "get_workspace_state")["selection"] == ""


def test_the_theme_is_that_of_the_document(page: Page) -> None:
    assert run(page, "switch_theme", theme="dark") == {"success": True, "theme": "dark", "spoken": "The theme is dark now."}
    assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "dark"
    assert run(page, "switch_theme", theme="system")["theme"] == "system"
    assert page.evaluate("() => document.documentElement.dataset.theme ?? 'none'") == "none"
    assert "one of light, dark, system" in run(page, "switch_theme", theme="plaid")["error"]
