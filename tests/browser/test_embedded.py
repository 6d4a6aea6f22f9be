"""An agent in a page of another origin, by the examples: typed to, asked to talk, spoken to, loaded anew, and typed to again.

The language model is scripted, since the page is under test; all else is the product.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage import embedded, embedding
from tests.browser.stage.cable import cable
from tests.browser.stage.embedding import OpenPage, says, session_of, shows, state
from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import RATE, pcm16, spoken
from tests.browser.stage.studio import WAIT_MS, Studio
from tests.browser.stage.thread import in_thread
from tests.running_models import RunningModels
from tests.voice.model_server import ModelServer, call

pytestmark = pytest.mark.timeout(300)
BLOCKED = """
const resume = AudioContext.prototype.resume;
const touched = () => navigator.userActivation.hasBeenActive;
AudioContext.prototype.resume = function () { return touched() ? resume.call(this) : new Promise(() => {}); };
window.AudioContext = class extends AudioContext {
  constructor(options) { super(options); if (!touched()) void this.suspend(); }
};
"""
"""A browser that lets no page sound before somebody has touched it; Chromium lets those that record."""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with in_thread(ModelServer()) as found:
        yield found


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[str, list[str]]]:
    with embedded.shop() as found:
        yield found


@pytest.fixture(scope="module")
def own_product(
    models: RunningModels, model: ModelServer, shop: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    environment = {"VOXBRIDGE_LLM_URL": model.url, "VOXBRIDGE_FETCH_HOSTS": shop[0].removeprefix("http://")}
    with running(tmp_path_factory.mktemp("embedded"), models, environment=environment) as found:
        secret = {"value": "shop-secret", "rule": {"hosts": [shop[0]]}}
        httpx.put(f"{found.url}/api/secrets/test/ORDERS_API_KEY", params={"account": "shop"}, json=secret).raise_for_status()
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    with embedding.pages(browser) as found:
        yield found


def heard(model: ModelServer) -> list[str]:
    """Return what users said, as the model was told it last."""
    return [message["content"] for message in model.asked("llm")[-1]["messages"] if message["role"] == "user"]


def test_one_conversation_by_text_and_voice_with_a_secret_that_the_page_never_has(
    own_product: Product, model: ModelServer, shop: tuple[str, list[str]], open_page: OpenPage
) -> None:
    api, asked = shop
    key = embedded.make_key(own_product)
    with embedded.site(embedded.example("order-tracking", own_product, key, api=api)) as address:
        page = open_page(address)
        shows(page, "Hi! I can look up your order.")
        state(page, "Type, or press the microphone")
        model.script("llm", call("check_order", '{"order_id": "1042"}'), ["It arrives tomorrow."])
        says(page, "Where is order 1042?")
        shows(page, "Using check order")
        shows(page, "It arrives tomorrow.")
        result = next(message["content"] for message in model.asked("llm")[-1]["messages"] if message["role"] == "tool")
        assert asked == ["Bearer shop-secret"], result
        assert "tomorrow" in result
        assert page.evaluate("window.__asked") == 0, "no microphone before the voice"
        sid = session_of(own_product)
        assert own_product.logged(sid, "session.started")[0]["data"]["output"] == "text"

        model.script(
            "llm", call("start_voice_session", '{"pending_request": "tell me a joke"}'), ["Let us talk."], ["A horse walks into a bar."]
        )
        says(page, "Let's talk, and tell me a joke")
        shows(page, "A horse walks into a bar.")
        state(page, "Listening")
        assert page.evaluate("window.__asked") == 1
        assert own_product.logged(sid, "output.changed")[0]["data"]["output"] == "audio"
        assert heard(model)[-1] == "tell me a joke"
        first = own_product.logged(sid, "turn.completed")[-1]["data"]
        assert first["latency"]["first_audio_heard"] > 0, "the joke was heard"

        data = base64.b64encode(pcm16(spoken(own_product.models, "When does it arrive?"))).decode()
        page.evaluate("([data, rate]) => window.__microphone.load('question', data, rate)", [data, RATE])
        model.script("llm", ["It arrives in the morning."])
        page.evaluate("() => window.__microphone.say('question')")
        shows(page, "It arrives in the morning.")
        assert "arrive" in heard(model)[-1].lower()

        page.reload()
        shows(page, "It arrives in the morning.")
        shows(page, "Where is order 1042?")
        state(page, "Listening")
        model.script("llm", call("end_voice_session", "{}"), ["Then we write."], ["With pleasure."])
        says(page, "I would rather type")
        state(page, "Ready")
        assert own_product.logged(sid, "output.changed")[-1]["data"]["output"] == "text"
        says(page, "thank you")
        shows(page, "With pleasure.")
        assert [one for one in heard(model) if "1042" in one or "joke" in one or "thank" in one][-1] == "thank you"
        assert session_of(own_product) == sid, "it was one session"


def test_a_greeting_is_heard_and_an_order_that_is_asked_for_by_voice_is_looked_up_with_the_secret(
    own_product: Product, model: ModelServer, shop: tuple[str, list[str]], open_page: OpenPage
) -> None:
    api, asked = shop
    with embedded.site(embedded.example("order-tracking", own_product, embedded.make_key(own_product), api=api)) as address:
        page = open_page(address)
        page.get_by_role("button", name="Talk").click()
        state(page, "Listening")
        sid = session_of(own_product)
        own_product.logged(sid, "agent.said", text="Hi! I can look up your order.")
        data = base64.b64encode(pcm16(spoken(own_product.models, "Please look up my order. Its number is ten forty two."))).decode()
        page.evaluate("([data, rate]) => window.__microphone.load('order', data, rate)", [data, RATE])
        model.script("llm", call("check_order", '{"order_id": "1042"}'), ["It arrives tomorrow."])
        page.evaluate("() => window.__microphone.say('order')")
        own_product.logged(sid, "agent.said", text="It arrives tomorrow.")
        shows(page, "It arrives tomorrow.")
        assert "order" in heard(model)[-1].lower()
        assert asked[-1] == "Bearer shop-secret"
        assert "tomorrow" in next(message["content"] for message in model.asked("llm")[-1]["messages"] if message["role"] == "tool")
        assert own_product.logged(sid, "turn.completed")[-1]["data"]["latency"]["first_audio_heard"] > 0, "the answer was heard"


def test_without_a_microphone_the_conversation_goes_on_in_text_and_says_why(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    with embedded.site(embedded.example("vanilla", own_product, embedded.make_key(own_product))) as address:
        page = open_page(address)
        page.evaluate("() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', 'NotAllowedError')); }")
        model.script("llm", ["Good day."], ["Yes, in text."])
        says(page, "Hello")
        shows(page, "Good day.")
        page.get_by_role("button", name="Talk").click()
        expect(page.get_by_role("alert")).to_contain_text("or type instead", timeout=WAIT_MS)
        says(page, "Are you there?")
        shows(page, "Yes, in text.")


def test_a_microphone_that_the_system_silences_is_said_and_opened_anew(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    with embedded.site(embedded.example("vanilla", own_product, embedded.make_key(own_product))) as address:
        page = open_page(address)
        page.evaluate("""() => {
            window.__tracks = [];
            const open = navigator.mediaDevices.getUserMedia;
            navigator.mediaDevices.getUserMedia = async (...of) => {
                const stream = await open(...of);
                window.__tracks.push(stream.getAudioTracks()[0]);
                return stream;
            };
        }""")
        page.get_by_role("button", name="Talk").click()
        state(page, "Listening")
        page.evaluate("""() => {
            const [track] = window.__tracks;
            Object.defineProperty(track, "muted", { value: true });
            track.dispatchEvent(new Event("mute"));
        }""")
        news = page.locator(".news")
        expect(news).to_contain_text("silenced the microphone", timeout=WAIT_MS)
        expect(news).to_have_text("The microphone is back.", timeout=WAIT_MS)
        assert page.evaluate("window.__tracks.length") == 2
        assert page.evaluate("window.__tracks[0].readyState") == "ended"
        data = base64.b64encode(pcm16(spoken(own_product.models, "When does the train leave?"))).decode()
        page.evaluate("([data, rate]) => window.__microphone.load('question', data, rate)", [data, RATE])
        model.script("llm", ["It leaves at noon."])
        page.evaluate("() => window.__microphone.say('question')")
        shows(page, "It leaves at noon.")


def test_a_microphone_that_is_pulled_leaves_the_conversation_in_text_and_says_so(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    with embedded.site(embedded.example("vanilla", own_product, embedded.make_key(own_product))) as address:
        page = open_page(address)
        page.evaluate("""() => {
            const open = navigator.mediaDevices.getUserMedia;
            navigator.mediaDevices.getUserMedia = async (...of) => {
                const stream = await open(...of);
                window.__track = stream.getAudioTracks()[0];
                return stream;
            };
        }""")
        page.get_by_role("button", name="Talk").click()
        state(page, "Listening")
        page.evaluate("""() => {
            navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("none", "NotFoundError"));
            window.__track.dispatchEvent(new Event("ended"));
        }""")
        expect(page.get_by_role("alert")).to_contain_text("The microphone went away. Connect it again", timeout=WAIT_MS)
        model.script("llm", ["Yes, in text."])
        says(page, "Are you there?")
        shows(page, "Yes, in text.")


def test_a_network_that_is_cut_is_said_and_nothing_is_lost_or_said_twice(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    with cable(own_product.url) as wire, embedded.site(html.replace(own_product.url, wire.url)) as address:
        page = open_page(address)
        model.script("llm", ["Good day."])
        says(page, "Hello")
        shows(page, "Good day.")
        wire.cut()
        expect(page.get_by_role("status")).to_contain_text("Trying again", timeout=WAIT_MS)
        wire.mend()
        state(page, "Ready")
        model.script("llm", ["With pleasure."])
        says(page, "thank you")
        shows(page, "With pleasure.")
        expect(page.get_by_role("log").get_by_text("Good day.")).to_have_count(1)
        assert heard(model)[-1] == "thank you"


def test_a_tab_that_the_browser_froze_goes_on_when_it_is_shown_again(own_product: Product, model: ModelServer, open_page: OpenPage) -> None:
    """A hidden tab, or a laptop that was closed: nothing of the page runs, and its connection is gone meanwhile."""
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    with cable(own_product.url) as wire, embedded.site(html.replace(own_product.url, wire.url)) as address:
        page = open_page(address)
        model.script("llm", ["Good day."])
        says(page, "Hello")
        shows(page, "Good day.")
        session = session_of(own_product)
        lifecycle = page.context.new_cdp_session(page)
        lifecycle.send("Page.setWebLifecycleState", {"state": "frozen"})
        wire.cut()
        own_product.logged(session, "client.disconnected")
        wire.mend()
        lifecycle.send("Page.setWebLifecycleState", {"state": "active"})
        state(page, "Ready")
        model.script("llm", ["With pleasure."])
        says(page, "thank you")
        shows(page, "With pleasure.")
        expect(page.get_by_role("log").get_by_text("Good day.")).to_have_count(1)
        assert session_of(own_product) == session


def test_a_file_that_was_opened_from_the_disk_talks_with_a_test_key(
    own_product: Product, model: ModelServer, open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "index.html"
    file.write_text(embedded.example("vanilla", own_product, embedded.make_key(own_product)))
    page = open_page(file.as_uri())
    model.script("llm", call("next_train", '{"city": "Rome"}'), ["In twelve minutes, from platform 3."])
    says(page, "When does the train to Rome leave?")
    shows(page, "In twelve minutes, from platform 3.")
    assert '"leaves_in_minutes":12' in next(m["content"] for m in model.asked("llm")[-1]["messages"] if m["role"] == "tool").replace(
        " ", ""
    )


def test_two_agents_of_a_page_are_two_conversations_that_outlive_a_reload(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    html = html.replace('<div id="app"></div>', '<div id="sales"></div><div id="help"></div>')
    html = html.replace("VoiceAgent.start({", "for (const element of ['#sales', '#help']) VoiceAgent.start({")
    html = html.replace('element: "#app"', "element")
    with embedded.site(html) as address:
        page = open_page(address)
        words = {"#sales": "A ticket costs ten.", "#help": "Lost things are at gate 4."}
        for place, answer in words.items():
            model.script("llm", [answer])
            page.locator(place).get_by_label("Message").fill("Hello")
            page.locator(place).get_by_role("button", name="Send").click()
            expect(page.locator(place).get_by_role("log")).to_contain_text(answer, timeout=WAIT_MS)
        page.reload()
        for place, answer in words.items():
            expect(page.locator(place).get_by_role("log")).to_contain_text(answer, timeout=WAIT_MS)
        for place, answer in zip(words, reversed(words.values()), strict=True):
            expect(page.locator(place).get_by_role("log")).not_to_contain_text(answer)


def test_the_react_example_as_vite_builds_it_is_one_conversation(
    own_product: Product, model: ModelServer, open_page: OpenPage, tmp_path: Path
) -> None:
    built = embedded.built_react(own_product, embedded.make_key(own_product), tmp_path / "react")
    with embedded.folder(built) as address:
        page = open_page(address)
        page.get_by_role("button", name="Ask about a train").click()
        shows(page, "Hi! Ask me when your train leaves.")
        model.script("llm", call("next_train", '{"city": "Rome"}'), ["In twelve minutes, from platform 3."])
        says(page, "When does the train to Rome leave?")
        shows(page, "Using next_train")
        shows(page, "In twelve minutes, from platform 3.")
        assert page.evaluate("window.__asked") == 0, "no microphone before the voice"
        sid = session_of(own_product)
        data = base64.b64encode(pcm16(spoken(own_product.models, "When does it arrive?"))).decode()
        page.evaluate("([data, rate]) => window.__microphone.load('question', data, rate)", [data, RATE])
        page.get_by_role("button", name="Talk").click()
        state(page, "listening")
        model.script("llm", ["It arrives at noon."])
        page.evaluate("() => window.__microphone.say('question')")
        shows(page, "It arrives at noon.")
        page.reload()
        shows(page, "In twelve minutes, from platform 3.")
        shows(page, "It arrives at noon.")
        model.script("llm", ["With pleasure."])
        says(page, "thank you")
        shows(page, "With pleasure.")
        shows(page, "It arrives at noon.")
        assert session_of(own_product) == sid, "it was one session, under StrictMode"
        Studio(page, address).picture("embedded-react")


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_the_default_ui_can_be_used_by_everybody(own_product: Product, model: ModelServer, open_page: OpenPage, look: str) -> None:
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    hostile = "<style>* { display: none; color: red !important; font-size: 60px } div, body, html { display: block }</style>"
    options: dict[str, Any] = {"color_scheme": "dark"} if look == "dark" else {}
    with embedded.site(html.replace("</head>", f"{hostile}</head>")) as address:
        page = open_page(address, **options)
        if look == "phone":
            page.set_viewport_size({"width": 360, "height": 640})
        model.script("llm", ["It leaves in twelve minutes, from platform three. Have a good trip!"])
        says(page, "When does the train to Rome leave?")
        shows(page, "Have a good trip!")
        studio = Studio(page, address)
        studio.picture(f"embedded-{look}")
        assert [one for one in studio.violations() if ".voxbridge" in one] == []
        page.get_by_label("Message").focus()
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.querySelector('.voxbridge').shadowRoot.activeElement.getAttribute('aria-label')") == "Talk"


def test_a_key_that_counts_for_nothing_is_explained(own_product: Product, open_page: OpenPage) -> None:
    with embedded.site(embedded.example("vanilla", own_product, "pk_test_000000000000_" + "x" * 32)) as address:
        page = open_page(address)
        says(page, "Hello")
        expect(page.get_by_role("alert")).to_contain_text("This key is not known here", timeout=WAIT_MS)
        expect(page.get_by_label("Message")).to_have_value("Hello")


def test_a_live_key_runs_what_its_owner_approved_and_nothing_else(own_product: Product, model: ModelServer, open_page: OpenPage) -> None:
    with ExitStack() as sites:
        html = embedded.example("vanilla", own_product, "KEY")
        holder: dict[str, str] = {"html": html}
        address = sites.enter_context(embedded.site(holder))
        key = embedded.make_key(own_product, environment="live", origins=[address])
        holder["html"] = html.replace("KEY", key)
        page = open_page(address)
        says(page, "Hello")
        expect(page.get_by_role("alert")).to_contain_text("has not approved what this page configures", timeout=WAIT_MS)
        asked = httpx.get(f"{own_product.url}/api/approvals", params={"account": "shop"}).raise_for_status().json()["pending"]
        digest = asked[0]["digest"]
        httpx.post(f"{own_product.url}/api/approvals", json={"account": "shop", "digest": digest}).raise_for_status()
        model.script("llm", ["Good day."])
        says(page, "Hello again")
        shows(page, "Good day.")
        holder["html"] = holder["html"].replace("minutes, platform: 3", "minutes, platform: 4")
        stranger = open_page(address)
        says(stranger, "Hello")
        expect(stranger.get_by_role("alert")).to_contain_text("has not approved", timeout=WAIT_MS)


@pytest.mark.parametrize("policy", ["with blob", "gateway alone"])
def test_a_page_with_a_content_security_policy_talks(own_product: Product, model: ModelServer, open_page: OpenPage, policy: str) -> None:
    gateway = f"{own_product.url} {own_product.url.replace('http', 'ws')}"
    blob = " blob:" if policy == "with blob" else ""
    allowed = f"default-src 'none'; script-src 'unsafe-inline' {own_product.url}{blob}; worker-src 'self'{blob}; connect-src {gateway}"
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    with embedded.site(html, {"Content-Security-Policy": allowed}) as address:
        page = open_page(address)
        model.script("llm", ["Good day."], ["It leaves at noon."])
        says(page, "Hello")
        shows(page, "Good day.")
        data = base64.b64encode(pcm16(spoken(own_product.models, "When does the train leave?"))).decode()
        page.evaluate("([data, rate]) => window.__microphone.load('question', data, rate)", [data, RATE])
        page.get_by_role("button", name="Talk").click()
        state(page, "Listening")
        page.evaluate("() => window.__microphone.say('question')")
        shows(page, "It leaves at noon.")
        assert "train" in heard(model)[-1].lower()
        sid = session_of(own_product)
        own_product.logged(sid, "playback.reported", state="finished")


def test_a_policy_that_forbids_the_gateway_is_named_with_what_to_add(own_product: Product, open_page: OpenPage) -> None:
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product))
    forbidden = f"default-src 'none'; script-src 'unsafe-inline' blob: {own_product.url}; worker-src blob:"
    with embedded.site(html, {"Content-Security-Policy": forbidden}) as address:
        page = open_page(address)
        says(page, "Hello")
        expect(page.get_by_role("alert")).to_contain_text(f"Add {own_product.url}", timeout=WAIT_MS)
        expect(page.get_by_role("alert")).to_contain_text("connect-src", timeout=WAIT_MS)


@pytest.mark.parametrize("change", ["none", "other bytes"])
def test_a_page_runs_the_script_whose_integrity_it_names_and_no_other(
    own_product: Product, model: ModelServer, open_page: OpenPage, change: str
) -> None:
    told = httpx.get(f"{own_product.url}/integrity.json").raise_for_status().json()
    path = next(path for path in told if path.startswith("/client."))
    digest = told[path] if change == "none" else next(told[other] for other in told if other != path)
    names = json.dumps({"integrity": {own_product.url + path: digest}})
    html = embedded.example("vanilla", own_product, embedded.make_key(own_product)).replace("/client.js", path)
    html = html.replace("<script", f'<script type="importmap">{names}</script>\n<script', 1)
    with embedded.site(html) as address:
        page = open_page(address)
        ran = page.evaluate("address => import(address).then(() => true, () => false)", own_product.url + path)
        assert ran is (change == "none")
        if ran:
            model.script("llm", ["Good day."])
            says(page, "Hello")
            shows(page, "Good day.")
        expect(page.get_by_label("Message")).to_have_count(1 if ran else 0)


def test_sound_that_the_browser_blocks_is_said_and_a_click_has_it_play(
    own_product: Product, model: ModelServer, open_page: OpenPage
) -> None:
    with embedded.site(embedded.example("vanilla", own_product, embedded.make_key(own_product))) as address:
        page = open_page(address)
        page.add_init_script(BLOCKED)
        model.script("llm", ["Good day."], ["Still here."])
        says(page, "Hello")
        shows(page, "Good day.")
        page.get_by_role("button", name="Talk").click()
        state(page, "Listening")
        page.reload()  # a page that nobody has touched yet may not sound
        sound = page.get_by_role("button", name="Resume sound")
        expect(sound).to_be_visible(timeout=WAIT_MS)
        sound.click()
        expect(sound).to_be_hidden(timeout=WAIT_MS)
        says(page, "Are you there?")
        shows(page, "Still here.")
        own_product.logged(session_of(own_product), "playback.reported", state="finished")
