"""Functions of a page in a real browser: the example of docs/studio.md unchanged, and answers after kills.

The language model is scripted, since the page is under test; all else is the product.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import RATE, pcm16, spoken
from tests.browser.stage.studio import MICROPHONE, ROOT, WAIT_MS, Studio
from tests.browser.stage.thread import in_thread
from tests.running_models import RunningModels
from tests.voice.model_server import ModelServer, call
from voxbridge.shared.agents.functions import BROWSER_FUNCTIONS

pytestmark = pytest.mark.timeout(300)
TITLE = "Prices of tea 2026"
OpenPage = Callable[[str], Page]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with in_thread(ModelServer()) as found:
        yield found


@pytest.fixture(scope="module")
def own_product(models: RunningModels, model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    environment = {"VOXBRIDGE_LLM_URL": model.url, "VOXBRIDGE_GREETING": ""}
    with running(tmp_path_factory.mktemp("page-functions"), models, environment=environment) as found:
        yield found


@pytest.fixture
def open_page(own_product: Product, browser: Browser) -> Iterator[OpenPage]:
    """`open_page(html)`: a page of the product's origin with this content, whose microphone plays the clips that the test chooses."""
    complaints: list[str] = []
    with ExitStack() as pages:

        def open_page(html: str) -> Page:
            context = browser.new_context(bypass_csp=True)  # the policy of the replaced document blocks scripts
            pages.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(WAIT_MS)
            page.add_init_script(path=MICROPHONE)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda message: complaints.append(message.text))
            page.goto(f"{own_product.url}/healthz")
            page.set_content(html)
            return page

        yield open_page
    sys.stdout.write("\n".join(complaints))


def example() -> str:
    """Return the page that docs/studio.md shows."""
    found = re.search(r"## A page with a voice\n```html\n(.*?)```", (ROOT / "docs" / "studio.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def told(model: ModelServer) -> list[str]:
    """Return the results of functions that the model was given."""
    return [message["content"] for message in model.asked("llm")[-1]["messages"] if message["role"] == "tool"]


def begun(product: Product) -> str:
    """Return the id of the call that a page has just started, once it listens."""
    deadline = time.monotonic() + 20
    while True:
        found = httpx.get(f"{product.url}/api/sessions").raise_for_status().json()["sessions"]
        live = [str(one["id"]) for one in found if one["state"] == "live"]
        if live:
            product.logged(live[0], "session.started")
            return live[0]
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_the_example_of_the_docs_answers_what_the_model_asks_of_the_page(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    model.script("llm", call("page_title", "{}"), ["The title is prices of tea."])
    page = open_page(f"<title>{TITLE}</title>{example()}")
    data = base64.b64encode(pcm16(spoken(own_product.models, "What is the title of this page?"))).decode()
    page.evaluate("([data, rate]) => window.__microphone.load('question', data, rate)", [data, RATE])
    page.get_by_role("button", name="Talk").click()
    begun(own_product)
    with page.expect_console_message(lambda message: message.text.startswith("assistant The title is")):
        page.evaluate("() => window.__microphone.say('question')")
    assert [json.loads(one) for one in told(model)] == [{"title": TITLE}]
    assert "page_title" in [tool["function"]["name"] for tool in model.asked("llm")[0]["tools"]]


PENDING = """<title>Pending</title><button>Ask</button><script type="module">
  import { VoiceAgent } from "/client.js";
  const show_map = {
    description: "Show a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
    timeoutMs: 120000,
    run: (args) => new Promise((resolve) => { window.answer = () => resolve({ shown: args.place }); }),
  };
  window.agent = new VoiceAgent({ microphone: false, tools: { show_map } });
  document.querySelector("button").onclick = () => agent.sendText("Show me Rome.");
</script>"""


def test_a_page_answers_after_the_gateway_and_the_worker_were_killed(own_product: Product, model: ModelServer, open_page: OpenPage) -> None:
    model.script("llm", call("show_map", '{"place": "Rome"}'), ["There is Rome."])
    page = open_page(PENDING)
    page.get_by_role("button", name="Ask").click()
    page.wait_for_function("() => window.answer !== undefined")
    sid = str(page.evaluate("() => agent.getSnapshot().sessionId"))
    own_product.kill("gateway")
    own_product.logged(sid, "client.connected", resumed=True)
    page.wait_for_function("() => agent.getSnapshot().connection === 'connected'")
    own_product.kill("voice", sid)
    own_product.logged(sid, "session.restored")
    page.evaluate("() => window.answer()")
    page.wait_for_function("() => agent.getSnapshot().conversation.some((e) => e.kind === 'said' && e.text.includes('There is Rome'))")
    assert [json.loads(one) for one in told(model)] == [{"shown": "Rome"}]
    assert len(own_product.logged(sid, "tool.called")) == 1
    page.evaluate("() => agent.end()")
    own_product.logged(sid, "session.ended")


def test_a_page_that_takes_a_name_of_the_installation_is_told_so(open_page: OpenPage) -> None:
    page = open_page("<title>Clash</title>")
    error = page.evaluate(
        """async () => {
          const { VoiceAgent } = await import("/client.js");
          const starting = VoiceAgent.start({ microphone: false, tools: { calculate: () => 5 } });
          return starting.then(() => null, ({ code, message }) => ({ code, message }));
        }"""
    )
    assert (error["code"], "calculate" in error["message"]) == ("INVALID_ARGUMENT", True)


def test_the_space_bar_starts_to_talk_on_the_empty_page(own_product: Product, browser: Browser) -> None:
    with ExitStack() as pages:
        context = browser.new_context(viewport={"width": 1280, "height": 820})
        pages.callback(context.close)
        studio = Studio(context.new_page(), own_product.url)
        studio.page.add_init_script(path=MICROPHONE)
        studio.open()
        studio.page.keyboard.press("Space")
        studio.connected()
        assert studio.snapshot()["microphone"] == "on"
        studio.end()
        studio.page.keyboard.press("Space")
        studio.until("(s) => s.connection === 'connected'")
        studio.end()


def test_studio_opens_reads_and_recolours_itself_when_it_is_asked_aloud(own_product: Product, model: ModelServer, browser: Browser) -> None:
    said = {"open": "Open the agents page.", "read": "Read this page to me.", "theme": "Make it dark, please."}
    with ExitStack() as pages:
        context = browser.new_context(viewport={"width": 1280, "height": 820}, color_scheme="light")
        pages.callback(context.close)
        studio = Studio(context.new_page(), own_product.url)
        studio.page.add_init_script(path=MICROPHONE)
        studio.open()
        for name, text in said.items():
            studio.load(name, spoken(own_product.models, text))
        sid = studio.start()

        model.script("llm", call("navigate_page", '{"path": "agents"}'), ["Agents is open."])
        studio.say("open")
        studio.until_said("assistant", "^Agents is open")
        expect(studio.page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
        studio.until_quiet()

        model.script("llm", call("read_page_content", "{}"), ["It shows the agents."])
        studio.say("read")
        studio.until_said("assistant", "shows the agents")
        studio.until_quiet()

        model.script("llm", call("switch_theme", '{"theme": "dark"}'), ["The theme is dark."])
        studio.say("theme")
        studio.until_said("assistant", "theme is dark")
        assert studio.page.evaluate("() => document.documentElement.dataset.theme") == "dark"

        answered = own_product.logged(sid, "browser_call.answered")
        assert [one["data"]["name"] for one in answered] == ["navigate_page", "read_page_content", "switch_theme"]
        assert [one["data"]["result"]["success"] for one in answered] == [True, True, True]
        assert "VOXBRIDGE_AGENTS_DIR" in answered[1]["data"]["result"]["text"]
        offered = {tool["function"]["name"] for tool in model.asked("llm")[-1]["tools"]}
        assert set(BROWSER_FUNCTIONS) <= offered
        studio.page.get_by_role("navigation", name="Rooms").get_by_role("link", name="Talk").click()
        studio.end()


def test_a_model_is_chosen_for_the_next_call_and_the_page_shows_it(own_product: Product, model: ModelServer, browser: Browser) -> None:
    with ExitStack() as pages:
        context = browser.new_context(viewport={"width": 1280, "height": 820})
        pages.callback(context.close)
        studio = Studio(context.new_page(), own_product.url)
        studio.open()
        model.script("llm", call("switch_model", '{"model": "gemini"}'), ["There is no key for it."])
        studio.type("Use Gemini from now on.")
        sid = studio.connected()
        refused = own_product.logged(sid, "browser_call.answered")[0]["data"]["result"]
        assert (refused["success"], "Gemini has no key here; set one in Keys" in refused["error"]) == (False, True)
        studio.until_said("assistant", "no key")
        model.script("llm", call("switch_model", '{"model": "echo"}'), ["Echo it is."])
        studio.type("Then use the echo.")
        studio.until_said("assistant", "Echo it is")
        assert "Your next call is with Echo." in told(model)[-1]
        assert [one["status"] for one in studio.snapshot()["conversation"] if one["kind"] == "call"] == ["failed", "done"]
        studio.end()
        expect(studio.page.get_by_role("button", name="Talk to Echo")).to_be_visible()
